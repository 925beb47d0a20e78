/**
 * A task: a program that runs.
 *
 * | state | where it is | leaves by |
 * |---|---|---|
 * | `READY`   | in the ready queue; `result`/`throws` is what it will be resumed with; `parkedOn` is still the semaphore if a permit is in flight to it | its turn |
 * | `RUNNING` | on the stack | parking, being outranked by a child, ending |
 * | `PARKED`  | linked into what `parkedOn` names; `timer` if it also waits for a timeout | wake, cancel |
 * | `ENDED`   | nowhere; `settlement` and `result` say how | – |
 */

import { Link } from "../linked-list.ts";
import type { Program } from "./effect.ts";
import type { TaskCancelledError } from "./errors.ts";
import type { Group } from "./group.ts";
import type { Hold } from "./holds.ts";
import type { OutsideWait } from "./outside-wait.ts";
import { PRIORITY_NORMAL } from "./ready-queue.ts";
import type { SemaphoreState } from "./semaphore.ts";
import { Settleable } from "./settleable.ts";

declare const resultOf: unique symbol;

/** The handle of a task: `spawn` returns it, and `wait`, `gather`, `race` and `cancel` take it. */
export interface Task<T> {
  /** Unique in the run; later tasks have larger ids. */
  readonly id: number;
  /** The `name` option of `spawn`, or `task-` and the id. */
  readonly name: string;
  readonly [resultOf]?: T;
}

export const READY = 0;
export const RUNNING = 1;
export const PARKED = 2;
export const ENDED = 3;
export type TaskState = typeof READY | typeof RUNNING | typeof PARKED | typeof ENDED;

/** What a sleeping task is parked on. The task itself is linked into the timer queue. */
export const SLEEP = Symbol("sleep");

export type ParkedOn = SemaphoreState | Settleable | Group | OutsideWait | typeof SLEEP;

/** Options of `spawn`. */
export interface SpawnOptions {
  /** Shown in logs and reports. @defaultValue `task-` and the id */
  readonly name?: string;
  /** Tasks with a higher priority run first. @defaultValue `PRIORITY_NORMAL` */
  readonly priority?: number;
  /**
   * Whether the run may end before this task does. A daemon is then dropped, and `leftOver` does not list it.
   * @defaultValue false
   */
  readonly daemon?: boolean;
}

/** The fields that few tasks need. */
class Rarities {
  name: string | undefined = undefined;
  daemon = false;
  callers: Program<unknown>[] | undefined = undefined;
  timer: Timeout | undefined = undefined;
  heldMore: Map<SemaphoreState, Hold> | undefined = undefined;
  cancelError: TaskCancelledError | undefined = undefined;
  isInterrupted = false;
  parent: TaskNode | undefined = undefined;
}

const none: Readonly<Rarities> = Object.freeze(new Rarities());

/** There may be a million tasks, so fields that few of them need are in a separate object. */
export class TaskNode extends Settleable implements Task<unknown> {
  readonly priority: number;
  state: TaskState = READY;
  /** Cleared at the end, because a program may keep many objects alive. */
  body: Program<unknown> | undefined;
  /** Whether `result` is thrown at the next resumption. */
  throws = false;
  parkedOn: ParkedOn | undefined = undefined;
  /** The permits that it holds of one semaphore. Those of other semaphores are in `heldMore`. */
  held: Hold | undefined = undefined;
  isObserved = false;
  livePrev: TaskNode | undefined = undefined;
  liveNext: TaskNode | undefined = undefined;
  #rare = none;

  constructor(id: number, owner: object, body: Program<unknown>, options: SpawnOptions | undefined) {
    super(id, owner);
    this.body = body;
    this.priority = options?.priority ?? PRIORITY_NORMAL;
    if (options?.name !== undefined) this.#own.name = options.name;
    if (options?.daemon === true) this.#own.daemon = true;
  }

  get name(): string {
    return this.#rare.name ?? `task-${this.id}`;
  }

  get daemon(): boolean {
    return this.#rare.daemon;
  }

  /** The timeout of an acquire. */
  get timer(): Timeout | undefined {
    return this.#rare.timer;
  }

  set timer(timer: Timeout | undefined) {
    this.#own.timer = timer;
  }

  get heldMore(): Map<SemaphoreState, Hold> | undefined {
    return this.#rare.heldMore;
  }

  set heldMore(holds: Map<SemaphoreState, Hold> | undefined) {
    this.#own.heldMore = holds;
  }

  get cancelError(): TaskCancelledError | undefined {
    return this.#rare.cancelError;
  }

  set cancelError(error: TaskCancelledError | undefined) {
    this.#own.cancelError = error;
  }

  /** Whether it cancelled itself. The error is thrown at its next yield. */
  get isInterrupted(): boolean {
    return this.#rare.isInterrupted;
  }

  set isInterrupted(isInterrupted: boolean) {
    this.#own.isInterrupted = isInterrupted;
  }

  /** Set for a task that performs one item of a `gather` or `race`: its permits belong to the parent. */
  get parent(): TaskNode | undefined {
    return this.#rare.parent;
  }

  set parent(parent: TaskNode | undefined) {
    this.#own.parent = parent;
  }

  /** Enters a program that was yielded without a star. The current program continues after it. */
  enter(program: Program<unknown>): void {
    (this.#own.callers ??= []).push(this.body as Program<unknown>);
    this.body = program;
  }

  /** Returns from the program to its caller, if it has one. */
  leave(): boolean {
    this.body = this.#rare.callers?.pop();
    return this.body !== undefined;
  }

  get #own(): Rarities {
    if (this.#rare === none) this.#rare = new Rarities();
    return this.#rare;
  }
}

/** The timeout of an acquire. It wakes `task` with an error. */
export class Timeout extends Link {
  readonly task: TaskNode;
  readonly startedAt: number;

  constructor(task: TaskNode, startedAt: number) {
    super();
    this.task = task;
    this.startedAt = startedAt;
  }
}

/** A timer that calls a function, for the clock of a simulation. */
export class Callback extends Link {
  readonly call: () => void;

  constructor(call: () => void) {
    super();
    this.call = call;
  }
}
