/**
 * The operations that need not park. Each is done at once for the running task, or returns `PARK` without any change.
 */
import { AcquireTimeoutError } from "../errors.ts";
import { callForeign } from "../foreign-call.ts";
import { boolean, finiteFrom, integer, type Rules, readOptions, string } from "../options.ts";
import { cancelTask } from "./cancel.ts";
import {
  ACQUIRE,
  CALL,
  CANCEL,
  COMPLETE_PROMISE,
  CREATE_PROMISE,
  CREATE_SEMAPHORE,
  DELAY,
  type EffectNode,
  FAIL_PROMISE,
  FROM_PROMISE,
  GATHER,
  LOG,
  NOW,
  PARK,
  RACE,
  RELEASE,
  type Runnable,
  SPAWN,
  TRY_ACQUIRE,
  WAIT,
} from "./effect.ts";
import { describe, toProgram } from "./program.ts";
import { PRIORITY_NORMAL } from "./ready-queue.ts";
import type { Scheduler } from "./scheduler.ts";
import { handleOf, type SemaphoreHandle, SemaphoreState } from "./semaphore.ts";
import { FULFILLED, FutureNode, PENDING, PromiseNode, REJECTED, settleableOf, unsettled } from "./settleable.ts";
import { type SpawnOptions, TaskNode } from "./task.ts";

export function perform(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): unknown {
  switch (effect.op) {
    case ACQUIRE:
      return acquire(scheduler, task, effect);
    case RELEASE:
      return scheduler.semaphoreOf(effect.subject).release(task);
    case TRY_ACQUIRE:
      return tryAcquire(task, scheduler.semaphoreOf(effect.subject));
    case NOW:
      return scheduler.now();
    case LOG:
      return log(scheduler, task, effect.subject);
    case SPAWN:
      return spawn(scheduler, task, effect);
    case WAIT:
      return resultOf(scheduler, effect.subject);
    case CANCEL:
      return cancel(scheduler, effect.subject);
    case CREATE_SEMAPHORE:
      return createSemaphore(scheduler, effect);
    case CREATE_PROMISE:
      return new PromiseNode(new FutureNode(scheduler.nextPromiseId++, scheduler));
    case COMPLETE_PROMISE:
      return scheduler.settle(unsettled(effect.subject, scheduler), FULFILLED, effect.detail);
    case FAIL_PROMISE:
      return scheduler.settle(unsettled(effect.subject, scheduler), REJECTED, effect.detail);
    case DELAY:
    case GATHER:
    case RACE:
    case FROM_PROMISE:
    case CALL:
      break;
  }
  return PARK;
}

function acquire(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): unknown {
  const semaphore = scheduler.semaphoreOf(effect.subject);
  const options = readDetail<{ timeoutMs?: number }>(effect, ACQUIRE_RULES);
  if (semaphore.available > 0) return semaphore.take(task);
  if (options?.timeoutMs !== 0) return PARK;
  throw timeoutOf(semaphore, 0);
}

export function timeoutOf(semaphore: SemaphoreState, waitedMs: number): AcquireTimeoutError {
  const { name, permits: capacity, available, waiting } = semaphore;
  const inUse = capacity - available;
  return new AcquireTimeoutError({ semaphore: name, key: undefined, capacity, inUse, waiting, waitedMs });
}

/** Tasks wait only while no permit is available, so this never takes a permit ahead of a waiter. */
function tryAcquire(task: TaskNode, semaphore: SemaphoreState): boolean {
  if (semaphore.available === 0) return false;
  semaphore.take(task);
  return true;
}

function log(scheduler: Scheduler, task: TaskNode, message: unknown): void {
  if (typeof message !== "string") throw new TypeError(`Expected \`message\` to be a string, got ${describe(message)}`);
  const { keepsLog, onLog } = scheduler.options;
  if (!keepsLog && onLog === undefined) return;
  const entry = { at: scheduler.now(), task: { id: task.id, name: task.name }, message };
  if (keepsLog) scheduler.log.push(entry);
  if (onLog !== undefined) callForeign(() => onLog(message, entry));
}

/** Reads the options of an effect. They stay in the effect as they were read, because parking reads them again. */
function readDetail<T extends object>(effect: EffectNode<unknown>, rules: Rules<T>): T | undefined {
  if (effect.detail !== undefined) effect.detail = readOptions(effect.detail as T, rules);
  return effect.detail as T | undefined;
}

const ACQUIRE_RULES = { timeoutMs: finiteFrom(0) };
const spawnRules = { name: string, priority: integer, daemon: boolean };

function spawn(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): unknown {
  const options = readDetail<SpawnOptions>(effect, spawnRules);
  if ((options?.priority ?? PRIORITY_NORMAL) > task.priority) return PARK;
  return scheduler.spawn(toProgram(effect.subject as Runnable<unknown>, "program"), options);
}

function resultOf(scheduler: Scheduler, subject: unknown): unknown {
  const source = settleableOf(subject, scheduler);
  if (source.settlement === PENDING) return PARK;
  if (source.settlement === FULFILLED) return source.result;
  if (source instanceof TaskNode) {
    source.isObserved = true;
    scheduler.unobserved.delete(source);
  }
  throw source.result;
}

function cancel(scheduler: Scheduler, subject: unknown): void {
  const target = settleableOf(subject, scheduler);
  if (!(target instanceof TaskNode)) throw new TypeError("Expected `task` to be a task, got a future");
  cancelTask(scheduler, target, undefined);
}

function createSemaphore(scheduler: Scheduler, effect: EffectNode<unknown>): SemaphoreHandle {
  const permits = effect.subject as number;
  if (!Number.isSafeInteger(permits) || permits < 1) throw new RangeError("permits must be >= 1");
  const options = readDetail<{ name?: string }>(effect, { name: string });
  return handleOf(new SemaphoreState(scheduler.nextSemaphoreId++, scheduler, permits, options?.name));
}
