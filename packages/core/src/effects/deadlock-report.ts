/** What a `DeadlockError` says: every semaphore with its holders and waiters, who else is parked, and the circle. */
import { DeadlockError, type TaskRef } from "./errors.ts";
import { Group } from "./group.ts";
import type { HoldInUse } from "./holds.ts";
import { membersOf } from "./members.ts";
import { OutsideWait } from "./outside-wait.ts";
import { SemaphoreState } from "./semaphore.ts";
import { type ParkedOn, SLEEP, TaskNode } from "./task.ts";

/** A task that holds permits of a semaphore in a `DeadlockReport`. */
export interface HolderReport {
  readonly task: TaskRef;
  readonly permits: number;
  /** It ended without releasing: the permits are leaked. */
  readonly hasEnded: boolean;
}

/** A semaphore in a `DeadlockReport`. */
export interface SemaphoreReport {
  readonly id: number;
  readonly name: string | undefined;
  readonly permits: number;
  readonly available: number;
  readonly holders: readonly HolderReport[];
  readonly waiters: readonly TaskRef[];
}

/** A task that waits, in a `DeadlockReport`. */
export interface ParkedReport {
  readonly task: TaskRef;
  /** What it waits for, in words. */
  readonly waitsFor: string;
}

/** What a `DeadlockError` reports about the tasks that cannot continue. */
export interface DeadlockReport {
  readonly semaphores: readonly SemaphoreReport[];
  readonly parked: readonly ParkedReport[];
  /** Each waits for something the next one holds or is, and the last for the first. */
  readonly cycle: readonly ParkedReport[] | undefined;
}

const LONGEST_LIST = 20;

/** A set of semaphores that died while others could still run. */
export function deadSetError(dead: Iterable<SemaphoreState>): DeadlockError {
  const semaphores = [...dead];
  return toError(
    "These semaphores are dead",
    semaphores,
    semaphores.flatMap((semaphore) => membersOf(semaphore.waiters)),
  );
}

/** Nothing can run: `tasks` are all that are left. */
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
  return { id, name, permits, available, holders, waiters: membersOf(semaphore.waiters).map(refOf) };
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

/** A circle among the tasks, where one waits for a permit the next one holds or for the next one's end. */
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

/** The error's fields list all tasks; its message stays readable when a million tasks are stuck. */
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
