/** The scope behind every `run`: work is done while a slot is held, and the slot goes back whatever happens. */
import type { AcquireOptions, Policy } from "./policy.ts";
import type { HeldSlot, Slot } from "./slot.ts";

export type Work<T> = (slot: Slot) => T | Promise<T>;

/** `entered` is what `Gate.enter` gave. Work on a slot that was free starts before this returns. */
export function runWithSlot<T>(
  entered: HeldSlot | Promise<HeldSlot>,
  policy: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  return entered instanceof Promise
    ? entered.then((slot) => start(slot, policy, work, options))
    : start(entered, policy, work, options);
}

/** Neither `async` nor `finally`: both are paid for by each call (W1r). */
function start<T>(
  slot: HeldSlot,
  { abortOnExpiry }: Policy,
  work: Work<T>,
  options?: AcquireOptions,
): Promise<Awaited<T>> {
  let result: Promise<Awaited<T>>;
  try {
    // The hand-off may have come before the abort, the turn of this task after it.
    options?.signal?.throwIfAborted();
    result = Promise.resolve(abortOnExpiry ? Promise.race([expiryOf(slot), work(slot)]) : work(slot));
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

/** Rejects as soon as the slot expires; what becomes of the work after that is nobody's concern. */
function expiryOf({ signal }: Slot): Promise<never> {
  // It may have come already.
  signal.throwIfAborted();
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
