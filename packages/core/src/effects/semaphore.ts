/**
 * The cooperative counting semaphore, after SPEC-EFF-014.
 *
 * PERMIT1  0 ≤ `available` ≤ `permits`, and `permits − available` = the permits of `holders` and `leaked` together.
 * PERMIT2  A task waits only while `available` is 0: a permit given back goes to the first waiter, never past it.
 * PERMIT3  Waiters are granted in the order of arrival, whatever their priority.
 * PERMIT4  An ended task is never among the `holders`; its permits are in `leaked`.
 *
 * There is no ownership: any task may release. The records of who holds what serve the reports and the deadlock rule
 * only. All operations are O(1). Nothing of the scheduler refers to a semaphore whose permits are all available, so an
 * idle one without a handle is garbage.
 */

import { LinkedList } from "../linked-list.ts";
import type { Interpreter } from "./effect.ts";
import { OverReleaseError } from "./errors.ts";
import { addHold, dropHold, findHold, type Hold, HoldTable, handOver, moveHold } from "./holds.ts";
import { AcquireEffect, ReleaseEffect } from "./kept-effects.ts";
import { describe } from "./program.ts";
import type { TaskNode } from "./task.ts";

/** What a semaphore needs of the scheduler it belongs to. */
export interface SemaphoreOwner extends Interpreter {
  /** Semaphores with permits of ended tasks. */
  readonly leaking: Set<SemaphoreState>;
  /** A permit is on its way to a waiter, which has left the queue. */
  grant(task: TaskNode): void;
}

export class SemaphoreState {
  readonly id: number;
  readonly owner: SemaphoreOwner;
  readonly permits: number;
  readonly name: string | undefined;
  available: number;
  waiting = 0;
  readonly waiters = new LinkedList<TaskNode>();
  readonly holders = new HoldTable(this, false);
  readonly leaked = new HoldTable(this, true);
  /** A task released it without holding it: it is used as a signal, so no set of holders can prove it dead. */
  isSignalled = false;

  constructor(id: number, owner: SemaphoreOwner, permits: number, name: string | undefined) {
    this.id = id;
    this.owner = owner;
    this.permits = permits;
    this.available = permits;
    this.name = name;
  }

  /** The caller has seen a free permit. */
  take(task: TaskNode): void {
    this.available--;
    addHold(task, this);
  }

  /** Gives back one permit in the name of `task`: to the first waiter, if there is one. */
  release(task: TaskNode): void {
    const next = this.waiters.first;
    if (next !== undefined && handOver(this, task, next)) this.#grant(next);
    else this.#pass(findHold(task, this) ?? this.#holdOfAnother());
  }

  /** Takes back a permit that was in flight to `task` and passes it on, unless a signal has given it back already. */
  returnFrom(task: TaskNode): void {
    const hold = findHold(task, this);
    if (hold !== undefined) this.#pass(hold);
  }

  enqueue(task: TaskNode): void {
    this.waiters.add(task);
    this.waiting++;
  }

  leave(task: TaskNode): void {
    this.waiters.remove(task);
    this.waiting--;
  }

  #pass(from: Hold): void {
    const next = this.waiters.first;
    if (next === undefined) {
      dropHold(from);
      this.available++;
    } else {
      moveHold(from, next);
      this.#grant(next);
    }
    if (this.isSignalled && this.leaked.count === 0) this.owner.leaking.delete(this);
  }

  #grant(next: TaskNode): void {
    this.leave(next);
    this.owner.grant(next);
  }

  /** A release by a task that holds nothing: a leaked permit is given back first, else any permit. */
  #holdOfAnother(): Hold {
    if (this.available === this.permits) throw new OverReleaseError(this.id, this.permits);
    this.isSignalled = true;
    return (this.leaked.first ?? this.holders.first) as Hold;
  }
}

const madeHere = Symbol("made by createSemaphore");

/**
 * An opaque handle: `createSemaphore` returns it, and the semaphore effects of the same run take it.
 *
 * @example
 * ```ts
 * import { createSemaphore, run, type SemaphoreHandle, withSemaphore, delay } from "slotkeeper/effects";
 *
 * const work = (semaphore: SemaphoreHandle) => withSemaphore(semaphore, delay(10));
 * await run(function* () {
 *   yield* work(yield* createSemaphore(2));
 * });
 * ```
 */
export class SemaphoreHandle {
  readonly #state: SemaphoreState;
  #acquire: AcquireEffect | undefined = undefined;
  #release: ReleaseEffect | undefined = undefined;

  constructor(key: symbol, state: SemaphoreState) {
    if (key !== madeHere) throw new TypeError("A semaphore handle is made by `createSemaphore`, not by hand");
    this.#state = state;
  }

  /** Shown in reports; counts up with each semaphore of a run. */
  get id(): number {
    return this.#state.id;
  }

  /** The effect of acquiring it, if it is a handle. @internal */
  static acquireOf(handle: unknown): AcquireEffect | undefined {
    if (!isObject(handle) || !(#state in handle)) return undefined;
    return (handle.#acquire ??= new AcquireEffect(handle, handle.#state));
  }

  /** The effect of releasing it, if it is a handle. @internal */
  static releaseOf(handle: unknown): ReleaseEffect | undefined {
    if (!isObject(handle) || !(#state in handle)) return undefined;
    return (handle.#release ??= new ReleaseEffect(handle, handle.#state));
  }

  /** The state behind a handle of the run `owner`. @internal */
  static stateOf(handle: unknown, owner: SemaphoreOwner): SemaphoreState {
    if (!isObject(handle) || !(#state in handle)) {
      throw new TypeError(`Expected a semaphore handle of \`createSemaphore\`, got ${describe(handle)}`);
    }
    const state = handle.#state;
    if (state.owner !== owner) throw new TypeError(`Semaphore ${state.id} belongs to another run`);
    return state;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

export function handleOf(state: SemaphoreState): SemaphoreHandle {
  return new SemaphoreHandle(madeHere, state);
}
