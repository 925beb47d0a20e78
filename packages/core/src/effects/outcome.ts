/** The result of a run that is over. */
import { refOf } from "./deadlock-report.ts";
import type { TaskRef } from "./errors.ts";
import type { Scheduler } from "./scheduler.ts";
import type { LogEntry } from "./scheduler-options.ts";
import { FULFILLED } from "./settleable.ts";

/** Permits of a task that ended without releasing them. */
export interface LeakedPermits {
  /** The semaphore of the permits. */
  readonly semaphore: { readonly id: number; readonly name: string | undefined };
  /** The task that ended. */
  readonly task: TaskRef;
  /** The number of permits that it still held. */
  readonly permits: number;
}

/** What `simulate` returns. */
export interface SimulationResult<T> {
  /** The value that the root task returned. */
  readonly value: T;
  /** The time at the end, in milliseconds: virtual time from 0 under `simulate`, the time of the clock under `run`. */
  readonly now: number;
  /** The messages of `log`, in order. */
  readonly log: readonly string[];
  /** The number of effects that were performed. */
  readonly steps: number;
  /** The permits that ended tasks did not release. */
  readonly permitsLeaked: readonly LeakedPermits[];
  /** The tasks that were cancelled because the root ended before them. Daemons are not listed. */
  readonly leftOver: readonly TaskRef[];
}

/** The result of a run that failed: it has an error and no value. */
export interface FailedRun extends SimulationResult<undefined> {
  /** The error with which the run failed. */
  readonly error: unknown;
}

export interface Ending<T> {
  readonly failed: boolean;
  readonly result: SimulationResult<T> | FailedRun;
  readonly entries: readonly LogEntry[];
}

/** Reports unobserved failures and returns how the run ended. Call it once. */
export function endingOf<T>(scheduler: Scheduler): Ending<T> {
  const errors = reportUnobserved(scheduler);
  const rest = {
    now: scheduler.now(),
    log: scheduler.log.map((entry) => entry.message),
    steps: scheduler.steps,
    permitsLeaked: leakedPermits(scheduler),
    leftOver: scheduler.leftOver,
  };
  const entries = scheduler.log;
  const { failure, root } = scheduler;
  if (failure !== undefined) return { failed: true, result: { value: undefined, ...rest, error: failure }, entries };
  if (root.settlement !== FULFILLED) {
    return { failed: true, result: { value: undefined, ...rest, error: root.result }, entries };
  }
  if (errors.length === 0) return { failed: false, result: { value: root.result as T, ...rest }, entries };
  const error = errors.length === 1 ? errors[0] : severalFailed(errors);
  return { failed: true, result: { value: undefined, ...rest, error }, entries };
}

/** Returns the errors that neither a waiting task nor `onUnhandled` handled. */
function reportUnobserved(scheduler: Scheduler): unknown[] {
  const { onUnhandled } = scheduler.options;
  const tasks = [...scheduler.unobserved];
  if (onUnhandled === undefined) return tasks.map((task) => task.result);
  for (const task of tasks) {
    try {
      onUnhandled(task.result, refOf(task));
    } catch {
      // An error of an observer must not change how the run ends.
    }
  }
  return [];
}

function severalFailed(errors: readonly unknown[]): AggregateError {
  return new AggregateError(errors, `${errors.length} tasks failed, and no task waited for them`);
}

function leakedPermits(scheduler: Scheduler): LeakedPermits[] {
  return [...scheduler.leaking].flatMap((semaphore) =>
    semaphore.leaked.toArray().map((hold) => ({
      semaphore: { id: semaphore.id, name: semaphore.name },
      task: refOf(hold.task),
      permits: hold.permits,
    })),
  );
}
