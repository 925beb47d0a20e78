/** The effects of promises: those of the run, and those of the world outside. */
import { COMPLETE_PROMISE, CREATE_PROMISE, type Effect, EffectNode, FAIL_PROMISE, FROM_PROMISE } from "./effect.ts";
import type { PromiseSource } from "./outside-wait.ts";
import type { Future, PromiseHandle } from "./promise.ts";

export interface FromPromiseOptions {
  /** Tells a simulation's `resolver` which promise this is. */
  readonly label?: string;
}

/** A promise without a result yet: settle it by its handle, wait for its `future`. */
export function createPromise<T>(): Effect<PromiseHandle<T>> {
  return new EffectNode(CREATE_PROMISE, undefined, undefined);
}

export function completePromise<T>(promise: PromiseHandle<T> | Future<T>, value: T): Effect<void> {
  return new EffectNode(COMPLETE_PROMISE, promise, value);
}

export function failPromise(promise: PromiseHandle<unknown> | Future<unknown>, error: unknown): Effect<void> {
  return new EffectNode(FAIL_PROMISE, promise, error);
}

/** Waits for a JavaScript promise. Given a function, cancelling the task aborts the signal that function got. */
export function fromPromise<T>(source: PromiseSource<T>, options?: FromPromiseOptions): Effect<T> {
  return new EffectNode(FROM_PROMISE, source, options);
}
