/**
 * The errors of a run, in addition to `AcquireTimeoutError` (of the library, `../errors.ts`) and to misuse, which is a
 * `TypeError` or `RangeError` at the yield. `docs/reference/errors.md` lists the same table; a test compares the two in
 * both directions. This file does not use the error factory of the library: that one builds messages from the fields.
 */
import { type EffectErrorCode, SlotkeeperError } from "../errors.ts";
import type { DeadlockReport } from "./deadlock.ts";

/**
 * Every code of `slotkeeper/effects`, the class that carries it, and whether the same call may succeed later.
 *
 * @example
 * ```ts
 * import { EFFECT_ERROR_CODES } from "slotkeeper/effects";
 *
 * console.log(EFFECT_ERROR_CODES.DEADLOCK.class); // DeadlockError
 * ```
 */
export const EFFECT_ERROR_CODES = {
  DEADLOCK: { class: "DeadlockError", retryable: false },
  OVER_RELEASE: { class: "OverReleaseError", retryable: false },
  PROMISE_SETTLED: { class: "PromiseSettledError", retryable: false },
  STEP_LIMIT: { class: "StepLimitError", retryable: false },
  TASK_CANCELLED: { class: "TaskCancelledError", retryable: false },
} as const satisfies Record<EffectErrorCode, { class: string; retryable: boolean }>;

type Codes = typeof EFFECT_ERROR_CODES;
type ErrorClass<Code extends keyof Codes> = abstract new (
  message: string,
  options?: ErrorOptions,
) => SlotkeeperError & {
  readonly name: Codes[Code]["class"];
  readonly code: Code;
  readonly retryable: Codes[Code]["retryable"];
};

/** Creates the class that the table names, without its message and fields. */
function errorOf<Code extends keyof Codes>(code: Code): ErrorClass<Code> {
  const { class: name, retryable }: Codes[Code] = EFFECT_ERROR_CODES[code];
  abstract class EffectError extends SlotkeeperError {
    override readonly name: Codes[Code]["class"] = name;
    override readonly code: Code = code;
    override readonly retryable: Codes[Code]["retryable"] = retryable;
  }
  return EffectError;
}

/** Identifies a task in reports and events. */
export interface TaskRef {
  /** Unique in the run; later tasks have larger ids. */
  readonly id: number;
  /** The `name` option of the task, or `task-` and the id. */
  readonly name: string;
}

/**
 * The task was cancelled. The error is thrown into the task, so that its `finally` blocks run, and into tasks that wait
 * for it.
 *
 * @example
 * ```ts
 * import { cancel, delay, simulate, spawn, TaskCancelledError, wait } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const task = yield* spawn(delay(1_000));
 *   yield* cancel(task);
 *   try {
 *     yield* wait(task);
 *   } catch (error) {
 *     if (!(error instanceof TaskCancelledError)) throw error;
 *   }
 * });
 * ```
 */
export class TaskCancelledError extends errorOf("TASK_CANCELLED") {
  /** The task that was cancelled. */
  readonly task: TaskRef;

  constructor(task: TaskRef, cause?: unknown) {
    super(`Task "${task.name}" was cancelled`, cause === undefined ? undefined : { cause });
    this.task = task;
  }
}

/**
 * A task released a permit, but all permits of the semaphore are free.
 *
 * @example
 * ```ts
 * import { createSemaphore, OverReleaseError, releaseSemaphore, simulate } from "slotkeeper/effects";
 *
 * try {
 *   simulate(function* () {
 *     yield* releaseSemaphore(yield* createSemaphore(1));
 *   });
 * } catch (error) {
 *   if (error instanceof OverReleaseError) console.log(error.permits); // 1
 * }
 * ```
 */
export class OverReleaseError extends errorOf("OVER_RELEASE") {
  /** The `id` of the semaphore. */
  readonly semaphoreId: number;
  /** How many permits the semaphore has. */
  readonly permits: number;

  constructor(semaphoreId: number, permits: number) {
    super("semaphore released too many times");
    this.semaphoreId = semaphoreId;
    this.permits = permits;
  }
}

/**
 * The promise already has a result. The first result stays.
 *
 * @example
 * ```ts
 * import { completePromise, createPromise, PromiseSettledError, simulate } from "slotkeeper/effects";
 *
 * try {
 *   simulate(function* () {
 *     const promise = yield* createPromise<number>();
 *     yield* completePromise(promise, 1);
 *     yield* completePromise(promise, 2);
 *   });
 * } catch (error) {
 *   if (error instanceof PromiseSettledError) console.log(error.code); // PROMISE_SETTLED
 * }
 * ```
 */
export class PromiseSettledError extends errorOf("PROMISE_SETTLED") {
  /** The `id` of the promise's future. */
  readonly promiseId: number;

  constructor(promiseId: number, how: "completed" | "failed") {
    super(`Promise ${promiseId} was ${how} already`);
    this.promiseId = promiseId;
  }
}

/**
 * A simulation performed more than `maxSteps` steps. Most likely it never ends.
 *
 * @example
 * ```ts
 * import { now, simulate, StepLimitError } from "slotkeeper/effects";
 *
 * function* forEver() {
 *   while (true) yield* now();
 * }
 * try {
 *   simulate(forEver, { maxSteps: 1_000 });
 * } catch (error) {
 *   if (error instanceof StepLimitError) console.log(error.maxSteps); // 1000
 * }
 * ```
 */
export class StepLimitError extends errorOf("STEP_LIMIT") {
  /** The limit that was reached. */
  readonly maxSteps: number;

  constructor(maxSteps: number, task: TaskRef) {
    super(`The run took more than ${maxSteps} steps; the last was of task "${task.name}"`);
    this.maxSteps = maxSteps;
  }
}

/**
 * No task can ever continue: either in the whole run, or in a set of semaphores whose holders have ended or wait for
 * each other.
 *
 * @example
 * ```ts
 * import { acquireSemaphore, createSemaphore, DeadlockError, simulate } from "slotkeeper/effects";
 *
 * try {
 *   simulate(function* () {
 *     const permit = yield* createSemaphore(1, { name: "permit" });
 *     yield* acquireSemaphore(permit);
 *     yield* acquireSemaphore(permit); // no task is left that could release it
 *   });
 * } catch (error) {
 *   if (error instanceof DeadlockError) console.log(error.message);
 * }
 * ```
 */
export class DeadlockError extends errorOf("DEADLOCK") {
  /** The semaphores that can never be released, with holders and waiters. */
  readonly semaphores: DeadlockReport["semaphores"];
  /** The tasks that wait, and for what. */
  readonly parked: DeadlockReport["parked"];
  /** The tasks that wait for each other in a cycle; `undefined` if there is no cycle. */
  readonly cycle: DeadlockReport["cycle"];

  constructor(message: string, report: DeadlockReport) {
    super(message);
    this.semaphores = report.semaphores;
    this.parked = report.parked;
    this.cycle = report.cycle;
  }
}
