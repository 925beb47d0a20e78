/** The scope behind every `run`: work is done while a slot is held, and the slot goes back whatever happens. */
import type { AcquireOptions, Policy } from "./policy.ts";
import type { HeldSlot, Slot } from "./slot.ts";

/** The function that `run` calls with its slot. The slot is released when the function returns or throws. */
export type Work<T> = (slot: Slot) => T | Promise<T>;

/** `entered` is a slot, or a promise of one for those who had to wait. Work on a slot that was free starts before this returns. */
export function runWithSlot<T>(
  entered: HeldSlot | Promise<HeldSlot>,
  { abortOnExpiry }: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  const guarded = options || abortOnExpiry ? guard(work, abortOnExpiry, options?.signal) : work;
  return entered instanceof Promise ? runLater(entered, guarded) : start(entered, guarded);
}

/** Apart from `runWithSlot`, which would otherwise make a closure's context for every call (W1r). */
function guard<T>(work: Work<T>, abortOnExpiry: boolean | undefined, signal: AbortSignal | undefined): Work<T> {
  return (slot) => {
    // The hand-off may have come before the abort, the turn of this task after it.
    signal?.throwIfAborted();
    return abortOnExpiry ? Promise.race([abortOf(slot), work(slot)]) : work(slot);
  };
}

/**
 * For those who had to wait. The work starts in a continuation of the caller, and so in the caller's async context, not in
 * that of the releasing call. `async` without `finally` is the cheapest way that works on every host (W2r;
 * docs/explanation/performance.md has the figures).
 */
async function runLater<T>(entered: Promise<HeldSlot>, work: Work<T>): Promise<Awaited<T>> {
  const slot = await entered;
  let value: Awaited<T>;
  try {
    value = await work(slot);
  } catch (error) {
    slot.release();
    throw error;
  }
  slot.release();
  return value;
}

/** Neither `async` nor `finally`: here both would be paid for by each call (W1r). */
function start<T>(slot: HeldSlot, work: Work<T>): Promise<Awaited<T>> {
  let result: Promise<Awaited<T>>;
  try {
    result = Promise.resolve(work(slot));
  } catch (error) {
    result = Promise.reject(error);
  }
  return result.then(
    (value) => {
      slot.release();
      return value;
    },
    (error) => {
      slot.release();
      throw error;
    },
  );
}

/** Rejects as soon as the signal aborts: a slot's own when it expires. The result of the work is then ignored. */
export function abortOf({ signal }: Pick<Slot, "signal">): Promise<never> {
  // It may have come already.
  signal.throwIfAborted();
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
