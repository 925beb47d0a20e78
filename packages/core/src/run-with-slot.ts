/** Implements `run` of every class: the work holds a slot, and the slot is released whether the work succeeds or fails. */
import { callback, check } from "./options.ts";
import type { Slot } from "./slot.ts";

/** The function that `run` calls with its slot. The slot is released when the function returns or throws. */
export type Work<T> = (slot: Slot) => T | Promise<T>;

/** What `run` needs of a slot. */
interface RunSlot extends Partial<Expiring> {
  release(options?: unknown): boolean;
  /** Only slots of a limiter have it: the argument of `release` after work that failed. */
  readonly failed?: unknown;
  /** Only slots of a limiter have it. Called if the work does not start: then it costs nothing. */
  refund?(): void;
}

/** What `run` needs of a slot with `abortOnExpiry`. */
interface Expiring extends Pick<Slot, "signal"> {
  /** Counts a `run` that ends when this slot expires. */
  await(more: 1 | -1): void;
}

/**
 * `entered` is a slot, or a promise of one if the caller must wait. With a slot, the work starts before this returns. With
 * `abortOnExpiry`, the call rejects when the slot expires.
 */
export function runWithSlot<S extends RunSlot, T>(
  entered: S | Promise<S>,
  { abortOnExpiry }: { readonly abortOnExpiry: boolean | undefined },
  work: (slot: S) => T | Promise<T>,
  signal?: AbortSignal,
): Promise<Awaited<T>> {
  const guarded = signal || abortOnExpiry ? guard(work, abortOnExpiry, signal) : work;
  return entered instanceof Promise ? runLater(entered, guarded) : start(entered, guarded);
}

/** Implements `wrap` of every class. */
export function wrapFunction<This, Args extends unknown[], T>(
  gate: { run(work: never, options: never): Promise<unknown> },
  fn: (this: This, ...args: Args) => T | Promise<T>,
  options?: object,
): (this: This, ...args: Args) => Promise<Awaited<T>> {
  check("fn", callback, fn);
  return function wrapped(...args) {
    const work = (): T | Promise<T> => fn.apply(this, args);
    return gate.run(work as never, options as never) as Promise<Awaited<T>>;
  };
}

/** Separate from `runWithSlot`: a closure there would allocate a context in every call (W1r). */
function guard<S extends RunSlot, T>(
  work: (slot: S) => T | Promise<T>,
  abortOnExpiry: boolean | undefined,
  signal: AbortSignal | undefined,
): (slot: S) => T | Promise<T> {
  return (slot) => {
    // The signal may have aborted after the hand-off and before this function runs.
    if (signal?.aborted) slot.refund?.();
    signal?.throwIfAborted();
    return abortOnExpiry ? untilExpiry(slot, work) : work(slot);
  };
}

/**
 * For callers that must wait. The work starts in a continuation of the caller, so it has the async context of the caller
 * and not of the releasing call. `async` without `finally` is the cheapest form that works on every host (W2r;
 * docs/explanation/performance.md has the figures).
 */
async function runLater<S extends RunSlot, T>(
  entered: Promise<S>,
  work: (slot: S) => T | Promise<T>,
): Promise<Awaited<T>> {
  const slot = await entered;
  let value: Awaited<T>;
  try {
    value = await work(slot);
  } catch (error) {
    slot.release(slot.failed);
    throw error;
  }
  slot.release();
  return value;
}

/**
 * Uses neither `async` nor `finally`: here they would make every call slower (W1r). Calls the `then` of all promises and not
 * a `then` of this promise, as `await` does: that may be replaced by one that throws or never calls back, and the slot would
 * never be released.
 */
function start<S extends RunSlot, T>(slot: S, work: (slot: S) => T | Promise<T>): Promise<Awaited<T>> {
  let result: Promise<Awaited<T>>;
  try {
    result = Promise.resolve(work(slot));
  } catch (error) {
    result = Promise.reject(error);
  }
  return Promise.prototype.then.call(
    result,
    (value) => {
      slot.release();
      return value;
    },
    (error) => {
      slot.release(slot.failed);
      throw error;
    },
  ) as Promise<Awaited<T>>;
}

/** The work, or the rejection when the slot expires; the result of the work is then ignored. */
async function untilExpiry<S extends RunSlot, T>(slot: S, work: (slot: S) => T | Promise<T>): Promise<Awaited<T>> {
  const expiring = slot as S & Expiring;
  expiring.await(1);
  try {
    return await Promise.race([abortOf(expiring), start(slot, work)]);
  } finally {
    expiring.await(-1);
  }
}

/** Rejects when the signal aborts. For the signal of a slot, that is when it expires. */
export function abortOf({ signal }: Pick<Slot, "signal">): Promise<never> {
  // The signal may have aborted already.
  signal.throwIfAborted();
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
