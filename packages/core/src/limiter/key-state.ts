/**
 * The state of one key in a limiter: its waiters, its slots, its own budgets, and its charged share.
 *
 * The charged share decides which key goes first. For each budget, it is what the key was charged divided by the limit;
 * the largest of these counts. Charges fade by a factor of e in each window (the longest `perMs`). Fading multiplies
 * all shares by the same factor and so does not change the order of the keys. Therefore a charge at time t is weighted
 * by e^((t − origin) / window), and nothing has to be updated as time passes.
 *
 * KEYSTATE1  The shares of keys that always have a waiter differ by at most one request: all are charged at the same
 *     rate. A sum that never fades would have the same effect, but a new key would then shut out the old keys until it
 *     had been charged as much as they ever were.
 * KEYSTATE2  A key that was charged nothing for a whole window, holds nothing and has no waiters starts at zero.
 */
import { type Link, LinkedList } from "../linked-list.ts";
import { type Budget, latestOf } from "./budget.ts";
import type { LimiterTicket } from "./limiter-slot.ts";

/** A shared empty array until there is something to store: most keys never have a waiter. */
const NONE: never[] = [];

export class KeyState implements Link {
  /** The current key of this state. A state without budgets may serve one key after another. */
  key: unknown = undefined;
  /** Whether the state is not in the map of keys: it has no slots and no waiters. */
  isNew = true;
  /** The budgets of the key, by the index of their names; empty for requests without a key. */
  readonly budgets: (Budget | undefined)[];
  inUse = 0;
  waiting = 0;
  /** The waiters by the level that they asked for; each queue is in the order of arrival. */
  queues: (LinkedList<LimiterTicket> | undefined)[] = NONE;
  share = 0;
  lastChargedAt = -Infinity;
  #charged: number[] = NONE;

  // The place of the key in the waiting line.
  /** The waiter of this key that goes first. */
  first: LimiterTicket | undefined;
  /** The level to which `first` has risen. */
  level = 0;
  /** When the next waiter of this key rises. */
  risesAt = Infinity;
  /** When the budgets of the key may be able to pay for `first`. */
  paysAt = Infinity;
  /** The smallest arrival number among the waiters that rose to level 0. */
  veteran = Infinity;
  readyPosition = -1;
  risingPosition = -1;
  blockedPosition = -1;
  veteranPosition = -1;

  // The place in the list of idle keys.
  list: LinkedList | undefined = undefined;
  previous: Link | undefined = undefined;
  next: Link | undefined = undefined;

  constructor(budgets: (Budget | undefined)[]) {
    this.budgets = budgets;
  }

  /** Returns the queue of a level, and creates it at the first use. */
  queueOf(level: number): LinkedList<LimiterTicket> {
    if (this.queues === NONE) this.queues = [];
    this.queues[level] ??= new LinkedList();
    return this.queues[level];
  }

  /** Adds a charge to the share of one budget. `amount` is a fraction of the limit, weighted by its time. */
  weigh(index: number, amount: number): void {
    if (this.#charged === NONE) this.#charged = [];
    for (let below = this.#charged.length; below <= index; below++) this.#charged.push(0);
    this.#charged[index] = Math.max(0, (this.#charged[index] as number) + amount);
    this.share = 0;
    for (const charged of this.#charged) if (charged > this.share) this.share = charged;
  }

  /** Multiplies all weights by a factor, which moves their origin. */
  scale(factor: number): void {
    for (let index = 0; index < this.#charged.length; index++) (this.#charged[index] as number) *= factor;
    this.share *= factor;
  }

  /** Returns 0 if the key's own budgets can pay the costs now, otherwise a time to ask again. */
  payableAt(costs: readonly number[], now: number): number {
    return latestOf(this.budgets, costs, now);
  }
}
