/**
 * Cancellation: the task gets its `TaskCancelledError` at its next resumption. A parked task is resumed at once.
 *
 * CANCEL1  A parked acquirer leaves the queue and takes no permit. A permit that is on its way to it goes to the next
 *     waiter, or back to the semaphore.
 * CANCEL2  The first cancel counts. Later ones do nothing, and neither does the cancel of a task that has ended.
 * CANCEL3  Nothing is left behind: no waiter, no timer, no observer. The signal of an outside promise is aborted.
 */
import { TaskCancelledError } from "./errors.ts";
import { Group } from "./group.ts";
import { OutsideWait } from "./outside-wait.ts";
import type { Scheduler } from "./scheduler.ts";
import { SemaphoreState } from "./semaphore.ts";
import { ENDED, READY, RUNNING, SLEEP, type TaskNode } from "./task.ts";

export function cancelTask(scheduler: Scheduler, target: TaskNode, cause: unknown): void {
  if (target.state === ENDED || target.cancelError !== undefined) return;
  const error = new TaskCancelledError({ id: target.id, name: target.name }, cause);
  target.cancelError = error;
  if (target.state === RUNNING) {
    target.isInterrupted = true;
    return;
  }
  withdraw(scheduler, target, error);
  if (target.state !== READY) scheduler.wake(target, error, true);
  target.parkedOn = undefined;
  target.result = error;
  target.throws = true;
}

/** Removes a task from whatever it is parked on. */
export function withdraw(scheduler: Scheduler, task: TaskNode, reason: unknown): void {
  const on = task.parkedOn;
  if (on === undefined) return;
  if (on instanceof SemaphoreState) withdrawAcquire(scheduler, task, on);
  else if (on === SLEEP) scheduler.timers.remove(task);
  else if (on instanceof Group) on.leave();
  else if (on instanceof OutsideWait) {
    scheduler.outsideCount--;
    on.abandon(reason);
  } else task.list?.remove(task);
}

function withdrawAcquire(scheduler: Scheduler, task: TaskNode, semaphore: SemaphoreState): void {
  if (task.timer !== undefined) {
    scheduler.timers.remove(task.timer);
    task.timer = undefined;
  }
  if (task.state === READY) semaphore.returnFrom(task);
  else semaphore.leave(task);
}
