/** The operations that park the running task or switch to another one. */

import { check, finiteFrom } from "../options.ts";
import { deadSetError, deadSetFrom } from "./deadlock.ts";
import {
  ACQUIRE,
  CALL,
  DELAY,
  EffectNode,
  FROM_PROMISE,
  GATHER,
  type Parking,
  type Program,
  RACE,
  type Runnable,
  SPAWN,
  WAIT,
} from "./effect.ts";
import { Group } from "./group.ts";
import { answerTo } from "./kept-effects.ts";
import { OutsideWait, type PromiseSource, type Resolver } from "./outside-wait.ts";
import { perform } from "./perform.ts";
import { describe, isProgram, toProgram } from "./program.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SemaphoreState } from "./semaphore.ts";
import { PENDING, Settleable, settleableOf } from "./settleable.ts";
import { PARKED, type ParkedOn, READY, RUNNING, SLEEP, type SpawnOptions, TaskNode, Timeout } from "./task.ts";

const DURATION = finiteFrom(0);

/**
 * Returns true if the task continues at once, with `result` and `throws` set. An error that this throws is thrown at
 * the yield. It does not assume that `perform` has refused the effect for this task: several tasks may yield the same
 * effect.
 */
export function parkOrGoOn(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): boolean {
  switch (effect.op as Parking) {
    case ACQUIRE:
      return parkOnSemaphore(scheduler, task, effect);
    case DELAY:
      return sleep(scheduler, task, effect);
    case SPAWN:
      return giveWay(scheduler, task, effect);
    case WAIT:
      return parkOnResult(scheduler, task, effect);
    case GATHER:
      return parkOnGroup(scheduler, task, "gather", effect.subject as unknown[]);
    case RACE:
      return parkOnGroup(scheduler, task, "race", effect.subject as unknown[]);
    case FROM_PROMISE:
      return parkOutside(scheduler, task, effect);
    case CALL:
      break;
  }
  return call(task, effect.subject as () => Program<unknown>);
}

function park(task: TaskNode, on: ParkedOn): false {
  task.parkedOn = on;
  task.state = PARKED;
  return false;
}

function goOn(task: TaskNode, result: unknown): true {
  task.result = result;
  return true;
}

function parkOnSemaphore(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): boolean {
  const semaphore = scheduler.semaphoreOf(effect.subject);
  const timeoutMs = (effect.detail as { timeoutMs?: number } | undefined)?.timeoutMs;
  task.result = answerTo(effect);
  if (timeoutMs === undefined || semaphore.available > 0) return waitFor(semaphore, task);
  const now = scheduler.now();
  task.timer = new Timeout(task, now);
  scheduler.timers.add(task.timer, now + timeoutMs);
  semaphore.enqueue(task);
  return park(task, semaphore);
}

/**
 * Takes a permit, or waits for one without a timeout. If that makes a set of semaphores dead, the task continues with
 * the error.
 */
export function waitFor(semaphore: SemaphoreState, task: TaskNode): boolean {
  if (semaphore.available > 0) {
    semaphore.take(task);
    return true;
  }
  semaphore.enqueue(task);
  task.parkedOn = semaphore;
  task.state = PARKED;
  const dead = deadSetFrom(semaphore);
  if (dead === undefined) return false;
  task.result = deadSetError(dead);
  task.throws = true;
  semaphore.leave(task);
  task.parkedOn = undefined;
  task.state = RUNNING;
  return true;
}

function sleep(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): boolean {
  const ms = effect.subject;
  if (ms === 0) {
    task.result = answerTo(effect);
    task.state = READY;
    scheduler.ready.pushLast(task);
    return false;
  }
  check("ms", DURATION, ms);
  scheduler.timers.add(task, scheduler.now() + (ms as number));
  return park(task, SLEEP);
}

/** The child has a higher priority than its parent, so the parent moves to the end of the queue of its own priority. */
function giveWay(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): boolean {
  const program = toProgram(effect.subject as Runnable<unknown>, "program");
  const child = scheduler.spawn(program, effect.detail as SpawnOptions);
  if (child.priority <= task.priority) return goOn(task, child);
  task.result = child;
  task.state = READY;
  scheduler.ready.push(task);
  return false;
}

function parkOnResult(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): boolean {
  const source = settleableOf(effect.subject, scheduler);
  if (source === task) throw new TypeError(`Task "${task.name}" cannot wait for itself`);
  if (source.settlement !== PENDING) return goOn(task, perform(scheduler, task, effect));
  if (source instanceof TaskNode) source.isObserved = true;
  source.observe(task);
  return park(task, source);
}

function parkOnGroup(scheduler: Scheduler, task: TaskNode, kind: "gather" | "race", items: unknown[]): boolean {
  if (kind === "race" && items.length === 0) throw new RangeError("Expected `race` to be given at least one item");
  items.forEach((item, index) => checkItem(scheduler, kind, item, index));
  const sources = items.map((item) => sourceOf(scheduler, task, item));
  for (const source of sources) {
    if (!(source instanceof TaskNode)) continue;
    source.isObserved = true;
    scheduler.unobserved.delete(source);
  }
  const group = new Group(task, kind, sources);
  return group.join() || park(task, group);
}

/** Checks all items before any of them starts, so that an invalid item changes nothing. */
function checkItem(scheduler: Scheduler, kind: string, item: unknown, index: number): void {
  const handle = item instanceof EffectNode && item.op === WAIT ? item.subject : item;
  if (handle instanceof Settleable) settleableOf(handle, scheduler);
  else if (!(handle instanceof EffectNode)) {
    throw new TypeError(`Expected item ${index} of ${kind} to be a task, a future or an effect, got ${describe(item)}`);
  }
}

/**
 * Returns tasks and futures as they are, and x for `wait(x)`. Any other effect becomes a task whose permits belong to
 * the caller.
 */
function sourceOf(scheduler: Scheduler, parent: TaskNode, item: unknown): Settleable {
  if (item instanceof Settleable) return item;
  const effect = item as EffectNode<unknown>;
  if (effect.op === WAIT) return effect.subject as Settleable;
  const name = `item of ${parent.name}`;
  const task = scheduler.spawn(toProgram(effect, "item"), { name, priority: parent.priority });
  task.parent = parent;
  return task;
}

function parkOutside(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>): boolean {
  const { outside, onWake } = scheduler.options;
  if (outside === "refused") {
    throw new TypeError("`fromPromise` cannot be simulated: give `simulate` a `resolver` that stands in for it");
  }
  if (outside !== "awaited") return standIn(scheduler, task, effect, outside);
  const wait = new OutsideWait(task, effect.subject, (woken, result, throws) => {
    scheduler.outsideCount--;
    scheduler.wake(woken, result, throws);
    onWake();
  });
  scheduler.outsideCount++;
  return park(task, wait);
}

/** Uses the answer of the simulation instead of the promise: a value, or a program that takes (virtual) time. */
function standIn(scheduler: Scheduler, task: TaskNode, effect: EffectNode<unknown>, resolver: Resolver): true {
  const { label } = (effect.detail ?? {}) as { label?: string };
  const ref = { id: task.id, name: task.name };
  const answer = resolver({ source: effect.subject as PromiseSource<unknown>, label, task: ref, now: scheduler.now() });
  if (isProgram(answer)) return call(task, () => answer);
  if (typeof (answer as { then?: unknown } | undefined)?.then === "function") {
    throw new TypeError("Expected `resolver` to return a value or a program, got a promise");
  }
  return goOn(task, answer);
}

/** Runs a program effect that was yielded without a star: in place, as part of this task. */
function call(task: TaskNode, program: () => Program<unknown>): true {
  task.enter(program());
  return goOn(task, undefined);
}
