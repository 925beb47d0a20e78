/** What a run that is over has to say. */
import { refOf } from "./deadlock-report.ts";
import type { TaskRef } from "./errors.ts";
import type { Scheduler } from "./scheduler.ts";
import type { LogEntry } from "./scheduler-options.ts";
import { FULFILLED } from "./settleable.ts";

/** Permits of a task that ended without giving them back. */
export interface LeakedPermits {
  readonly semaphore: { readonly id: number; readonly name: string | undefined };
  readonly task: TaskRef;
  readonly permits: number;
}

/** What `simulate` returns. */
export interface SimulationResult<T> {
  /** What the root returned. */
  readonly value: T;
  /** The time at the end. */
  readonly now: number;
  /** The messages of `log`, in order. */
  readonly log: readonly string[];
  /** How many effects were performed. */
  readonly steps: number;
  readonly permitsLeaked: readonly LeakedPermits[];
  /** Tasks that had not ended when the root did, and were cancelled. Daemons are not listed. */
  readonly leftOver: readonly TaskRef[];
}

/** As above, for a run that failed: there is an error and no value. */
export interface FailedRun extends SimulationResult<undefined> {
  readonly error: unknown;
}

export interface Ending<T> {
  readonly failed: boolean;
  readonly result: SimulationResult<T> | FailedRun;
  readonly entries: readonly LogEntry[];
}

/** Reports unobserved failures, and says how the run ended. Call it once. */
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

/** The errors that were not handled: neither a waiting task nor `onUnhandled`. */
function reportUnobserved(scheduler: Scheduler): unknown[] {
  const { onUnhandled } = scheduler.options;
  const tasks = [...scheduler.unobserved];
  if (onUnhandled === undefined) return tasks.map((task) => task.result);
  for (const task of tasks) {
    try {
      onUnhandled(task.result, refOf(task));
    } catch {
      // An observer must not change how the run ends.
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
