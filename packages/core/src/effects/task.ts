/**
 * A task: a program under way.
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
import type { SemaphoreState } from "./semaphore.ts";
import { Settleable } from "./settleable.ts";

declare const resultOf: unique symbol;

/** A task's handle: what `spawn` returns and `wait`, `gather`, `race` and `cancel` take. */
export interface Task<T> {
  readonly id: number;
  readonly name: string;
  readonly [resultOf]?: T;
}

export const READY = 0;
export const RUNNING = 1;
export const PARKED = 2;
export const ENDED = 3;
export type TaskState = typeof READY | typeof RUNNING | typeof PARKED | typeof ENDED;

/** The time of a task that sleeps: it is linked into the timer queue itself. */
export const SLEEP = Symbol("sleep");

export type ParkedOn = SemaphoreState | Settleable | Group | OutsideWait | typeof SLEEP;

export interface SpawnOptions {
  /** Shown in logs and reports. Default: `task-` and the id. */
  readonly name?: string;
  /** Higher runs first. Default: `PRIORITY_NORMAL`. */
  readonly priority?: number;
  /** A daemon does not hold up the end of the run: it is dropped where it stands, unlisted. */
  readonly daemon?: boolean;
}

export class TaskNode extends Settleable implements Task<unknown> {
  readonly priority: number;
  readonly daemon: boolean;
  state: TaskState = READY;
  body: Program<unknown>;
  /** Callers of the program in `body`, innermost last, when a program effect was yielded without a star. */
  callers: Program<unknown>[] | undefined = undefined;
  /** Whether `result` is to be thrown at the next resumption. */
  throws = false;
  parkedOn: ParkedOn | undefined = undefined;
  timer: Timeout | undefined = undefined;
  /** Its permits: the first semaphore's in `held`, those of others in `heldMore`. */
  held: Hold | undefined = undefined;
  heldMore: Map<SemaphoreState, Hold> | undefined = undefined;
  cancelError: TaskCancelledError | undefined = undefined;
  /** It cancelled itself, and the error is due at its next yield. */
  isInterrupted = false;
  isObserved = false;
  /** Set for a task that performs one item of a `gather` or `race`: the permits it acquires are its parent's. */
  parent: TaskNode | undefined = undefined;
  livePrev: TaskNode | undefined = undefined;
  liveNext: TaskNode | undefined = undefined;
  readonly #name: string | undefined;

  constructor(id: number, owner: object, body: Program<unknown>, options: SpawnOptions, priority: number) {
    super(id, owner);
    this.body = body;
    this.priority = priority;
    this.daemon = options.daemon ?? false;
    this.#name = options.name;
  }

  get name(): string {
    return this.#name ?? `task-${this.id}`;
  }
}

/** The timer of a timed acquire: it wakes `task` with an error. */
export class Timeout extends Link {
  readonly task: TaskNode;
  readonly startedAt: number;

  constructor(task: TaskNode, startedAt: number) {
    super();
    this.task = task;
    this.startedAt = startedAt;
  }
}

/** A timer that calls back: the host side of a simulation's clock. */
export class Callback extends Link {
  readonly call: () => void;

  constructor(call: () => void) {
    super();
    this.call = call;
  }
}
