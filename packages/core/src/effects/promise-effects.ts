/** The effects of promises: those of the run, and JavaScript promises. */
import { COMPLETE_PROMISE, CREATE_PROMISE, type Effect, EffectNode, FAIL_PROMISE, FROM_PROMISE } from "./effect.ts";
import type { PromiseSource } from "./outside-wait.ts";
import type { Future, PromiseHandle } from "./settleable.ts";

/** Options of `fromPromise`. */
export interface FromPromiseOptions {
  /** Names this promise for the `resolver` of a simulation. @defaultValue none */
  readonly label?: string;
}

/**
 * Creates a promise without a result. Settle it through its handle, and wait for its `future`.
 *
 * @example
 * ```ts
 * import { completePromise, createPromise, simulate, spawn, wait } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const promise = yield* createPromise<string>();
 *   yield* spawn(completePromise(promise, "done"));
 *   return yield* wait(promise.future);
 * });
 * ```
 */
export function createPromise<T>(): Effect<PromiseHandle<T>> {
  return new EffectNode(CREATE_PROMISE, undefined, undefined);
}

/**
 * Gives the promise its result. Throws `PromiseSettledError` at the yield if it already has one.
 *
 * @example
 * ```ts
 * import { completePromise, createPromise, simulate, wait } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const promise = yield* createPromise<number>();
 *   yield* completePromise(promise, 1);
 *   return yield* wait(promise.future); // 1
 * });
 * ```
 */
export function completePromise<T>(promise: PromiseHandle<T> | Future<T>, value: T): Effect<void> {
  return new EffectNode(COMPLETE_PROMISE, promise, value);
}

/**
 * Makes the promise fail with an error. Throws `PromiseSettledError` at the yield if it already has a result.
 *
 * @example
 * ```ts
 * import { createPromise, failPromise, simulate, tryCatch, wait } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const promise = yield* createPromise<number>();
 *   yield* failPromise(promise, new Error("no"));
 *   return yield* tryCatch(wait(promise.future)); // { ok: false, error }
 * });
 * ```
 */
export function failPromise(promise: PromiseHandle<unknown> | Future<unknown>, error: unknown): Effect<void> {
  return new EffectNode(FAIL_PROMISE, promise, error);
}

/**
 * Waits for a JavaScript promise. If the source is a function, cancelling the task aborts the signal that the function
 * received.
 *
 * @example
 * ```ts
 * import { fromPromise, run } from "slotkeeper/effects";
 *
 * const status = await run(function* () {
 *   const response = yield* fromPromise((signal) => fetch("https://example.com", { signal }));
 *   return response.status;
 * });
 * ```
 */
export function fromPromise<T>(source: PromiseSource<T>, options?: FromPromiseOptions): Effect<T> {
  return new EffectNode(FROM_PROMISE, source, options);
}
