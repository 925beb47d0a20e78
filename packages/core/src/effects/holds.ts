/**
 * Records which task holds which permits: one record per task and semaphore. A task finds its record in O(1), and the
 * semaphore can list all of them. Most tasks hold permits of one semaphore at a time, so only a second semaphore
 * creates a map.
 *
 * A semaphore reuses its records, the last returned one first. Records are not moved, so used and spare records are
 * mixed. Listing the used ones, for a report or a suspected deadlock, visits as many records as there ever were holders
 * at one time. The order of the records has no meaning.
 */
import type { SemaphoreState } from "./semaphore.ts";
import type { TaskNode } from "./task.ts";

export class Hold {
  task: TaskNode | undefined;
  readonly semaphore: SemaphoreState;
  /** Also 1 in a spare record. */
  permits = 1;
  /** Whether the task has ended. Then the record is in `leaked` of the semaphore, not in `holders`. */
  readonly isLeaked: boolean;
  nextSpare: Hold | undefined = undefined;

  constructor(semaphore: SemaphoreState, isLeaked: boolean) {
    this.task = undefined;
    this.semaphore = semaphore;
    this.isLeaked = isLeaked;
  }
}

/** A used record. A spare record has no task, because it would keep the result of its last holder alive. */
export interface HoldInUse extends Hold {
  task: TaskNode;
}

/** There are never more records than the semaphore has permits. */
export class HoldTable {
  /** The number of used records. */
  count = 0;
  readonly #semaphore: SemaphoreState;
  readonly #isLeaked: boolean;
  readonly #records: Hold[] = [];
  #spare: Hold | undefined = undefined;
  /** The used record that `first` found last. */
  #found: Hold | undefined = undefined;

  constructor(semaphore: SemaphoreState, isLeaked: boolean) {
    this.#semaphore = semaphore;
    this.#isLeaked = isLeaked;
  }

  /** Any used record. */
  get first(): HoldInUse | undefined {
    if (this.count === 0) return undefined;
    if (this.#found?.task === undefined) this.#found = this.#records.find(isInUse);
    return this.#found as HoldInUse;
  }

  /** All used records. */
  toArray(): HoldInUse[] {
    return this.#records.filter(isInUse);
  }

  /** Returns a record of one permit. */
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

/** Removes one permit from a record. */
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
 * The usual hand-off, from a task with one permit to a task with none: the record itself moves, and no table changes.
 * Returns false, without any change, in all other cases.
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

/** Moves one permit from the holder to `task`. */
export function moveHold(hold: Hold, task: TaskNode): void {
  dropHold(hold);
  addHold(task, hold.semaphore);
}

export function holdsOf(task: TaskNode): HoldInUse[] {
  const holds = task.heldMore === undefined ? [] : [...task.heldMore.values()];
  if (task.held !== undefined) holds.unshift(task.held);
  return holds as HoldInUse[];
}

/** Called when a task ends: its permits are leaked until another task releases them. */
export function leakHold(hold: HoldInUse): void {
  hold.semaphore.leaked.add(hold.task).permits = hold.permits;
  hold.permits = 1;
  removeHold(hold);
}

/** Moves all permits of one holder to another task. */
export function bequeathHold(hold: Hold, heir: TaskNode): void {
  for (let left = hold.permits; left > 0; left--) moveHold(hold, heir);
}
