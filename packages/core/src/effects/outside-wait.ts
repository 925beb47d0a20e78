/**
 * A task that is parked on a JavaScript promise. Cancelling the task aborts the signal that the source received. The
 * outcome of the promise is then ignored, including a later rejection.
 */
import type { TaskRef } from "./errors.ts";
import { describe } from "./program.ts";
import type { TaskNode } from "./task.ts";

/** A promise, or a function that starts the work and takes a signal to stop it. */
export type PromiseSource<T> = PromiseLike<T> | ((signal: AbortSignal) => PromiseLike<T>);

/** A `fromPromise` that the `resolver` of a simulation must answer. */
export interface PromiseRequest {
  /** The promise or function that the program gave to `fromPromise`. */
  readonly source: PromiseSource<unknown>;
  /** The `label` that the program gave to `fromPromise`. */
  readonly label: string | undefined;
  /** The task that waits. */
  readonly task: TaskRef;
  /** The virtual time, in milliseconds. */
  readonly now: number;
}

/** Returns a value, or a program that may `delay`, `log` and fail. An error that it throws is thrown at the yield. */
export type Resolver = (request: PromiseRequest) => unknown;

export class OutsideWait {
  readonly task: TaskNode;
  readonly #controller: AbortController | undefined = undefined;
  #isAbandoned = false;

  /** Throws the error of the source, or a `TypeError` if the source returns no promise. */
  constructor(task: TaskNode, source: unknown, wake: (task: TaskNode, result: unknown, throws: boolean) => void) {
    this.task = task;
    let promise = source;
    if (typeof source === "function") {
      this.#controller = new AbortController();
      promise = (source as (signal: AbortSignal) => unknown)(this.#controller.signal);
    }
    if (typeof (promise as { then?: unknown } | null | undefined)?.then !== "function") {
      throw new TypeError(`Expected \`fromPromise\` to be given a promise, got ${describe(promise)}`);
    }
    (promise as PromiseLike<unknown>).then(
      (value) => this.#isAbandoned || wake(task, value, false),
      (error: unknown) => this.#isAbandoned || wake(task, error, true),
    );
  }

  abandon(reason: unknown): void {
    this.#isAbandoned = true;
    this.#controller?.abort(reason);
  }
}
