/**
 * The scheduler: one thread, one ready queue, and the loop that resumes tasks.
 *
 * SCHED1  A task runs until it parks, spawns a child of higher priority, or ends. Nothing else switches tasks.
 * SCHED2  Parking and waking are O(1). Sleeping costs O(log distinct instants) (`timer-queue.ts`).
 * SCHED3  A step that does not park allocates no promise, and the loop itself allocates none.
 * SCHED4  The scheduler never reads a clock or starts a timer of the host. A driver (`run.ts`, `simulate.ts`) provides
 *     the time, calls `turns` while tasks are ready, `fireDue` when time has passed, and `standstill` when nothing is
 *     left.
 */
import { activate, EffectNode, type Interpreter, PARK, type Program, RELEASE } from "./effect.ts";
import { StepLimitError, type TaskRef } from "./errors.ts";
import { Group } from "./group.ts";
import { answerTo, RESUMED, Refusal } from "./kept-effects.ts";
import { dropAll, endTask } from "./lifecycle.ts";
import type { Resolver } from "./outside-wait.ts";
import { parkOrGoOn, waitFor } from "./park.ts";
import { perform, timeoutOf } from "./perform.ts";
import { describe, resumeThrowing, resumeWith } from "./program.ts";
import type { ChoiceSource } from "./random.ts";
import { ReadyQueue } from "./ready-queue.ts";
import { SemaphoreHandle, type SemaphoreState } from "./semaphore.ts";
import type { Settleable, Settlement } from "./settleable.ts";
import { Callback, READY, RUNNING, type SpawnOptions, TaskNode, type Timeout } from "./task.ts";
import { TimerQueue } from "./timer-queue.ts";

/** One message of `log`: when it was written, and by which task. */
export interface LogEntry {
  /** When it was written, in milliseconds: virtual time under `simulate`, the time of the clock under `run`. */
  readonly at: number;
  /** The task that wrote it. */
  readonly task: TaskRef;
  /** The message. */
  readonly message: string;
}

/** What a driver (`run.ts`, `simulate.ts`) passes to its scheduler. */
export interface SchedulerOptions {
  readonly now: () => number;
  readonly choices: ChoiceSource | undefined;
  readonly maxSteps: number;
  readonly keepsLog: boolean;
  readonly onLog: ((message: string, entry: LogEntry) => void) | undefined;
  readonly onUnhandled: ((error: unknown, task: TaskRef) => void) | undefined;
  /** How `fromPromise` is answered: by the promise itself, by a resolver, or not at all. */
  readonly outside: "awaited" | "refused" | Resolver;
  /** Called when an outside promise has made a task ready. */
  readonly onWake: () => void;
}

export class Scheduler implements Interpreter {
  readonly options: SchedulerOptions;
  readonly now: () => number;
  readonly ready: ReadyQueue<TaskNode>;
  readonly timers = new TimerQueue();
  readonly log: LogEntry[] = [];
  readonly root: TaskNode;
  steps = 0;
  readonly maxSteps: number;
  running: TaskNode | undefined = undefined;
  /** The tasks that have not ended, oldest first, including daemons. */
  liveHead: TaskNode | undefined = undefined;
  liveTail: TaskNode | undefined = undefined;
  /** The number of live tasks that are not daemons. The run cannot end before them. */
  liveCount = 0;
  outsideCount = 0;
  /** Tasks that failed and whose result no task has asked for yet. */
  readonly unobserved = new Set<TaskNode>();
  /** Semaphores with permits of ended tasks. The scheduler has no other strong references to semaphores. */
  readonly leaking = new Set<SemaphoreState>();
  readonly leftOver: TaskRef[] = [];
  isUnwinding = false;
  isOver = false;
  nextSemaphoreId = 1;
  nextPromiseId = 1;
  /** The failure of the run itself: a standstill, or too many steps. It overrides the result of the root. */
  failure: Error | undefined = undefined;
  #nextTaskId = 0;

  constructor(options: SchedulerOptions, program: Program<unknown>, name: string) {
    this.options = options;
    this.now = options.now;
    this.maxSteps = options.maxSteps;
    this.ready = new ReadyQueue<TaskNode>(options.choices);
    this.root = this.spawn(program, { name });
  }

  spawn(body: Program<unknown>, options: SpawnOptions | undefined): TaskNode {
    const task = new TaskNode(this.#nextTaskId++, this, body, options);
    task.livePrev = this.liveTail;
    if (this.liveTail === undefined) this.liveHead = task;
    else this.liveTail.liveNext = task;
    this.liveTail = task;
    if (!task.daemon) this.liveCount++;
    this.ready.push(task);
    return task;
  }

  /** Resumes ready tasks, at most `limit` of them. */
  turns(limit: number): void {
    const outer = activate(this);
    try {
      for (let left = limit; left > 0 && !this.isOver; left--) {
        const task = this.ready.take();
        if (task === undefined) return;
        this.running = task;
        task.state = RUNNING;
        task.parkedOn = undefined;
        while (this.#advance(task));
      }
    } finally {
      this.running = undefined;
      activate(outer);
    }
  }

  attempt(effect: EffectNode<unknown>): unknown {
    if (this.steps >= this.maxSteps) return PARK;
    const task = this.running as TaskNode;
    this.steps++;
    if (task.isInterrupted) throw this.#interrupt(task, effect);
    const value = perform(this, task, effect);
    if (value === PARK) this.steps--;
    return value;
  }

  semaphoreOf(handle: unknown): SemaphoreState {
    return SemaphoreHandle.stateOf(handle, this);
  }

  wake(task: TaskNode, result: unknown, throws: boolean): void {
    task.parkedOn = undefined;
    task.result = result;
    task.throws = throws;
    task.state = READY;
    this.ready.push(task);
  }

  /** Passes a permit to a waiter that has left the queue. Until the waiter runs, cancelling it passes the permit on. */
  grant(task: TaskNode): void {
    if (task.timer !== undefined) {
      this.timers.remove(task.timer);
      task.timer = undefined;
    }
    task.state = READY;
    this.ready.push(task);
  }

  settle(source: Settleable, settlement: Settlement, result: unknown): void {
    source.settlement = settlement;
    source.result = result;
    const observers = source.observers;
    if (observers === undefined) return;
    source.observers = undefined;
    for (let observer = observers.first; observer !== undefined; observer = observers.first) {
      observers.remove(observer);
      if (observer instanceof TaskNode) this.wake(observer, result, settlement === 2);
      else this.#decided(Group.settled(observer));
    }
  }

  /** Fires all timers that are due at `now`, in order. */
  fireDue(now: number): void {
    for (let timer = this.timers.takeDue(now); timer !== undefined; timer = this.timers.takeDue(now)) {
      if (timer instanceof TaskNode) this.wake(timer, undefined, false);
      else if (timer instanceof Callback) timer.call();
      else this.#timedOut(timer as Timeout, now);
    }
  }

  #timedOut(timeout: Timeout, now: number): void {
    const { task, startedAt } = timeout;
    const semaphore = task.parkedOn as SemaphoreState;
    semaphore.leave(task);
    task.timer = undefined;
    this.wake(task, timeoutOf(semaphore, now - startedAt), true);
  }

  #decided(group: Group | undefined): void {
    if (group !== undefined) this.wake(group.task, group.task.result, group.task.throws);
  }

  /**
   * Runs a task from its resumption to the next yield that reaches the scheduler. Returns true if the task continues at
   * once.
   */
  #advance(task: TaskNode): boolean {
    const { result, throws } = task;
    const body = task.body as Program<unknown>;
    task.result = undefined;
    task.throws = false;
    let step: IteratorResult<unknown, unknown>;
    try {
      step = throws ? resumeThrowing(body, result) : resumeWith(body, result);
    } catch (error) {
      return this.#left(task, error, true);
    }
    if (step instanceof Refusal && !task.isInterrupted && this.steps < this.maxSteps) return this.#refused(task, step);
    return step.done === true ? this.#left(task, step.value, false) : this.#yielded(task, step.value);
  }

  #left(task: TaskNode, value: unknown, threw: boolean): boolean {
    if (!task.leave()) {
      endTask(this, task, value, threw);
      return false;
    }
    task.result = value;
    task.throws = threw;
    return true;
  }

  /** Handles a kept effect that was just refused in the code of the task, so it need not be tried again. */
  #refused(task: TaskNode, { semaphore }: Refusal): boolean {
    this.steps++;
    task.result = RESUMED;
    if (semaphore !== undefined) return waitFor(semaphore, task);
    task.state = READY;
    this.ready.pushLast(task);
    return false;
  }

  #yielded(task: TaskNode, effect: unknown): boolean {
    try {
      if (!(effect instanceof EffectNode)) {
        throw new TypeError(`Expected task "${task.name}" to yield an effect, got ${describe(effect)}`);
      }
      const value = this.attempt(effect);
      if (value === PARK) return this.#park(task, effect);
      task.result = value ?? answerTo(effect);
    } catch (error) {
      task.result = error;
      task.throws = true;
    }
    return true;
  }

  #park(task: TaskNode, effect: EffectNode<unknown>): boolean {
    if (this.steps >= this.maxSteps) return this.#exhausted(task);
    this.steps++;
    return parkOrGoOn(this, task, effect);
  }

  /** A release still takes effect: a `finally` block that releases a permit must not leak it. */
  #interrupt(task: TaskNode, effect: EffectNode<unknown>): Error {
    task.isInterrupted = false;
    if (effect.op === RELEASE) perform(this, task, effect);
    return task.cancelError as Error;
  }

  #exhausted(task: TaskNode): false {
    this.failure = new StepLimitError(this.maxSteps, { id: task.id, name: task.name });
    dropAll(this);
    return false;
  }
}
