/**
 * The keys of a limiter. A key is kept only as long as its state matters.
 *
 * KEYS1  A key has one state at any time. One step checks that the key has no slots and no waiters, that its budgets
 *     are full and that its last charge is a window ago, and removes it. So removal changes nothing for the key.
 * KEYS2  There is no timer. Each new key removes up to two idle keys, and `sweep` removes all of them. A key without
 *     budgets is removed as soon as it is idle, and the next key reuses its state (W7).
 * KEYS3  A state that is created for a request enters the map when it is first used. A request that is refused at once
 *     leaves nothing behind.
 */
import { LinkedList } from "../linked-list.ts";
import type { Budget } from "./budget.ts";
import { KeyState } from "./key-state.ts";
import type { LimiterTicket } from "./limiter-slot.ts";

const DROPPED_FOR_EACH_NEW = 2;

export class Keys {
  /** The state of requests without a key, and of all requests if keys have no limits. */
  readonly none: KeyState = new KeyState([]);
  /**
   * The states by key. `undefined` is always in it, because a map that loses its last entry allocates a new table (W7).
   */
  readonly states: Map<unknown, KeyState> = new Map([[undefined, this.none]]);
  /** How long a charge counts for the share, in milliseconds; 0 if shares are not used. Keys with budgets use them. */
  windowMs = 0;
  readonly #idle = new LinkedList<KeyState>();
  /** An unused state without budgets, for the next key. */
  #spare: KeyState | undefined;
  readonly #makeBudgets: () => (Budget | undefined)[];

  constructor(makeBudgets: () => (Budget | undefined)[]) {
    this.none.isNew = false;
    this.#makeBudgets = makeBudgets;
  }

  /** The number of keys in memory, including idle ones. */
  get size(): number {
    return this.states.size - 1;
  }

  /** Returns the state of a key. A new state is kept only if it comes into use. */
  find(key: unknown, time: { now(): number }): KeyState {
    const known = this.states.get(key);
    // Reading the clock costs as much as the rest (W7). It is needed only if there are idle keys.
    if (known !== undefined && !(known.list && this.#isDroppable(known, time.now()))) return known;
    if (known !== undefined) this.#drop(known);
    else if (this.#idle.first) this.#sweepSome(time.now());
    // The spare state has no budgets.
    const state = (this.windowMs === 0 && this.#spare) || new KeyState(this.#makeBudgets());
    state.key = key;
    return state;
  }

  /** Call this when a key gets a slot or a waiter. */
  use(state: KeyState): void {
    if (state.list) this.#idle.remove(state);
    else if (state.isNew) this.#keep(state);
  }

  /** Call this when a key loses a slot or a waiter: it may be idle now. */
  release(state: KeyState): void {
    if (state.inUse + state.waiting > 0 || state === this.none || state.isNew) return;
    if (this.windowMs > 0) this.#idle.add(state);
    else {
      this.#drop(state);
      state.isNew = true;
      this.#spare = state;
    }
  }

  /** Removes all idle keys whose state no longer matters, and returns how many. */
  sweep(now: number): number {
    const { size } = this;
    for (let state = this.#idle.first; state; ) {
      const next = state.next as KeyState | undefined;
      if (this.#isDroppable(state, now)) this.#drop(state);
      state = next;
    }
    return size - this.size;
  }

  /** Removes a few of the keys that have been idle for longest. */
  #sweepSome(now: number): void {
    for (let looked = 0; looked < DROPPED_FOR_EACH_NEW; looked++) {
      const state = this.#idle.first;
      if (state === undefined || state.lastChargedAt + this.windowMs > now) return;
      if (this.#isDroppable(state, now)) this.#drop(state);
      else this.#idle.add(state); // In debt: checked again after the others.
    }
  }

  /** All waiting tickets, in the order of arrival. */
  waiters(): LimiterTicket[] {
    const all: LimiterTicket[] = [];
    for (const { queues } of this.states.values()) {
      for (const queue of queues) {
        for (let ticket = queue?.first; ticket; ticket = ticket.next as LimiterTicket | undefined) all.push(ticket);
      }
    }
    return all.sort((a, b) => a.arrival - b.arrival);
  }

  #isDroppable({ lastChargedAt, budgets }: KeyState, now: number): boolean {
    return lastChargedAt + this.windowMs <= now && budgets.every((budget) => budget?.isFull(now) !== false);
  }

  #keep(state: KeyState): void {
    state.isNew = false;
    this.#spare = undefined;
    this.states.set(state.key, state);
  }

  #drop(state: KeyState): void {
    this.#idle.remove(state);
    this.states.delete(state.key);
  }
}
