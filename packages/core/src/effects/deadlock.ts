/**
 * Who can never go on.
 *
 * A semaphore is **dead** if no task ever released it without holding it, and every holder of its permits has ended or
 * is parked, without a timeout, on a dead semaphore. (The largest set that satisfies this: holders that wait for each
 * other in a circle are dead, although each waits for another's death to be shown.)
 *
 * DEADLOCK1  `deadSetFrom(s)` is defined exactly if `s` is dead. One holder that is not stuck, anywhere in reach, is a proof of
 *     life: every semaphore on the way to it is alive.
 * DEADLOCK2  It is asked whenever a set may have closed: when a task parks on a semaphore, and when one ends with permits in
 *     its hands. No other event can make a semaphore dead.
 *
 * Cost: O(1) if the first holder is not itself waiting for a semaphore, else the length of the chain of semaphores in
 * front of it. It proves nothing about tasks that wait for tasks or promises: those are found when nothing can run.
 */
import { SemaphoreState } from "./semaphore.ts";
import { PARKED, type TaskNode } from "./task.ts";

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

/** The semaphore a task waits for with no way out but a grant. */
function semaphoreStuckOn(task: TaskNode): SemaphoreState | undefined {
  const isStuck = task.state === PARKED && task.timer === undefined && task.parkedOn instanceof SemaphoreState;
  return isStuck ? (task.parkedOn as SemaphoreState) : undefined;
}
