/** Implements `run`: the work holds a slot, and the slot is released whether the work succeeds or fails. */
import type { AcquireOptions, Policy } from "./policy.ts";
import type { HeldSlot, Slot } from "./slot.ts";

/** The function that `run` calls with its slot. The slot is released when the function returns or throws. */
export type Work<T> = (slot: Slot) => T | Promise<T>;

/** `entered` is a slot, or a promise of one if the caller must wait. With a slot, the work starts before this returns. */
export function runWithSlot<T>(
  entered: HeldSlot | Promise<HeldSlot>,
  { abortOnExpiry }: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  const guarded = options || abortOnExpiry ? guard(work, abortOnExpiry, options?.signal) : work;
  return entered instanceof Promise ? runLater(entered, guarded) : start(entered, guarded);
}

/** Separate from `runWithSlot`: a closure there would allocate a context in every call (W1r). */
function guard<T>(work: Work<T>, abortOnExpiry: boolean | undefined, signal: AbortSignal | undefined): Work<T> {
  return (slot) => {
    // The signal may have aborted after the hand-off and before this function runs.
    signal?.throwIfAborted();
    return abortOnExpiry ? Promise.race([abortOf(slot), work(slot)]) : work(slot);
  };
}

/**
 * For callers that must wait. The work starts in a continuation of the caller, so it has the async context of the caller
 * and not of the releasing call. `async` without `finally` is the cheapest form that works on every host (W2r;
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

/** Uses neither `async` nor `finally`: here they would make every call slower (W1r). */
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

/** Rejects when the signal aborts. For the signal of a slot, that is when it expires; the work's result is then ignored. */
export function abortOf({ signal }: Pick<Slot, "signal">): Promise<never> {
  // The signal may have aborted already.
  signal.throwIfAborted();
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
