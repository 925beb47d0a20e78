/**
 * The order of the waiters. The line holds all waiters and names the next one. It does not check the common budgets and
 * slots.
 *
 * LINE1  Levels first: level 0 before level 1, and so on. A waiter rises by one level every `ageAfterMs`.
 * LINE2  Within a level, the key with the smallest charged share goes first. Between keys with equal shares, and
 *     without keys, the first arrival goes first.
 * LINE3  Each key has one waiter in front: the first arrival on its highest level. While the key's own slots or budgets
 *     are not enough for that waiter, the key is skipped: it reserves nothing and does not block other keys. Other
 *     waiters of the same key stay behind it, so the cheap requests of a key cannot starve its expensive one.
 * LINE4  Ageing bound: a waiter of level n > 0 reaches level 0 after n × ageAfterMs. From then on its arrival counts,
 *     not the share of its key: no later arrival goes first unless its own key is skipped (LINE3). A waiter that
 *     arrives on level 0 does not age: shares decide its order as long as it waits.
 *
 * How it works: waiters of one level and key rise in the order of their arrival, so only the first of each such queue
 * matters. As time passes, only the places of keys change. Each key that is not skipped is in the heap of its level.
 * Keys that wait for their budgets are in a heap ordered by the time at which the budgets are enough. Keys with a
 * waiter that can rise are in a heap ordered by that time. Cost: O(levels + log keys) to arrive, to leave and to rise.
 */
import { IndexedHeap } from "../indexed-heap.ts";
import type { KeyState } from "./key-state.ts";
import type { LimiterTicket } from "./limiter-slot.ts";

const arrivalOf = (key: KeyState): number => (key.first as LimiterTicket).arrival;

const hasSmallerShare = (a: KeyState, b: KeyState): boolean =>
  a.share < b.share || (a.share === b.share && arrivalOf(a) < arrivalOf(b));

export class WaitingLine {
  ageAfterMs: number;
  /** The slots of each key; `Infinity` without a limit. */
  slotsPerKey: number;
  readonly #levels: readonly IndexedHeap<"readyPosition", KeyState>[];
  readonly #rising = new IndexedHeap<"risingPosition", KeyState>("risingPosition", (a, b) => a.risesAt < b.risesAt);
  readonly #blocked = new IndexedHeap<"blockedPosition", KeyState>("blockedPosition", (a, b) => a.paysAt < b.paysAt);
  readonly #veterans = new IndexedHeap<"veteranPosition", KeyState>("veteranPosition", (a, b) => a.veteran < b.veteran);

  constructor(levels: number, ageAfterMs: number, slotsPerKey: number) {
    this.#levels = Array.from({ length: levels }, () => new IndexedHeap("readyPosition", hasSmallerShare));
    this.ageAfterMs = ageAfterMs;
    this.slotsPerKey = slotsPerKey;
  }

  add(ticket: LimiterTicket, now: number): void {
    const { keyState, level } = ticket;
    const queue = keyState.queueOf(level);
    queue.add(ticket);
    keyState.waiting++;
    // Most tickets queue behind others and change nothing.
    if (queue.first === ticket) this.place(keyState, now);
  }

  remove(ticket: LimiterTicket, now: number): void {
    const { keyState, level } = ticket;
    const queue = keyState.queues[level];
    const wasFirst = queue?.first === ticket;
    queue?.remove(ticket);
    keyState.waiting--;
    if (wasFirst) this.place(keyState, now);
  }

  /** The ticket whose turn it is now, if any. */
  first(now: number): LimiterTicket | undefined {
    this.#moveOn(now);
    const ready = this.#levels.find((level) => level.peek())?.peek();
    const veteran = this.#veterans.peek();
    const isOvertaken = ready !== undefined && veteran !== undefined && veteran.veteran < arrivalOf(ready);
    return (isOvertaken ? veteran : ready)?.first;
  }

  /** When time alone may change the result of `first`. */
  get changesAt(): number {
    return Math.min(this.#rising.peek()?.risesAt ?? Infinity, this.#blocked.peek()?.paysAt ?? Infinity);
  }

  /** Puts a key in its place after a change of its waiters, its share or its budgets. */
  place(key: KeyState, now: number): void {
    this.#levels[key.level]?.remove(key);
    this.#veterans.remove(key);
    this.#survey(key, now);
    if (key.risesAt < Infinity) this.#rising.put(key);
    else this.#rising.remove(key);
    key.paysAt = key.first === undefined ? Infinity : this.#payableAt(key, key.first, now);
    if (key.paysAt > now && key.paysAt < Infinity) this.#blocked.put(key);
    else this.#blocked.remove(key);
    if (key.first === undefined || key.paysAt > now) return;
    this.#levels[key.level]?.put(key);
    if (key.veteran < Infinity) this.#veterans.put(key);
  }

  /** Finds the first waiter of a key, and the time at which that may change. */
  #survey(key: KeyState, now: number): void {
    key.first = undefined;
    key.risesAt = Infinity;
    key.veteran = Infinity;
    for (let asked = 0; asked < key.queues.length; asked++) {
      const ticket = key.queues[asked]?.first;
      if (ticket === undefined) continue;
      const level = this.#risenTo(ticket, now);
      const isNext = key.first === undefined || level < key.level;
      if (isNext || (level === key.level && ticket.arrival < arrivalOf(key))) {
        key.first = ticket;
        key.level = level;
      }
      if (level > 0) key.risesAt = Math.min(key.risesAt, ticket.sinceAt + (asked - level + 1) * this.ageAfterMs);
      else if (asked > 0) key.veteran = Math.min(key.veteran, ticket.arrival);
    }
  }

  /**
   * Uses the same arithmetic as `risesAt`. Otherwise rounding could keep a waiter below the level for which it was
   * woken.
   */
  #risenTo({ level, sinceAt }: LimiterTicket, now: number): number {
    let risen = level;
    while (risen > 0 && sinceAt + (level - risen + 1) * this.ageAfterMs <= now) risen--;
    return risen;
  }

  /** Returns `Infinity` if the key must first give a slot back. */
  #payableAt(key: KeyState, { costs }: LimiterTicket, now: number): number {
    // Requests without a key have no own budgets.
    if (key.key === undefined) return 0;
    return key.inUse >= this.slotsPerKey ? Infinity : key.payableAt(costs, now);
  }

  #moveOn(now: number): void {
    for (let key = this.#rising.peek(); key && key.risesAt <= now; key = this.#rising.peek()) this.place(key, now);
    for (let key = this.#blocked.peek(); key && key.paysAt <= now; key = this.#blocked.peek()) this.place(key, now);
  }
}
