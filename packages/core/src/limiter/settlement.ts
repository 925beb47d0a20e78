/**
 * What becomes known of a request after its grant: what it really cost, and how the upstream took it.
 */
import type { LimiterGate } from "./limiter-gate.ts";
import type { GrantedSlot } from "./limiter-slot.ts";

/** Corrects what a slot was charged, by the name of the budget; `undefined` leaves it. Serves who waits for the rest. */
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

/** An answer that was not ignored: overloads delay all requests, and adaptive slots follow. */
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
