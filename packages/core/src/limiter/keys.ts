/**
 * The keys of a limiter, for as long as there is something to remember of them.
 *
 * KEYS1  A key has one state at any time. It is dropped in one step with the check that nothing is held or waiting, that its
 *     budgets are full, and that its last charge is a window ago; dropping it therefore changes nothing for the key.
 * KEYS2  No timer: idle keys are dropped as others come, two for each that is made, and by `sweep`. A key without budgets
 *     is dropped as soon as it is idle, and its state serves the next key (W7).
 * KEYS3  A state that was made for a request is in the map from the moment it is in use. A request that is refused at once
 *     leaves nothing.
 */
import { LinkedList } from "../linked-list.ts";
import type { Budget } from "./budget.ts";
import { KeyState } from "./key-state.ts";
import type { LimiterTicket } from "./limiter-slot.ts";

const DROPPED_FOR_EACH_NEW = 2;

export class Keys {
  /** Of requests without a key, and of all where keys have no limits. */
  readonly none: KeyState = new KeyState([]);
  /** That of no key, too: a map that loses its last entry makes a new table each time (W7). */
  readonly states: Map<unknown, KeyState> = new Map([[undefined, this.none]]);
  /** How long a charge counts for the share; 0 if shares count for nothing. */
  windowMs = 0;
  readonly #idle = new LinkedList<KeyState>();
  /** A state without budgets that no key has, for the next one. */
  #spare: KeyState | undefined;
  readonly #makeBudgets: () => (Budget | undefined)[];

  constructor(makeBudgets: () => (Budget | undefined)[]) {
    this.none.isNew = false;
    this.#makeBudgets = makeBudgets;
  }

  /** How many keys are kept, idle ones included. */
  get size(): number {
    return this.states.size - 1;
  }

  /** The state of a key. One that is made for this is kept only if it comes into use. */
  find(key: unknown, time: { now(): number }): KeyState {
    const known = this.states.get(key);
    // Reading the clock costs as much as the rest (W7), and without idle keys there is nothing to compare with it.
    if (known !== undefined && !(known.list && this.#isForgettable(known, time.now()))) return known;
    if (known !== undefined) this.#drop(known);
    else if (this.#idle.first) this.#sweepSome(time.now());
    // A spare one has no budgets.
    const state = (this.windowMs === 0 && this.#spare) || new KeyState(this.#makeBudgets());
    state.key = key;
    return state;
  }

  /** Something is held or waits. */
  use(state: KeyState): void {
    if (state.list) this.#idle.remove(state);
    else if (state.isNew) this.#keep(state);
  }

  /** Perhaps nothing is held and none waits any more. */
  release(state: KeyState): void {
    if (state.inUse + state.waiting > 0 || state === this.none || state.isNew) return;
    if (this.windowMs > 0 || state.budgets.length > 0) this.#idle.add(state);
    else {
      this.#drop(state);
      state.isNew = true;
      this.#spare = state;
    }
  }

  /** Drops all idle keys of which nothing has to be remembered; says how many. */
  sweep(now: number): number {
    const { size } = this;
    for (let state = this.#idle.first; state; ) {
      const next = state.next as KeyState | undefined;
      if (this.#isForgettable(state, now)) this.#drop(state);
      state = next;
    }
    return size - this.size;
  }

  /** Drops a few of those that have been idle for longest. */
  #sweepSome(now: number): void {
    for (let looked = 0; looked < DROPPED_FOR_EACH_NEW; looked++) {
      const state = this.#idle.first;
      if (state === undefined || state.lastChargedAt + this.windowMs > now) return;
      if (this.#isForgettable(state, now)) this.#drop(state);
      else this.#idle.add(state); // In debt: another one's turn to be looked at.
    }
  }

  /** All tickets that wait, in the order of arrival. */
  waiters(): LimiterTicket[] {
    const all: LimiterTicket[] = [];
    for (const { queues } of this.states.values()) {
      for (const queue of queues) {
        for (let ticket = queue?.first; ticket; ticket = ticket.next as LimiterTicket | undefined) all.push(ticket);
      }
    }
    return all.sort((a, b) => a.arrival - b.arrival);
  }

  #isForgettable({ lastChargedAt, budgets }: KeyState, now: number): boolean {
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
