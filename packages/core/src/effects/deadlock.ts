/**
 * Detects tasks that can never continue, and reports them: every semaphore with its holders and waiters, all other parked
 * tasks, and the cycle.
 *
 * A semaphore is **dead** if no task ever released it without holding it, and every holder of its permits has ended or
 * is parked, without a timeout, on a dead semaphore. This means the largest such set: holders that wait for each other
 * in a cycle are all dead.
 *
 * DEADLOCK1  `deadSetFrom(s)` is defined if and only if `s` is dead. One reachable holder that is not stuck proves that
 *     every semaphore on the way to it is alive.
 * DEADLOCK2  It is called whenever a set may have become dead: when a task parks on a semaphore, and when a task ends
 *     while it holds permits. No other event can make a semaphore dead.
 *
 * Cost: O(1) if the first holder does not wait for a semaphore, otherwise the length of the chain of semaphores. It
 * proves nothing about tasks that wait for tasks or promises. Those are found when nothing can run.
 */
import { DeadlockError, type TaskRef } from "./errors.ts";
import { Group } from "./group.ts";
import type { HoldInUse } from "./holds.ts";
import { OutsideWait } from "./outside-wait.ts";
import { SemaphoreState } from "./semaphore.ts";
import { PARKED, type ParkedOn, SLEEP, TaskNode } from "./task.ts";

/** A task that holds permits of a semaphore in a `DeadlockReport`. */
export interface HolderReport {
  /** The holder. */
  readonly task: TaskRef;
  /** The number of permits that it holds. */
  readonly permits: number;
  /** Whether the task ended without releasing them: then the permits are leaked. */
  readonly hasEnded: boolean;
}

/** A semaphore in a `DeadlockReport`. */
export interface SemaphoreReport {
  /** The `id` of the `SemaphoreHandle`. */
  readonly id: number;
  /** The `name` option of `createSemaphore`, or `undefined`. */
  readonly name: string | undefined;
  /** The number of permits of the semaphore. */
  readonly permits: number;
  /** The number of free permits. */
  readonly available: number;
  /** The tasks that hold permits, including ended ones. */
  readonly holders: readonly HolderReport[];
  /** The tasks that wait for a permit, in the order of arrival. */
  readonly waiters: readonly TaskRef[];
}

/** A task that waits, in a `DeadlockReport`. */
export interface ParkedReport {
  /** The task that waits. */
  readonly task: TaskRef;
  /** What it waits for, as text for a message. */
  readonly waitsFor: string;
}

/** What a `DeadlockError` reports about the tasks that cannot continue. */
export interface DeadlockReport {
  /** The semaphores that are involved, with their holders and waiters. */
  readonly semaphores: readonly SemaphoreReport[];
  /** The tasks that wait, and what they wait for. */
  readonly parked: readonly ParkedReport[];
  /**
   * The tasks that wait for each other: each waits for the next one, and the last for the first. `undefined` if there
   * is no cycle.
   */
  readonly cycle: readonly ParkedReport[] | undefined;
}

const LONGEST_LIST = 20;

export function deadSetFrom(start: SemaphoreState): Set<SemaphoreState> | undefined {
  const first = start.holders.first?.task;
  if (start.isSignalled || (first !== undefined && semaphoreStuckOn(first) === undefined)) return undefined;
  const dead = new Set([start]);
  for (const semaphore of dead) {
    if (semaphore.isSignalled || semaphore.available > 0) return undefined;
    for (const hold of semaphore.holders.toArray()) {
      const next = semaphoreStuckOn(hold.task);
      if (next === undefined) return undefined;
      dead.add(next);
    }
  }
  return dead;
}

/** The semaphore on which a task is parked without a timeout, so that only a grant can resume it. */
function semaphoreStuckOn(task: TaskNode): SemaphoreState | undefined {
  const isStuck = task.state === PARKED && task.timer === undefined && task.parkedOn instanceof SemaphoreState;
  return isStuck ? (task.parkedOn as SemaphoreState) : undefined;
}

/** Reports a set of dead semaphores while other tasks can still run. */
export function deadSetError(dead: Iterable<SemaphoreState>): DeadlockError {
  const semaphores = [...dead];
  const tasks = semaphores.flatMap((semaphore) => semaphore.waitingTasks());
  return toError("These semaphores are dead", semaphores, tasks);
}

/** Reports that nothing can run. `tasks` are all remaining tasks. */
export function standstillError(tasks: readonly TaskNode[]): DeadlockError {
  const semaphores = new Set(tasks.map((task) => task.parkedOn).filter((on) => on instanceof SemaphoreState));
  return toError("Nothing can run and nothing is pending", [...semaphores], tasks);
}

function toError(what: string, semaphores: readonly SemaphoreState[], tasks: readonly TaskNode[]): DeadlockError {
  const circle = findCircle(tasks);
  const report: DeadlockReport = {
    semaphores: semaphores.toSorted((a, b) => a.id - b.id).map(reportOf),
    parked: tasks.map(parkedReport),
    cycle: circle?.map(parkedReport),
  };
  return new DeadlockError(toMessage(what, report), report);
}

function reportOf(semaphore: SemaphoreState): SemaphoreReport {
  const { id, name, permits, available } = semaphore;
  const holders = [
    ...semaphore.holders.toArray().map((hold) => holderReport(hold, false)),
    ...semaphore.leaked.toArray().map((hold) => holderReport(hold, true)),
  ];
  return { id, name, permits, available, holders, waiters: semaphore.waitingTasks().map(refOf) };
}

function holderReport(hold: HoldInUse, hasEnded: boolean): HolderReport {
  return { task: refOf(hold.task), permits: hold.permits, hasEnded };
}

export function refOf(task: TaskNode): TaskRef {
  return { id: task.id, name: task.name };
}

function parkedReport(task: TaskNode): ParkedReport {
  return { task: refOf(task), waitsFor: inWords(task.parkedOn) };
}

function inWords(on: ParkedOn | undefined): string {
  if (on instanceof SemaphoreState) return `semaphore ${nameOf(on)}`;
  if (on instanceof TaskNode) return `task ${show(on)}`;
  if (on instanceof Group) return on.pending.map(inWords).join(on.kind === "gather" ? " and " : " or ");
  if (on instanceof OutsideWait) return "a promise from outside";
  if (on === undefined || on === SLEEP) return "its turn";
  return `promise ${on.id}`;
}

/** Finds a cycle of tasks in which each waits for a permit that the next one holds, or for the end of the next one. */
function findCircle(tasks: readonly TaskNode[]): TaskNode[] | undefined {
  const finished = new Set<TaskNode>();
  for (const start of tasks) {
    const path = [{ task: start, next: waitedFor(start.parkedOn) }];
    const onPath = new Set([start]);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const next = top.next.pop();
      if (next === undefined) {
        onPath.delete(top.task);
        finished.add(top.task);
        path.pop();
      } else if (onPath.has(next)) {
        return path.map(({ task }) => task).slice(path.findIndex(({ task }) => task === next));
      } else if (!finished.has(next)) {
        onPath.add(next);
        path.push({ task: next, next: waitedFor(next.parkedOn) });
      }
    }
  }
  return undefined;
}

function waitedFor(on: ParkedOn | undefined): TaskNode[] {
  if (on instanceof SemaphoreState) return on.holders.toArray().map((hold) => hold.task);
  if (on instanceof TaskNode) return [on];
  if (on instanceof Group) return on.pending.filter((source) => source instanceof TaskNode);
  return [];
}

function toMessage(what: string, report: DeadlockReport): string {
  const lines = [`Deadlock. ${what}:`];
  for (const semaphore of report.semaphores) {
    const holders = semaphore.holders.map(
      ({ task, permits, hasEnded }) =>
        `${show(task)}${permits > 1 ? ` × ${permits}` : ""}${hasEnded ? ", which has ended" : ""}`,
    );
    lines.push(`  semaphore ${nameOf(semaphore)}: ${semaphore.available} of ${semaphore.permits} permits free`);
    lines.push(`    held by ${shortened(holders, "; ")}`);
    lines.push(`    waited for by ${shortened(semaphore.waiters.map(show), "; ")}`);
  }
  lines.push(
    `  ${shortened(
      report.parked.map(({ task, waitsFor }) => `${show(task)} waits for ${waitsFor}`),
      "\n  ",
    )}`,
  );
  if (report.cycle !== undefined) {
    const names = [...report.cycle, report.cycle[0]].map((step) => show((step as ParkedReport).task));
    lines.push(`  cycle: ${shortened(names, " → ")}`);
  }
  return lines.join("\n");
}

/** Shortens the message, so that it stays readable with a million tasks. The fields of the error list all of them. */
function shortened(items: readonly string[], separator: string): string {
  if (items.length === 0) return "no task";
  const shown = items.slice(0, LONGEST_LIST);
  if (items.length > LONGEST_LIST) shown.push(`and ${items.length - LONGEST_LIST} more`);
  return shown.join(separator);
}

function nameOf(semaphore: { readonly id: number; readonly name: string | undefined }): string {
  return semaphore.name === undefined ? `${semaphore.id}` : `${semaphore.id} "${semaphore.name}"`;
}

function show(task: TaskRef): string {
  return `"${task.name}" (${task.id})`;
}
