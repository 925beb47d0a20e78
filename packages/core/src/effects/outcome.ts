/** The result of a run that is over. */
import { callForeign } from "../foreign-call.ts";
import { refOf } from "./deadlock.ts";
import type { TaskRef } from "./errors.ts";
import type { LogEntry, Scheduler } from "./scheduler.ts";
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

/** How a run ended, with the messages of its log and where they come from. */
export type Ending<T> = { readonly entries: readonly LogEntry[] } & (
  | { readonly failed: false; readonly result: SimulationResult<T> }
  | { readonly failed: true; readonly result: FailedRun }
);

/** Reports unobserved failures and returns how the run ended. Call it once. */
export function endingOf<T>(scheduler: Scheduler): Ending<T> {
  const failure = failureOf(scheduler, reportUnobserved(scheduler));
  const { log: entries, steps, leftOver, root } = scheduler;
  const rest = {
    now: scheduler.now(),
    log: entries.map((entry) => entry.message),
    steps,
    permitsLeaked: leakedPermits(scheduler),
    leftOver,
  };
  if (failure === undefined) return { failed: false, result: { value: root.result as T, ...rest }, entries };
  return { failed: true, result: { value: undefined, ...rest, error: failure.error }, entries };
}

/** The result of a run. Throws its error if it failed. */
export function resultOf<T>(ending: Ending<T>): SimulationResult<T> {
  if (ending.failed) throw ending.result.error;
  return ending.result;
}

function failureOf(scheduler: Scheduler, errors: readonly unknown[]): { readonly error: unknown } | undefined {
  const { failure, root } = scheduler;
  if (failure !== undefined) return { error: failure };
  if (root.settlement !== FULFILLED) return { error: root.result };
  if (errors.length < 2) return errors.length === 0 ? undefined : { error: errors[0] };
  return { error: new AggregateError(errors, `${errors.length} tasks failed, and no task waited for them`) };
}

/** Returns the errors that neither a waiting task nor `onUnhandled` handled. */
function reportUnobserved(scheduler: Scheduler): unknown[] {
  const { onUnhandled } = scheduler.options;
  const tasks = [...scheduler.unobserved];
  if (onUnhandled === undefined) return tasks.map((task) => task.result);
  for (const task of tasks) callForeign(() => onUnhandled(task.result, refOf(task)));
  return [];
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
