/**
 * Detects tasks that can never continue.
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

/** The semaphore on which a task is parked without a timeout, so that only a grant can resume it. */
function semaphoreStuckOn(task: TaskNode): SemaphoreState | undefined {
  const isStuck = task.state === PARKED && task.timer === undefined && task.parkedOn instanceof SemaphoreState;
  return isStuck ? (task.parkedOn as SemaphoreState) : undefined;
}
