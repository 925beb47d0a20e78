/**
 * Who is next. The line holds all waiters and names the next one; what that one needs of the
 * common budgets and slots is not its concern.
 *
 * LINE1  Levels first: level 0 before level 1, and so on. A waiter rises by one level every `ageAfterMs`.
 * LINE2  Inside a level, the key with the smallest charged share goes first; of keys with equal shares, and without keys,
 *     the one whose waiter arrived first.
 * LINE3  A key has one waiter in front: the one on the highest level, and of those the first to arrive. As long as the key's
 *     own slots or budgets do not suffice for that one, the key is passed over: it reserves nothing and blocks no other
 *     key. The waiters behind it of the same key stay behind it, so a key's cheap requests cannot starve its costly one.
 * LINE4  The ageing bound: a waiter of level n > 0 has risen to the top after n × ageAfterMs. From then on its arrival
 *     counts, not its key's share: no later arrival goes first, unless its own key is passed over (LINE3).
 *     A waiter of level 0 has nowhere to rise to: shares order it among the others for as long as it waits.
 *
 * How: waiters of one level and key rise in the order of their arrival, so only the first of each such queue matters,
 * and nothing moves when time passes but the place of a key. Each key that is not passed over is in the heap of its
 * level; keys that wait for their budgets are in a heap by the time at which those suffice; keys with a waiter that can
 * rise are in a heap by the time of that. Cost: O(levels + log keys) to come, to leave and to rise.
 */
import { Heap } from "./heap.ts";
import type { KeyState } from "./key-state.ts";
import type { LimiterTicket } from "./limiter-slot.ts";

const arrivalOf = (key: KeyState): number => (key.first as LimiterTicket).arrival;

const hasSmallerShare = (a: KeyState, b: KeyState): boolean =>
  a.share < b.share || (a.share === b.share && arrivalOf(a) < arrivalOf(b));

export class WaitingLine {
  ageAfterMs: number;
  /** Of each key, `Infinity` for no limit. */
  slotsPerKey: number;
  readonly #levels: readonly Heap<KeyState, "readyPosition">[];
  readonly #rising = new Heap<KeyState, "risingPosition">("risingPosition", (a, b) => a.risesAt < b.risesAt);
  readonly #blocked = new Heap<KeyState, "blockedPosition">("blockedPosition", (a, b) => a.paysAt < b.paysAt);
  readonly #veterans = new Heap<KeyState, "veteranPosition">("veteranPosition", (a, b) => a.veteran < b.veteran);

  constructor(levels: number, ageAfterMs: number, slotsPerKey: number) {
    this.#levels = Array.from({ length: levels }, () => new Heap("readyPosition", hasSmallerShare));
    this.ageAfterMs = ageAfterMs;
    this.slotsPerKey = slotsPerKey;
  }

  add(ticket: LimiterTicket, now: number): void {
    const { keyState, level } = ticket;
    const queue = keyState.queueOf(level);
    queue.add(ticket);
    keyState.waiting++;
    // Most stand behind others, and change nothing.
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
    const ready = this.#levels.find((level) => level.first)?.first;
    const veteran = this.#veterans.first;
    const isOvertaken = ready !== undefined && veteran !== undefined && veteran.veteran < arrivalOf(ready);
    return (isOvertaken ? veteran : ready)?.first;
  }

  /** When that may change by time alone. */
  get changesAt(): number {
    return Math.min(this.#rising.first?.risesAt ?? Infinity, this.#blocked.first?.paysAt ?? Infinity);
  }

  /** Puts a key where it belongs: its waiters, its share or what it can pay has changed. */
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

  /** Finds who stands in front of a key's queues, and when that may change. */
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

  /** Compared as `risesAt` is computed: rounding must not keep a waiter below the level for which it was woken. */
  #risenTo({ level, sinceAt }: LimiterTicket, now: number): number {
    let risen = level;
    while (risen > 0 && sinceAt + (level - risen + 1) * this.ageAfterMs <= now) risen--;
    return risen;
  }

  /** `Infinity`: not before it gives a slot back. */
  #payableAt(key: KeyState, { costs }: LimiterTicket, now: number): number {
    // Requests without a key have no budgets here.
    if (key.key === undefined) return 0;
    return key.inUse >= this.slotsPerKey ? Infinity : key.payableAt(costs, now);
  }

  #moveOn(now: number): void {
    for (let key = this.#rising.first; key && key.risesAt <= now; key = this.#rising.first) this.place(key, now);
    for (let key = this.#blocked.first; key && key.paysAt <= now; key = this.#blocked.first) this.place(key, now);
  }
}
