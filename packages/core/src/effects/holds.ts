/**
 * Who holds which permits: one record per task and semaphore, found from the task in O(1) and listed by the semaphore.
 * Most tasks hold permits of one semaphore at a time; only a second one makes a map.
 *
 * A semaphore keeps the records it has made and hands them out again, the one given back last first. Nothing is moved
 * when one is given back, so records in use lie among spare ones: listing them, for a report or a suspected deadlock,
 * looks at as many as there ever were holders at one time. The order of the records says nothing.
 */
import type { SemaphoreState } from "./semaphore.ts";
import type { TaskNode } from "./task.ts";

export class Hold {
  task: TaskNode | undefined;
  readonly semaphore: SemaphoreState;
  /** 1 in a spare record, too. */
  permits = 1;
  /** Of a task that has ended: it is in the semaphore's `leaked`, not in its `holders`. */
  readonly isLeaked: boolean;
  nextSpare: Hold | undefined = undefined;

  constructor(semaphore: SemaphoreState, isLeaked: boolean) {
    this.task = undefined;
    this.semaphore = semaphore;
    this.isLeaked = isLeaked;
  }
}

/** A record in use. A spare one has no task: keeping the last holder would keep its result alive. */
export interface HoldInUse extends Hold {
  task: TaskNode;
}

/** There are never more records than the semaphore has permits. */
export class HoldTable {
  /** How many are in use. */
  count = 0;
  readonly #semaphore: SemaphoreState;
  readonly #isLeaked: boolean;
  readonly #records: Hold[] = [];
  #spare: Hold | undefined = undefined;
  /** Where `first` found one in use. */
  #found: Hold | undefined = undefined;

  constructor(semaphore: SemaphoreState, isLeaked: boolean) {
    this.#semaphore = semaphore;
    this.#isLeaked = isLeaked;
  }

  /** One of those in use. */
  get first(): HoldInUse | undefined {
    if (this.count === 0) return undefined;
    if (this.#found?.task === undefined) this.#found = this.#records.find(isInUse);
    return this.#found as HoldInUse;
  }

  /** Those in use. */
  toArray(): HoldInUse[] {
    return this.#records.filter(isInUse);
  }

  /** A record of one permit. */
  add(task: TaskNode): Hold {
    const hold = this.#spare ?? this.#make();
    this.#spare = hold.nextSpare;
    hold.task = task;
    this.count++;
    return hold;
  }

  /** Makes a record of one permit spare. */
  remove(hold: Hold): void {
    hold.task = undefined;
    hold.nextSpare = this.#spare;
    this.#spare = hold;
    this.count--;
  }

  #make(): Hold {
    const hold = new Hold(this.#semaphore, this.#isLeaked);
    this.#records.push(hold);
    return hold;
  }
}

function isInUse(hold: Hold): hold is HoldInUse {
  return hold.task !== undefined;
}

export function findHold(task: TaskNode, semaphore: SemaphoreState): Hold | undefined {
  const held = task.held;
  return held !== undefined && held.semaphore === semaphore ? held : task.heldMore?.get(semaphore);
}

export function addHold(task: TaskNode, semaphore: SemaphoreState): void {
  const hold = findHold(task, semaphore);
  if (hold !== undefined) {
    hold.permits++;
    return;
  }
  const made = semaphore.holders.add(task);
  if (task.held === undefined) task.held = made;
  else (task.heldMore ??= new Map()).set(semaphore, made);
}

/** One permit less. */
export function dropHold(hold: Hold): void {
  if (hold.permits > 1) hold.permits--;
  else removeHold(hold);
}

function removeHold(hold: Hold): void {
  const { task, semaphore } = hold;
  if (task?.held === hold) task.held = undefined;
  else task?.heldMore?.delete(semaphore);
  (hold.isLeaked ? semaphore.leaked : semaphore.holders).remove(hold);
}

/**
 * The usual hand-off, from a task with one permit to one with none: the record itself moves, and no table is touched.
 * False, and nothing done, if it is not that case.
 */
export function handOver(semaphore: SemaphoreState, from: TaskNode, to: TaskNode): boolean {
  const hold = from.held;
  if (hold === undefined || hold.semaphore !== semaphore || hold.permits > 1) return false;
  if (to.held !== undefined || to.heldMore !== undefined) return false;
  from.held = undefined;
  hold.task = to;
  to.held = hold;
  return true;
}

/** One permit from the holder to `task`. */
export function moveHold(hold: Hold, task: TaskNode): void {
  dropHold(hold);
  addHold(task, hold.semaphore);
}

export function holdsOf(task: TaskNode): HoldInUse[] {
  const holds = task.heldMore === undefined ? [] : [...task.heldMore.values()];
  if (task.held !== undefined) holds.unshift(task.held);
  return holds as HoldInUse[];
}

/** The task has ended: what it still holds is leaked, until another task releases it. */
export function leakHold(hold: HoldInUse): void {
  hold.semaphore.leaked.add(hold.task).permits = hold.permits;
  hold.permits = 1;
  removeHold(hold);
}

/** All permits of one holder become another task's. */
export function bequeathHold(hold: Hold, heir: TaskNode): void {
  for (let left = hold.permits; left > 0; left--) moveHold(hold, heir);
}
