/**
 * A task parked on a promise of the outside world. Cancelling the task aborts the signal that the promise's maker was
 * given and makes the promise's outcome irrelevant: a later rejection is handled and ignored.
 */
import type { TaskRef } from "./errors.ts";
import { describe } from "./program.ts";
import type { TaskNode } from "./task.ts";

/** A promise, or a function that starts the work and takes a signal to stop it. */
export type PromiseSource<T> = PromiseLike<T> | ((signal: AbortSignal) => PromiseLike<T>);

/** One `fromPromise` that a simulation is asked to stand in for. */
export interface PromiseRequest {
  readonly source: PromiseSource<unknown>;
  /** The `label` that the program gave to `fromPromise`. */
  readonly label: string | undefined;
  readonly task: TaskRef;
  readonly now: number;
}

/** Answers with a value or with a program, which may `delay`, `log` and fail; what it throws is thrown at the yield. */
export type Resolver = (request: PromiseRequest) => unknown;

export class OutsideWait {
  readonly task: TaskNode;
  readonly #controller: AbortController | undefined;
  #isAbandoned = false;

  /** Throws what the source throws, or a `TypeError` if there is no promise. */
  constructor(task: TaskNode, source: unknown, wake: (task: TaskNode, result: unknown, throws: boolean) => void) {
    this.task = task;
    this.#controller = typeof source === "function" ? new AbortController() : undefined;
    const promise: unknown =
      typeof source === "function" ? (source as (signal: AbortSignal) => unknown)(this.#signal) : source;
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

  get #signal(): AbortSignal {
    return (this.#controller as AbortController).signal;
  }
}
