/**
 * Who holds which permits: one record per task and semaphore, found from the task in O(1) and listed by the semaphore.
 * Most tasks hold permits of one semaphore at a time; only a second one makes a map.
 */
import { Link } from "../linked-list.ts";
import type { SemaphoreState } from "./semaphore.ts";
import type { TaskNode } from "./task.ts";

/** Linked into its semaphore's `holders`, or `leaked` once the task has ended. */
export class Hold extends Link {
  task: TaskNode;
  readonly semaphore: SemaphoreState;
  permits = 1;

  constructor(task: TaskNode, semaphore: SemaphoreState) {
    super();
    this.task = task;
    this.semaphore = semaphore;
  }
}

/** A spare record's task: it is never read. Keeping the last holder would keep its result alive. */
const NOBODY = undefined as unknown as TaskNode;

/**
 * Records are kept for reuse: a young record linked between old ones would be work for the garbage collector at every
 * acquire. There are never more than the semaphore has permits.
 */
function newHold(task: TaskNode, semaphore: SemaphoreState): Hold {
  const spare = semaphore.spareHold;
  if (spare === undefined) return new Hold(task, semaphore);
  semaphore.spareHold = spare.next as Hold | undefined;
  spare.next = undefined;
  spare.task = task;
  spare.permits = 1;
  return spare;
}

export function findHold(task: TaskNode, semaphore: SemaphoreState): Hold | undefined {
  return task.held?.semaphore === semaphore ? task.held : task.heldMore?.get(semaphore);
}

export function addHold(task: TaskNode, semaphore: SemaphoreState): void {
  const hold = findHold(task, semaphore);
  if (hold !== undefined) {
    hold.permits++;
    return;
  }
  const made = newHold(task, semaphore);
  semaphore.holders.add(made);
  if (task.held === undefined) task.held = made;
  else (task.heldMore ??= new Map()).set(semaphore, made);
}

/** One permit less. */
export function dropHold(hold: Hold): void {
  if (--hold.permits > 0) return;
  hold.list?.remove(hold);
  if (hold.task.held === hold) hold.task.held = undefined;
  else hold.task.heldMore?.delete(hold.semaphore);
  hold.task = NOBODY;
  hold.next = hold.semaphore.spareHold;
  hold.semaphore.spareHold = hold;
}

/** One permit from the holder to `task`. The record itself moves where it can: a hand-off then allocates nothing. */
export function moveHold(hold: Hold, task: TaskNode): void {
  const isWhole = hold.permits === 1 && task.held === undefined && task.heldMore === undefined;
  if (isWhole && hold.task.held === hold && hold.list === hold.semaphore.holders) {
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
  hold.semaphore.holders.remove(hold);
  hold.semaphore.leaked.add(hold);
}

/** All permits of one holder become another task's. */
export function bequeathHold(hold: Hold, heir: TaskNode): void {
  for (let left = hold.permits; left > 0; left--) moveHold(hold, heir);
}
