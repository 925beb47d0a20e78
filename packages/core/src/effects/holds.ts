/**
 * Who holds which permits: one record per task and semaphore, found from the task in O(1) and listed by the semaphore.
 * Most tasks hold permits of one semaphore at a time; only a second one makes a map.
 *
 * A semaphore's table is an array: records in use come first, spare ones behind them. Taking and giving back move the
 * border between the two, so an acquire and a release write two references each, where a linked list writes eight, and
 * no young record is ever linked between old ones, which would be work for the garbage collector at every acquire.
 * The order of the records says nothing.
 */
import type { SemaphoreState } from "./semaphore.ts";
import type { TaskNode } from "./task.ts";

export class Hold {
  task: TaskNode;
  readonly semaphore: SemaphoreState;
  permits = 1;
  /** Its place in the table. */
  index: number;
  /** Of a task that has ended: it is in the semaphore's `leaked`, not in its `holders`. */
  readonly isLeaked: boolean;

  constructor(task: TaskNode, semaphore: SemaphoreState, index: number, isLeaked: boolean) {
    this.task = task;
    this.semaphore = semaphore;
    this.index = index;
    this.isLeaked = isLeaked;
  }
}

/** A spare record's task: it is never read. Keeping the last holder would keep its result alive. */
const NOBODY = undefined as unknown as TaskNode;

/** There are never more records than the semaphore has permits. */
export class HoldTable {
  /** How many are in use. */
  count = 0;
  readonly #semaphore: SemaphoreState;
  readonly #isLeaked: boolean;
  readonly #records: Hold[] = [];

  constructor(semaphore: SemaphoreState, isLeaked: boolean) {
    this.#semaphore = semaphore;
    this.#isLeaked = isLeaked;
  }

  get first(): Hold | undefined {
    return this.count === 0 ? undefined : this.#records[0];
  }

  /** Those in use. */
  toArray(): Hold[] {
    return this.#records.slice(0, this.count);
  }

  /** A record of one permit. */
  add(task: TaskNode): Hold {
    const index = this.count++;
    if (index === this.#records.length) {
      const made = new Hold(task, this.#semaphore, index, this.#isLeaked);
      this.#records.push(made);
      return made;
    }
    const spare = this.#records[index] as Hold;
    spare.task = task;
    spare.permits = 1;
    return spare;
  }

  /** Makes a record spare: it changes places with the last one in use. */
  remove(hold: Hold): void {
    const lastIndex = --this.count;
    const last = this.#records[lastIndex] as Hold;
    if (last !== hold) {
      this.#records[hold.index] = last;
      last.index = hold.index;
      this.#records[lastIndex] = hold;
      hold.index = lastIndex;
    }
    hold.task = NOBODY;
  }
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
  if (--hold.permits === 0) removeHold(hold);
}

function removeHold(hold: Hold): void {
  const { task, semaphore } = hold;
  if (task.held === hold) task.held = undefined;
  else task.heldMore?.delete(semaphore);
  (hold.isLeaked ? semaphore.leaked : semaphore.holders).remove(hold);
}

/** One permit from the holder to `task`. The record itself moves where it can: a hand-off then touches no table. */
export function moveHold(hold: Hold, task: TaskNode): void {
  const isWhole = hold.permits === 1 && task.held === undefined && task.heldMore === undefined;
  if (isWhole && hold.task.held === hold) {
    hold.task.held = undefined;
    hold.task = task;
    task.held = hold;
    return;
  }
  dropHold(hold);
  addHold(task, hold.semaphore);
}

export function holdsOf(task: TaskNode): Hold[] {
  const more = task.heldMore === undefined ? [] : [...task.heldMore.values()];
  return task.held === undefined ? more : [task.held, ...more];
}

/** The task has ended: what it still holds is leaked, until somebody else gives it back. */
export function leakHold(hold: Hold): void {
  hold.semaphore.leaked.add(hold.task).permits = hold.permits;
  removeHold(hold);
}

/** All permits of one holder become another task's. */
export function bequeathHold(hold: Hold, heir: TaskNode): void {
  for (let left = hold.permits; left > 0; left--) moveHold(hold, heir);
}
