/**
 * What can go wrong inside a run, beyond `AcquireTimeoutError` (the library's own, `../errors.ts`) and misuse, which is
 * a `TypeError` or `RangeError` at the yield. `docs/reference/errors-effects.md` lists the same table; a test compares
 * the two both ways. The library's own factory is not used: it makes the message of the fields, to be small.
 */
import { type EffectErrorCode, SlotkeeperError } from "../errors.ts";
import type { DeadlockReport } from "./deadlock-report.ts";

/** Every code of `slotkeeper/effects`, the class that carries it, and whether the same call may succeed later. */
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

/** The class that the table names, but for its message and fields. */
function errorOf<Code extends keyof Codes>(code: Code): ErrorClass<Code> {
  const { class: name, retryable }: Codes[Code] = EFFECT_ERROR_CODES[code];
  abstract class EffectError extends SlotkeeperError {
    override readonly name: Codes[Code]["class"] = name;
    override readonly code: Code = code;
    override readonly retryable: Codes[Code]["retryable"] = retryable;
  }
  return EffectError;
}

/** Who a report is about. */
export interface TaskRef {
  readonly id: number;
  readonly name: string;
}

/** Somebody cancelled the task. Thrown into it so that its `finally` blocks run, and to whoever waits for it. */
export class TaskCancelledError extends errorOf("TASK_CANCELLED") {
  readonly task: TaskRef;

  constructor(task: TaskRef, cause?: unknown) {
    super(`Task "${task.name}" was cancelled`, cause === undefined ? undefined : { cause });
    this.task = task;
  }
}

/** A permit was given back that nobody had taken. */
export class OverReleaseError extends errorOf("OVER_RELEASE") {
  readonly semaphoreId: number;
  readonly permits: number;

  constructor(semaphoreId: number, permits: number) {
    super("semaphore released too many times");
    this.semaphoreId = semaphoreId;
    this.permits = permits;
  }
}

/** The promise has its result already; that first result stands. */
export class PromiseSettledError extends errorOf("PROMISE_SETTLED") {
  readonly promiseId: number;

  constructor(promiseId: number, how: "completed" | "failed") {
    super(`Promise ${promiseId} was ${how} already`);
    this.promiseId = promiseId;
  }
}

/** A simulation went on for longer than `maxSteps`: most likely it never ends. */
export class StepLimitError extends errorOf("STEP_LIMIT") {
  readonly maxSteps: number;

  constructor(maxSteps: number, task: TaskRef) {
    super(`The run took more than ${maxSteps} steps; the last was of task "${task.name}"`);
    this.maxSteps = maxSteps;
  }
}

/** Nobody can ever go on: the whole run, or a set of semaphores whose holders all wait for one another or have ended. */
export class DeadlockError extends errorOf("DEADLOCK") {
  readonly semaphores: DeadlockReport["semaphores"];
  readonly parked: DeadlockReport["parked"];
  readonly cycle: DeadlockReport["cycle"];

  constructor(message: string, report: DeadlockReport) {
    super(message);
    this.semaphores = report.semaphores;
    this.parked = report.parked;
    this.cycle = report.cycle;
  }
}
