/**
 * How tasks and the run end.
 *
 * A run has three phases. **Running** lasts until the root ends, the run is aborted or nothing can run. **Unwinding**:
 * all tasks except daemons are cancelled and run their `finally` blocks; daemons continue to serve them. **Over**:
 * daemons are dropped, and nothing is resumed again.
 */
import { cancelTask, withdraw } from "./cancel.ts";
import { deadSetError, deadSetFrom, refOf, standstillError } from "./deadlock.ts";
import { bequeathHold, holdsOf, leakHold } from "./holds.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SemaphoreState } from "./semaphore.ts";
import { FULFILLED, REJECTED } from "./settleable.ts";
import { ENDED, PARKED, type TaskNode } from "./task.ts";

export function endTask(scheduler: Scheduler, task: TaskNode, result: unknown, threw: boolean): void {
  task.state = ENDED;
  removeLive(scheduler, task);
  const settlement = threw ? REJECTED : FULFILLED;
  const isFailure = threw && result !== task.cancelError;
  if (isFailure && !task.isObserved && task !== scheduler.root) scheduler.unobserved.add(task);
  if (task.held === undefined && task.heldMore === undefined) scheduler.settle(task, settlement, result);
  else {
    const left = passOnHolds(scheduler, task, threw);
    scheduler.settle(task, settlement, result);
    for (const semaphore of left) failDeadWaiters(scheduler, semaphore);
  }
  if (task === scheduler.root) unwind(scheduler, undefined);
  if (scheduler.liveCount === 0) dropAll(scheduler);
}

function removeLive(scheduler: Scheduler, task: TaskNode): void {
  if (task.livePrev === undefined) scheduler.liveHead = task.liveNext;
  else task.livePrev.liveNext = task.liveNext;
  if (task.liveNext === undefined) scheduler.liveTail = task.livePrev;
  else task.liveNext.livePrev = task.livePrev;
  task.livePrev = undefined;
  task.liveNext = undefined;
  if (!task.daemon) scheduler.liveCount--;
}

/** Permits of an item of a group move to its parent. Permits of any other task are leaked. */
function passOnHolds(scheduler: Scheduler, task: TaskNode, threw: boolean): readonly SemaphoreState[] {
  const heir = threw || task.parent?.state === ENDED ? undefined : task.parent;
  return holdsOf(task).map((hold) => {
    if (heir !== undefined) bequeathHold(hold, heir);
    else {
      leakHold(hold);
      scheduler.leaking.add(hold.semaphore);
    }
    return hold.semaphore;
  });
}

/**
 * The end of a task has made a set of semaphores dead. That task cannot get the error any more, so the waiters get it
 * one by one. Waiters that hold permits come first; it stops when a release by one of them could save the rest.
 */
function failDeadWaiters(scheduler: Scheduler, semaphore: SemaphoreState): void {
  let dead = semaphore.waiters.first === undefined ? undefined : deadSetFrom(semaphore);
  if (dead === undefined) return;
  const error = deadSetError(dead);
  const stuck = semaphore.waitingTasks().filter((waiter) => waiter.timer === undefined);
  const holders = stuck.filter((waiter) => holdsOf(waiter).length > 0);
  for (const waiter of new Set([...holders, ...stuck])) {
    semaphore.leave(waiter);
    scheduler.wake(waiter, error, true);
    dead = deadSetFrom(semaphore);
    if (dead === undefined) return;
  }
}

/** Cancels all remaining tasks, including the root if it has not ended. */
export function unwind(scheduler: Scheduler, cause: unknown): void {
  if (scheduler.isUnwinding) return;
  scheduler.isUnwinding = true;
  for (const task of liveTasks(scheduler)) {
    if (task.daemon) continue;
    if (task !== scheduler.root && task.parent === undefined) scheduler.leftOver.push(refOf(task));
    cancelTask(scheduler, task, cause);
  }
}

/** Called when nothing is ready, no timer is set and no outside promise is awaited: the run cannot continue. */
export function standstill(scheduler: Scheduler): void {
  scheduler.failure ??= standstillError(liveTasks(scheduler));
  unwind(scheduler, scheduler.failure);
  if (scheduler.ready.size === 0) dropAll(scheduler);
}

/** Ends the run: remaining tasks are never resumed, and leave no timer and no pending work outside. */
export function dropAll(scheduler: Scheduler): void {
  scheduler.isOver = true;
  for (const task of liveTasks(scheduler)) {
    if (task.state === PARKED) withdraw(scheduler, task, scheduler.failure);
    task.state = ENDED;
  }
  scheduler.liveHead = undefined;
  scheduler.liveTail = undefined;
}

function liveTasks(scheduler: Scheduler): TaskNode[] {
  const tasks: TaskNode[] = [];
  for (let task = scheduler.liveHead; task !== undefined; task = task.liveNext) tasks.push(task);
  return tasks;
}
