/**
 * How slots go from thread to thread. Written from scratch; the parts it stands on are old: a stack of arrivals pushed by
 * compare-and-swap, one combining thread (flat combining) instead of a lock that others wait for.
 *
 * What can never happen
 * DISPATCH1 (limit) A holder word is FREE, RETIRED or one tag, and changes by compare-and-swap only. Words that are not RETIRED
 *    number `capacity` (more only after a shrink, until enough are released). So never more holders than slots.
 * DISPATCH2 (owner) A tag names one acquisition of one attachment. A release swaps from its own tag, so it frees its own slot
 *    or nothing: once, never after expiry or reaping, never another's.
 * DISPATCH3 (order) A slot is given to the first of the queue, and the queue has the order of arrival (TQUEUE1).
 * DISPATCH4 (no barging) While the gate is not OPEN only the desk takes a slot, for the first of the queue.
 * DISPATCH5 (no lost wake-up) When no thread is at the desk or on the way to it, no slot is FREE while a thread waits.
 * DISPATCH6 (cancellation) A wait cell has one outcome. Cancelled first, it is skipped and no slot is spent on it; granted
 *    first, the caller has the slot, whatever is aborted after that.
 * DISPATCH7 (death) A thread that dies at any instruction leaves words that `reap` puts right: no slot, wait cell or wake-up is
 *    lost, and no other thread's.
 *
 * Wait cell: who changes its state, always by compare-and-swap unless it is theirs alone
 * | from                       | to        | by                    | when                                          |
 * |----------------------------|-----------|-----------------------|-----------------------------------------------|
 * | UNUSED                     | CLAIMED   | any thread            | it wants to wait                              |
 * | CLAIMED                    | WAITING   | its owner             | just before it is pushed                      |
 * | WAITING                    | ASLEEP    | its owner             | before it sleeps: only then is it notified    |
 * | WAITING, ASLEEP            | NUDGED    | who leaves the desk   | there is more to do (DESK3)                      |
 * | NUDGED                     | WAITING   | its owner             | then it calls the desk                        |
 * | WAITING, ASLEEP, NUDGED    | GRANTED   | the desk              | the holder word has its tag already           |
 * | WAITING, ASLEEP, NUDGED    | REFUSED   | the desk              | more than `maxWaiters` wait                   |
 * | WAITING, ASLEEP, NUDGED    | CLOSED    | the desk              | after `close`                                 |
 * | WAITING, ASLEEP, NUDGED    | CANCELLED | its owner             | abort, timeout                                |
 * | GRANTED, REFUSED, CLOSED   | UNUSED    | its owner             | it has read the outcome                       |
 * | CANCELLED                  | UNUSED    | the desk              | at the head, or by a sweep                    |
 * | any                        | UNUSED    | the desk              | its owner is dead                             |
 *
 * Where it takes effect (linearization)
 *   tryAcquire, acquire with a free slot: the swap FREE → tag. acquire that waits: arrives with the push, has the slot
 *   with the swap to GRANTED. release: the swap tag → FREE. cancellation: the swap to CANCELLED. close, resize: the gate
 *   leaving OPEN, or the round that reads the order.
 *
 * Bound on the order of arrival
 *   If one call of acquire has pushed (its promise was returned) before another call begins, it is served first: no
 *   inversion, across threads, whatever happens. Two calls that overlap are ordered by their pushes. A call that saw the
 *   gate OPEN counts as arrived at that look: it may take a slot ahead of others that pushed after the look, once.
 *
 * Cost
 *   Uncontended: one load and one compare-and-swap, to acquire and to release. Contended: O(1) for the queue, plus a look
 *   at the holder words up to a free one (all of them if there is none): O(slots). No system call unless the waiter
 *   sleeps. The desk does a bounded amount for others (DESK3), and no thread ever waits for it.
 *
 * Not promised
 *   Fairness among threads beyond the order of arrival. A slot held by a dead thread before `reap` or its ttl. Anything
 *   after `reap` of a thread that lives.
 */
import type { Service } from "./desk.ts";
import type { Leases } from "./leases.ts";
import {
  ASLEEP,
  CANCELLED,
  CLOSED,
  CLOSED_AT,
  DEATHS,
  FREE,
  GATE,
  GRANTED,
  holderOf,
  isPending,
  isTag,
  kindOf,
  LIVE,
  type Memory,
  NUDGED,
  OPEN,
  ownerOf,
  REFUSED,
  RETIRED,
  SHUT,
  stateOf,
  USED,
  WANT,
} from "./memory.ts";
import { buryTheDead, findTheDead, finishGrants } from "./recovery.ts";
import type { WaitQueue } from "./wait-queue.ts";

export class Dispatcher implements Service {
  readonly #memory: Memory;
  readonly #queue: WaitQueue;
  readonly #leases: Leases;
  readonly #owner: number;
  /** Cells of this attachment that got their outcome from this attachment: no need to wait for the notification. */
  settledHere: number[] = [];

  constructor(memory: Memory, queue: WaitQueue, leases: Leases, owner: number) {
    this.#memory = memory;
    this.#queue = queue;
    this.#leases = leases;
    this.#owner = owner;
  }

  round(): void {
    const memory = this.#memory;
    const dead = Atomics.exchange(memory.words, DEATHS, 0) === 0 ? undefined : findTheDead(memory);
    this.#queue.admit();
    if (dead !== undefined) buryTheDead(memory, this.#queue, dead);
    if (memory.load(LIVE) !== memory.load(WANT)) this.#fit();
    this.#queue.sweepIfDue();
    this.#match();
    this.#refuse();
    this.#open();
  }

  repair(): void {
    finishGrants(this.#memory, (cell, outcome) => this.#settle(cell, outcome));
    this.#queue.relink();
    let live = 0;
    for (let cell = 0; cell < this.#memory.maxHolders; cell++) {
      if (this.#memory.load(this.#memory.holder(cell)) !== RETIRED) live++;
    }
    this.#memory.store(LIVE, live);
  }

  first(): number {
    return this.#queue.head;
  }

  nudge(cell: number): boolean {
    const memory = this.#memory;
    for (;;) {
      const seen = memory.load(memory.state(cell));
      if (!isPending(kindOf(seen))) return false;
      if (memory.swap(memory.state(cell), seen, stateOf(NUDGED, ownerOf(seen)))) {
        this.#wake(cell, seen);
        return true;
      }
    }
  }

  /** Serves the head of the queue until it has to wait. */
  #match(): void {
    const memory = this.#memory;
    const isClosed = memory.load(CLOSED_AT) !== 0;
    for (let cell = this.#queue.head; cell !== 0; cell = this.#queue.head) {
      const state = memory.load(memory.state(cell));
      if (kindOf(state) === CANCELLED) this.#queue.bury(cell);
      else if (isClosed) this.#finish(cell, stateOf(CLOSED, ownerOf(state)));
      else if (!this.#grant(cell, ownerOf(state))) return;
    }
  }

  /** False if there is no slot to give. */
  #grant(cell: number, owner: number): boolean {
    const memory = this.#memory;
    const tag = memory.load(memory.tag(cell));
    const holder = this.#take(tag);
    if (holder < 0) return false;
    if (memory.ttlMs > 0) this.#leases.set(holder, tag, memory.ttlMs);
    this.#finish(cell, stateOf(GRANTED, owner, holder));
    return true;
  }

  /** Puts the tag into a free holder word; pays the debt of a shrink first, takes from the overdue last. */
  #take(tag: number): number {
    const memory = this.#memory;
    const used = memory.load(USED);
    for (let holder = 0; holder < used; holder++) {
      if (memory.load(memory.holder(holder)) !== FREE) continue;
      if (memory.load(LIVE) > memory.load(WANT)) this.#retire(holder);
      else if (memory.swap(memory.holder(holder), FREE, tag)) return holder;
    }
    return memory.ttlMs > 0 && this.expire() ? this.#take(tag) : -1;
  }

  /** Frees one slot that is overdue. May be called without the desk. */
  expire(): boolean {
    const memory = this.#memory;
    const used = memory.load(USED);
    for (let holder = 0; holder < used; holder++) {
      const word = memory.load(memory.holder(holder));
      if (!isTag(word) || this.#leases.remainingMs(holder, word) > 0) continue;
      if (memory.swap(memory.holder(holder), word, FREE)) return true;
    }
    return false;
  }

  /** Takes the newest out of a queue that is too long. */
  #refuse(): void {
    const memory = this.#memory;
    while (this.#queue.length > memory.maxWaiters) {
      if (this.#queue.sweep()) continue;
      const cell = this.#queue.tail;
      this.#finish(cell, stateOf(REFUSED, ownerOf(memory.load(memory.state(cell)))));
    }
  }

  #open(): void {
    const memory = this.#memory;
    // In this order: an order written after the loads has set the gate to ORDERED, and the swap fails.
    const isIdle = this.#queue.head === 0 && memory.load(LIVE) === memory.load(WANT);
    if (isIdle && memory.load(CLOSED_AT) === 0) memory.swap(GATE, SHUT, OPEN);
  }

  /** The state first, the queue after: a death in between leaves no waiter without an outcome (TQUEUE3). */
  #finish(cell: number, outcome: number): void {
    this.#settle(cell, outcome);
    this.#queue.unlink(cell);
  }

  #settle(cell: number, outcome: number): void {
    const memory = this.#memory;
    for (;;) {
      const seen = memory.load(memory.state(cell));
      if (kindOf(seen) === CANCELLED) {
        // Before the cell is given away, so that a repair can still see that the tag has no owner.
        const tag = memory.load(memory.tag(cell));
        if (kindOf(outcome) === GRANTED) memory.swap(memory.holder(holderOf(outcome)), tag, FREE);
        memory.store(memory.state(cell), 0);
        return;
      }
      if (!memory.swap(memory.state(cell), seen, outcome)) continue;
      if (ownerOf(seen) === this.#owner) this.settledHere.push(cell);
      this.#wake(cell, seen);
      return;
    }
  }

  #wake(cell: number, seen: number): void {
    if (kindOf(seen) === ASLEEP) Atomics.notify(this.#memory.words, this.#memory.state(cell));
  }

  /** Towards the wanted capacity: the lowest numbers come back first, the highest free ones go first. */
  #fit(): void {
    const memory = this.#memory;
    for (let holder = 0; memory.load(LIVE) < memory.load(WANT) && holder < memory.maxHolders; holder++) {
      if (memory.load(memory.holder(holder)) === RETIRED) this.#restore(holder);
    }
    for (let holder = memory.load(USED) - 1; memory.load(LIVE) > memory.load(WANT) && holder >= 0; holder--) {
      if (memory.load(memory.holder(holder)) === FREE) this.#retire(holder);
    }
  }

  #restore(holder: number): void {
    const memory = this.#memory;
    memory.store(USED, Math.max(memory.load(USED), holder + 1));
    memory.store(memory.holder(holder), FREE);
    memory.store(LIVE, memory.load(LIVE) + 1);
  }

  #retire(holder: number): void {
    const memory = this.#memory;
    if (memory.swap(memory.holder(holder), FREE, RETIRED)) memory.store(LIVE, memory.load(LIVE) - 1);
  }
}
