/**
 * Handles what becomes known after a grant: the true cost of the request, and the outcome at the upstream.
 */
import type { LimiterGate } from "./limiter-gate.ts";
import type { GrantedSlot } from "./limiter-slot.ts";

/** Corrects the charges of a slot, by the name of the budget; `undefined` keeps a charge. Then serves waiters. */
export function settleSlot(gate: LimiterGate, slot: GrantedSlot, actualOf: (name: string) => number | undefined): void {
  const now = gate.time.now();
  for (const [index, name] of gate.names.entries()) {
    const actual = actualOf(name);
    if (actual !== undefined) gate.ledger.correct(slot, index, actual, now);
  }
  if (gate.waiting === 0) return;
  if (slot.keyState.waiting > 0) gate.line.place(slot.keyState, now);
  gate.serve(now);
}

/** Handles an answer that was not ignored: an overload may delay all requests, and adaptive slots change. */
export function heedAnswer(
  gate: LimiterGate,
  slot: GrantedSlot,
  outcome: "ok" | "overload",
  retryAfterMs: number | undefined,
): void {
  const isOverload = outcome === "overload";
  if (isOverload) gate.overloads++;
  if (retryAfterMs) gate.heldBackUntil = Math.max(gate.heldBackUntil, gate.time.now() + retryAfterMs);
  gate.adaptive?.answer(isOverload, slot.epoch ?? 0);
  gate.capacity = gate.adaptive?.limit ?? gate.capacity;
}
