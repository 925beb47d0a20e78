/**
 * Moves slots from thread to thread. The code is written from scratch on two well-known parts: a stack of arrivals that
 * threads push to by compare-and-swap, and one combining thread (flat combining) instead of a lock.
 *
 * Invariants
 * DISPATCH1 (limit) A holder word is FREE, RETIRED or one tag, and changes by compare-and-swap only. The number of
 *     words that are not RETIRED is `capacity` (more only after a shrink, until enough slots are released). So there
 *     are never more holders than slots.
 * DISPATCH2 (owner) A tag names one acquisition of one attachment. A release swaps from its own tag, so it frees its
 *     own slot or nothing: once, never after expiry or reaping, and never the slot of another caller.
 * DISPATCH3 (order) A slot is given to the first in the queue, and the queue has the order of arrival (TQUEUE1).
 * DISPATCH4 (no barging) While the gate is not OPEN, only the owner of the desk takes slots, for the first in the
 *     queue.
 * DISPATCH5 (no lost wake-up) When no thread is at the desk or about to call it, no slot is FREE while a thread waits.
 * DISPATCH6 (cancellation) A wait cell has one outcome. If it is cancelled first, it is skipped and takes no slot. If
 *     it is granted first, the caller has the slot, even if the wait is aborted afterwards.
 * DISPATCH7 (death) A thread can die at any instruction, and `reap` repairs the words that it leaves: no slot, wait
 *     cell or wake-up is lost, and those of other threads are not touched.
 *
 * Wait cell: which thread changes its state, by compare-and-swap unless only its owner can change it
 * | from                       | to        | by                    | when                                          |
 * |----------------------------|-----------|-----------------------|-----------------------------------------------|
 * | UNUSED                     | CLAIMED   | any thread            | it has to wait                                |
 * | CLAIMED                    | WAITING   | its owner             | just before it is pushed                      |
 * | WAITING                    | ASLEEP    | its owner             | before it sleeps; only then it is notified    |
 * | WAITING, ASLEEP            | NUDGED    | the desk, leaving     | work is left (DESK3)                          |
 * | NUDGED                     | WAITING   | its owner             | then it calls the desk                        |
 * | WAITING, ASLEEP, NUDGED    | GRANTED   | the desk              | after its tag is in the holder word           |
 * | WAITING, ASLEEP, NUDGED    | REFUSED   | the desk              | more than `maxWaiters` wait                   |
 * | WAITING, ASLEEP, NUDGED    | CLOSED    | the desk              | after `close`                                 |
 * | WAITING, ASLEEP, NUDGED    | CANCELLED | its owner             | abort, timeout                                |
 * | GRANTED, REFUSED, CLOSED   | UNUSED    | its owner             | it has read the outcome                       |
 * | CANCELLED                  | UNUSED    | the desk              | at the head, or by a sweep                    |
 * | any                        | UNUSED    | the desk              | its owner is dead                             |
 *
 * Linearization points
 *   tryAcquire, acquire with a free slot: the swap FREE → tag. acquire that waits: it arrives with the push and has the
 *   slot with the swap to GRANTED. release: the swap tag → FREE. cancellation: the swap to CANCELLED. close, resize:
 *   the gate leaves OPEN, or the round reads the order.
 *
 * Bound on the order of arrival
 *   If one call of acquire has pushed (its promise was returned) before another call begins, it is served first, across
 *   threads, without exception. Two calls that overlap are ordered by their pushes. A call that reads the gate as OPEN
 *   counts as arrived at that read: it may take a slot ahead of others that pushed after the read, once.
 *
 * Cost
 *   Uncontended: one load and one compare-and-swap, to acquire and to release. Contended: O(1) for the queue, plus a
 *   search of the holder words for a free one (all of them if there is none): O(slots). No system call unless the
 *   waiter sleeps. The desk does a bounded amount of work for others (DESK3), and no thread waits for it.
 *
 * Not promised
 *   Fairness among threads beyond the order of arrival. The slots of a dead thread before `reap` or their ttl. Anything
 *   after `reap` of a thread that is still alive.
 */
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

export class Dispatcher {
  readonly #memory: Memory;
  readonly #queue: WaitQueue;
  readonly #leases: Leases;
  readonly #owner: number;
  /** Wait cells of this attachment that it served itself, so they need no notification. */
  outcomesHere: number[] = [];

  constructor(memory: Memory, queue: WaitQueue, leases: Leases, owner: number) {
    this.#memory = memory;
    this.#queue = queue;
    this.#leases = leases;
    this.#owner = owner;
  }

  /** Handles everything that is pending. Sees everything that was written before it began. */
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

  /** Repairs what an owner of the desk left half done when it died during a round. */
  repair(): void {
    finishGrants(this.#memory, (cell, outcome) => this.#putOutcome(cell, outcome));
    this.#queue.relink();
    let live = 0;
    for (let cell = 0; cell < this.#memory.maxHolders; cell++) {
      if (this.#memory.load(this.#memory.holder(cell)) !== RETIRED) live++;
    }
    this.#memory.store(LIVE, live);
  }

  /** The first cell of the queue, or 0. */
  first(): number {
    return this.#queue.head;
  }

  /**
   * Asks the thread that waits in this cell to call the desk. Returns false if it no longer waits. Does not require the
   * desk.
   */
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

  /** Serves the head of the queue until no slot is free. */
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

  /** Returns false if no slot is free. */
  #grant(cell: number, owner: number): boolean {
    const memory = this.#memory;
    const tag = memory.load(memory.tag(cell));
    const holder = this.#take(tag);
    if (holder < 0) return false;
    if (memory.ttlMs > 0) this.#leases.set(holder, tag, memory.ttlMs);
    this.#finish(cell, stateOf(GRANTED, owner, holder));
    return true;
  }

  /**
   * Puts the tag into a free holder word. First retires slots after a shrink; takes back an overdue slot as the last
   * resort.
   */
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

  /** Frees one overdue slot. Does not require the desk. */
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

  /** Refuses the newest waiters of a queue that is too long. */
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
    // The order of these reads matters: an order (resize, close) written after them sets the gate to ORDERED, and the
    // swap fails.
    const isIdle = this.#queue.head === 0 && memory.load(LIVE) === memory.load(WANT);
    if (isIdle && memory.load(CLOSED_AT) === 0) memory.swap(GATE, SHUT, OPEN);
  }

  /** Writes the state before the queue: a death in between leaves no waiter without an outcome (TQUEUE3). */
  #finish(cell: number, outcome: number): void {
    this.#putOutcome(cell, outcome);
    this.#queue.unlink(cell);
  }

  #putOutcome(cell: number, outcome: number): void {
    const memory = this.#memory;
    for (;;) {
      const seen = memory.load(memory.state(cell));
      if (kindOf(seen) === CANCELLED) {
        // Before the cell is given away, so that a repair still sees that the tag has no owner.
        const tag = memory.load(memory.tag(cell));
        if (kindOf(outcome) === GRANTED) memory.swap(memory.holder(holderOf(outcome)), tag, FREE);
        memory.store(memory.state(cell), 0);
        return;
      }
      if (!memory.swap(memory.state(cell), seen, outcome)) continue;
      if (ownerOf(seen) === this.#owner) this.outcomesHere.push(cell);
      this.#wake(cell, seen);
      return;
    }
  }

  #wake(cell: number, seen: number): void {
    if (kindOf(seen) === ASLEEP) Atomics.notify(this.#memory.words, this.#memory.state(cell));
  }

  /** Moves towards the wanted capacity: the lowest numbers return first, the highest free ones retire first. */
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
