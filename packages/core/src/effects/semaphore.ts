/**
 * The cooperative counting semaphore, after SPEC-EFF-014.
 *
 * PERMIT1  0 ≤ `available` ≤ `permits`, and `permits − available` is the number of permits in `holders` and `leaked`.
 * PERMIT2  Tasks wait only while `available` is 0. A released permit always goes to the first waiter.
 * PERMIT3  Waiters are granted in the order of arrival. Their priority does not matter.
 * PERMIT4  An ended task is never among the `holders`; its permits are in `leaked`.
 *
 * There is no ownership: any task may release. The records of holders serve only the reports and the deadlock rule. All
 * operations are O(1). The scheduler does not refer to a semaphore whose permits are all available, so an idle one
 * without a handle is garbage-collected.
 */

import { LinkedList } from "../linked-list.ts";
import { isObject } from "../options.ts";
import type { Interpreter } from "./effect.ts";
import { OverReleaseError } from "./errors.ts";
import { addHold, dropHold, findHold, type Hold, HoldTable, handOver, moveHold } from "./holds.ts";
import { AcquireEffect, ReleaseEffect } from "./kept-effects.ts";
import { describe } from "./program.ts";
import type { TaskNode } from "./task.ts";

/** The part of its scheduler that a semaphore needs. */
export interface SemaphoreOwner extends Interpreter {
  /** Semaphores with permits of ended tasks. */
  readonly leaking: Set<SemaphoreState>;
  /** Passes a permit to a waiter that has left the queue. */
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
  /**
   * Whether a task released it without holding it. Then it is used as a signal, and its holders cannot prove that it is
   * dead.
   */
  isSignalled = false;

  constructor(id: number, owner: SemaphoreOwner, permits: number, name: string | undefined) {
    this.id = id;
    this.owner = owner;
    this.permits = permits;
    this.available = permits;
    this.name = name;
  }

  /** Takes a permit. The caller has checked that one is free. */
  take(task: TaskNode): void {
    this.available--;
    addHold(task, this);
  }

  /** Releases one permit of `task`. It goes to the first waiter, if there is one. */
  release(task: TaskNode): void {
    const next = this.waiters.first;
    if (next !== undefined && handOver(this, task, next)) this.#grant(next);
    else this.#pass(findHold(task, this) ?? this.#holdOfAnother());
  }

  /** Takes back a permit that was on its way to `task` and passes it on, unless a signal has already given it back. */
  returnFrom(task: TaskNode): void {
    const hold = findHold(task, this);
    if (hold !== undefined) this.#pass(hold);
  }

  /** The tasks that wait, in the order of arrival. */
  waitingTasks(): TaskNode[] {
    const tasks: TaskNode[] = [];
    for (let task = this.waiters.first; task !== undefined; task = task.next as TaskNode | undefined) tasks.push(task);
    return tasks;
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

  /** Finds the permit for a release by a task that holds none: a leaked permit first, otherwise any. */
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
    if (key !== madeHere)
      throw new TypeError("Expected a semaphore handle to be created by `createSemaphore`, not by `new`");
    this.#state = state;
  }

  /** Shown in reports. Unique in the run; later semaphores have larger ids. */
  get id(): number {
    return this.#state.id;
  }

  /** The effect that acquires it, if the argument is a handle. @internal */
  static acquireOf(handle: unknown): AcquireEffect | undefined {
    if (!isObject(handle) || !(#state in handle)) return undefined;
    return (handle.#acquire ??= new AcquireEffect(handle, handle.#state));
  }

  /** The effect that releases it, if the argument is a handle. @internal */
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

export function handleOf(state: SemaphoreState): SemaphoreHandle {
  return new SemaphoreHandle(madeHere, state);
}
