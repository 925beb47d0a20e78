/** The scope behind every `run`: work is done while a slot is held, and the slot goes back whatever happens. */
import type { AcquireOptions, Policy } from "./policy.ts";
import type { HeldSlot, Slot } from "./slot.ts";

/** What `run` is given: called with the slot that it holds. */
export type Work<T> = (slot: Slot) => T | Promise<T>;

/** `entered` is what `Gate.enter` gave. Work on a slot that was free starts before this returns. */
export function runWithSlot<T>(
  entered: HeldSlot | Promise<HeldSlot>,
  policy: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  return entered instanceof Promise ? runLater(entered, policy, work, options) : start(entered, policy, work, options);
}

/**
 * For those who had to wait. The work starts in a continuation of the caller, and so in the caller's async context, not in
 * that of whoever released: that takes a promise of its own, which the limit of W2r does without.
 *
 * Prototypes against that limit, on a loaded machine (W2r; the library itself adds to it): two calls of `then`, the second adopted by the first: 2.2 times; `new Promise`
 * around both: 2.2; `async` with `finally`: 1.6; without, as here: 1.5. Started by whoever releases, in that one's
 * context: 1.1.
 */
async function runLater<T>(
  entered: Promise<HeldSlot>,
  { abortOnExpiry }: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  const slot = await entered;
  let value: Awaited<T>;
  try {
    // The hand-off may have come before the abort, the turn of this task after it.
    options?.signal?.throwIfAborted();
    value = await (abortOnExpiry ? Promise.race([abortOf(slot), work(slot)]) : work(slot));
  } catch (error) {
    slot.release();
    throw error;
  }
  slot.release();
  return value;
}

/** Neither `async` nor `finally`: here both would be paid for by each call (W1r). */
function start<T>(
  slot: HeldSlot,
  { abortOnExpiry }: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  let result: Promise<Awaited<T>>;
  try {
    options?.signal?.throwIfAborted();
    result = Promise.resolve(abortOnExpiry ? Promise.race([abortOf(slot), work(slot)]) : work(slot));
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
