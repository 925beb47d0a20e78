/**
 * The scope behind `Limiter.run`: it always releases the slot, with the outcome that the result means for the upstream.
 */
import { abortOf } from "../run-with-slot.ts";
import type { LimiterGate } from "./limiter-gate.ts";
import { type GrantedSlot, IGNORE, type LimiterSlot, type ReleaseOptions } from "./limiter-slot.ts";
import { settleSlot } from "./settlement.ts";

/** The work of `Limiter.run`. It is called with the slot that it holds. */
export type LimiterWork<T, B extends string = string> = (slot: LimiterSlot<B>) => T | Promise<T>;

/**
 * Decides whether a result or error means that the upstream is overloaded. `retryAfterMs` delays all requests by this
 * time, in milliseconds.
 */
export type IsOverload<T> = (
  outcome: { readonly value: T; readonly error?: never } | { readonly error: unknown; readonly value?: never },
) => boolean | { readonly retryAfterMs: number } | undefined;

interface RunOptions<T> {
  readonly signal?: AbortSignal | undefined;
  readonly isOverload?: IsOverload<T> | undefined;
}

/** If a slot was free, the work starts before this function returns. */
export function runLimited<T>(
  entered: GrantedSlot | Promise<GrantedSlot>,
  gate: LimiterGate,
  work: LimiterWork<T>,
  options: RunOptions<Awaited<T>> | undefined,
): Promise<Awaited<T>> {
  return entered instanceof Promise
    ? entered.then((slot) => start(slot, gate, work, options))
    : start(entered, gate, work, options);
}

/** Avoids `async` and `finally`, because each adds a cost to every call. */
function start<T>(
  slot: GrantedSlot,
  gate: LimiterGate,
  work: LimiterWork<T>,
  options: RunOptions<Awaited<T>> | undefined,
): Promise<Awaited<T>> {
  // The signal may have aborted after the grant, but before this callback ran.
  if (options?.signal?.aborted) {
    // Work that never started costs nothing (LIMIT5).
    settleSlot(gate, slot, () => (slot.released ? undefined : 0));
    slot.release(IGNORE);
    return Promise.reject(options.signal.reason);
  }
  let result: Promise<Awaited<T>>;
  try {
    result = Promise.resolve(gate.policy.abortOnExpiry ? Promise.race([abortOf(slot), work(slot)]) : work(slot));
  } catch (error) {
    result = Promise.reject(error);
  }
  const isOverload = options?.isOverload;
  return result.then(
    (value) => {
      if (isOverload) finish(slot, isOverload, { value });
      else slot.release();
      return value;
    },
    (error) => {
      if (isOverload) finish(slot, isOverload, { error });
      else slot.release(IGNORE);
      throw error;
    },
  );
}

/** An error that is not an overload says nothing about the capacity of the upstream, so it is ignored. */
function finish<T>(slot: GrantedSlot, isOverload: IsOverload<T>, outcome: { value: T } | { error: unknown }): void {
  let options: ReleaseOptions = "value" in outcome ? {} : IGNORE;
  try {
    const verdict = isOverload(outcome);
    if (verdict) options = { outcome: "overload", ...(typeof verdict === "object" && verdict) };
    slot.release(options);
  } finally {
    // Needed if `isOverload` throws or returns an invalid value.
    slot.release(IGNORE);
  }
}
