/**
 * What a limiter knows of one key: who waits for it, what it holds, its own budgets, and its charged share.
 *
 * The charged share decides whose turn it is. It is the largest, over the key's budgets, of what the key was charged
 * divided by the limit, where charges fade by a factor of e in each window (the longest `perMs`). Fading multiplies all
 * shares by the same factor, so it changes no order between keys: a charge made at time t is simply weighed by
 * e^((t − origin) / window), and nothing has to be done as time passes.
 *
 * KEYSTATE1  Of keys that always have a waiter, the shares stay together, to within one request: each is charged at
 *     the same rate. A sum that never fades would do the same, but would let a new key shut out the old ones until it
 *     has been charged what they ever were.
 * KEYSTATE2  A key that was charged nothing for a whole window and has nothing held or waiting starts at zero.
 */
import { type Link, LinkedList } from "../linked-list.ts";
import { type Budget, latestOf } from "./budget.ts";
import type { LimiterTicket } from "./limiter-slot.ts";

/** Until there is something to put in: most keys never have a waiter. */
const NONE: never[] = [];

export class KeyState implements Link {
  /** Whose it is now: a state without budgets may serve one key after another. */
  key: unknown = undefined;
  /** Not in the map of keys: nothing of it is held, and none waits. */
  isNew = true;
  /** By the index of their names; none for requests without a key. */
  readonly budgets: (Budget | undefined)[];
  inUse = 0;
  waiting = 0;
  /** By level as asked for; each in the order of arrival. */
  queues: (LinkedList<LimiterTicket> | undefined)[] = NONE;
  share = 0;
  lastChargedAt = -Infinity;
  #charged: number[] = NONE;

  // Where it stands in the waiting line.
  /** Whose turn it is among those of this key. */
  first: LimiterTicket | undefined;
  /** To which level that one has risen. */
  level = 0;
  /** When one of its waiters rises next. */
  risesAt = Infinity;
  /** When it may have enough of its own budgets. */
  paysAt = Infinity;
  /** The arrival of the first that rose to the top. */
  veteran = Infinity;
  readyPosition = -1;
  risingPosition = -1;
  blockedPosition = -1;
  veteranPosition = -1;

  // In the list of idle keys, if it is idle.
  list: LinkedList | undefined = undefined;
  previous: Link | undefined = undefined;
  next: Link | undefined = undefined;

  constructor(budgets: (Budget | undefined)[]) {
    this.budgets = budgets;
  }

  /** The queue of a level, made when it is first needed. */
  queueOf(level: number): LinkedList<LimiterTicket> {
    if (this.queues === NONE) this.queues = [];
    this.queues[level] ??= new LinkedList();
    return this.queues[level];
  }

  /** Adds to the share of one budget: `amount` in limits, weighed by its time. */
  weigh(index: number, amount: number): void {
    if (this.#charged === NONE) this.#charged = [];
    for (let below = this.#charged.length; below <= index; below++) this.#charged.push(0);
    this.#charged[index] = Math.max(0, (this.#charged[index] as number) + amount);
    this.share = 0;
    for (const charged of this.#charged) if (charged > this.share) this.share = charged;
  }

  /** Moves the origin of the weights. */
  scale(factor: number): void {
    for (let index = 0; index < this.#charged.length; index++) (this.#charged[index] as number) *= factor;
    this.share *= factor;
  }

  /** 0 if its own budgets can pay the costs now, else when to ask again. */
  payableAt(costs: readonly number[], now: number): number {
    return latestOf(this.budgets, costs, now);
  }
}
