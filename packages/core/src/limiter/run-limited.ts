/** The scope behind a limiter's `run`: the slot goes back whatever happens, with what the outcome says of the upstream. */
import { abortOf } from "../run-with-slot.ts";
import type { LimiterGate } from "./limiter-gate.ts";
import { type GrantedSlot, IGNORE, type LimiterSlot, type ReleaseOptions } from "./limiter-slot.ts";
import { settleSlot } from "./settlement.ts";

/** What `Limiter.run` is given: it is called with the slot that it holds. */
export type LimiterWork<T, B extends string = string> = (slot: LimiterSlot<B>) => T | Promise<T>;

/** Whether an answer means that the upstream is overloaded, and for how long it wants to be left alone. */
export type IsOverload<T> = (
  outcome: { readonly value: T; readonly error?: never } | { readonly error: unknown; readonly value?: never },
) => boolean | { readonly retryAfterMs: number } | undefined;

interface RunOptions<T> {
  readonly signal?: AbortSignal | undefined;
  readonly isOverload?: IsOverload<T> | undefined;
}

/** Work on a slot that was free starts before this returns. */
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

/** Neither `async` nor `finally`: both are paid for by each call. */
function start<T>(
  slot: GrantedSlot,
  gate: LimiterGate,
  work: LimiterWork<T>,
  options: RunOptions<Awaited<T>> | undefined,
): Promise<Awaited<T>> {
  // The grant may have come before the abort, the turn of this task after it.
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

/** A failure that is no overload says nothing about the upstream's capacity. */
function finish<T>(slot: GrantedSlot, isOverload: IsOverload<T>, outcome: { value: T } | { error: unknown }): void {
  let options: ReleaseOptions = "value" in outcome ? {} : IGNORE;
  try {
    const verdict = isOverload(outcome);
    if (verdict) options = { outcome: "overload", ...(typeof verdict === "object" && verdict) };
    slot.release(options);
  } finally {
    // If `isOverload` throws, or asks for nonsense.
    slot.release(IGNORE);
  }
}
