import { Desk } from "./desk.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { Identity } from "./host.ts";
import { Leases, type SharedTime } from "./leases.ts";
import {
  CLOSED_AT,
  DEAD,
  DEATHS,
  FREE,
  firstTag,
  GATE,
  HOLDERS,
  isTag,
  type Memory,
  OPEN,
  OWNERS,
  ownerOfTag,
  TAG_STEP,
  USED,
  WANT,
} from "./memory.ts";
import type { SharedSlot } from "./shared-slot.ts";
import { WaitQueue } from "./wait-queue.ts";

/** The access of one thread to a shared semaphore: every operation that neither waits nor creates objects. */
export class Attachment {
  readonly memory: Memory;
  readonly identity: Identity;
  readonly queue: WaitQueue;
  readonly leases: Leases;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #dispatcher: Dispatcher;
  readonly #desk: Desk;
  /**
   * The last slot taken in each holder cell. Tags repeat after a million acquisitions. A stale slot object whose tag is
   * in use again finds another object here, so it cannot free a slot that this thread holds now (DISPATCH2). Tags of
   * other threads always differ.
   */
  readonly holding: (SharedSlot | undefined)[] = [];
  /** The cell that was taken last: probably free, and in the cache of this core. */
  #hint = 0;
  /** The tag that was used last. After a successful `take`, it is the tag of the slot. */
  tag: number;
  /** Called for every wait cell of this thread that this thread served itself. */
  onOutcome: ((cell: number) => void) | undefined;

  constructor(memory: Memory, identity: Identity, time: SharedTime, maxRounds?: number) {
    this.memory = memory;
    this.identity = identity;
    this.tag = firstTag(identity.owner);
    this.#words = memory.words;
    this.queue = new WaitQueue(memory, identity.owner);
    this.leases = new Leases(memory, time);
    this.#dispatcher = new Dispatcher(memory, this.queue, this.leases, identity.owner);
    this.#desk = new Desk(memory, identity.owner, this.#dispatcher, maxRounds);
  }

  /** Takes a free slot if no thread waits. Returns the holder cell, or -1. */
  take(): number {
    const words = this.#words;
    // A plain read is nearly free; Atomics.load costs as much as the swap. The plain read can be stale only with
    // respect to threads that are not ordered before this call, and those are not earlier arrivals. A "no" is confirmed
    // by the atomic load, so that polling sees changes.
    if (words[GATE] !== OPEN && Atomics.load(words, GATE) !== OPEN) return -1;
    const tag = this.#nextTag();
    const cell = this.#hint;
    if (Atomics.compareExchange(words, HOLDERS + cell * 4, FREE, tag) !== FREE) return this.#search(tag);
    if (this.memory.ttlMs > 0) this.leases.set(cell, tag, this.memory.ttlMs);
    return cell;
  }

  /** Frees the slot if its tag is still in the cell, and serves the queue. Returns whether it did. */
  free(cell: number, tag: number): boolean {
    if (Atomics.compareExchange(this.#words, HOLDERS + cell * 4, tag, FREE) !== tag) return false;
    if (Atomics.load(this.#words, GATE) !== OPEN) this.call();
    return true;
  }

  isHeld(cell: number, tag: number): boolean {
    return this.memory.load(this.memory.holder(cell)) === tag;
  }

  /**
   * Moves the deadline. Returns the new tag, or 0 if the slot was lost. The tag changes so that a concurrent expiry
   * fails (TLEASE1). The deadline is written before the tag, so that the new tag always has one.
   */
  renew(cell: number, tag: number, ttlMs: number): number {
    const next = this.#nextTag();
    this.leases.set(cell, next, ttlMs);
    return this.memory.swap(this.memory.holder(cell), tag, next) ? next : 0;
  }

  /** Enters the queue. Returns the wait cell, which may already have its outcome, or 0 if there is no cell left. */
  enqueue(): { cell: number; tag: number } {
    const cell = this.queue.claim();
    const tag = this.#nextTag();
    if (cell !== 0) {
      this.queue.push(cell, tag);
      this.call();
    }
    return { cell, tag };
  }

  /** Leaves the queue. Returns false if the outcome came first. */
  cancel(cell: number): boolean {
    const { isCancelled, needsDesk } = this.queue.cancel(cell);
    if (needsDesk) this.call();
    return isCancelled;
  }

  /** Makes sure that the queue is served, by this thread or by the current owner of the desk. */
  call(): void {
    this.#desk.call();
    const cells = this.#dispatcher.outcomesHere;
    if (cells.length === 0) return;
    this.#dispatcher.outcomesHere = [];
    for (const cell of cells) this.onOutcome?.(cell);
  }

  resize(slots: number): void {
    this.memory.store(WANT, slots);
    this.queue.shutForOrder();
    this.call();
  }

  close(): void {
    this.memory.store(CLOSED_AT, 1);
    this.queue.shutForOrder();
    this.call();
  }

  /** Marks a thread as dead. Returns the number of slots that it held. */
  reap(threadId: number): number {
    const memory = this.memory;
    const dead = new Set<number>();
    const owners = memory.load(OWNERS);
    for (let owner = 1; owner <= owners; owner++) {
      if (memory.swap(memory.thread(owner), threadId + 1, DEAD)) dead.add(owner);
    }
    const held = this.#count((word) => dead.has(ownerOfTag(word)));
    memory.store(DEATHS, 1);
    this.call();
    return held;
  }

  get inUse(): number {
    return this.#count(() => true);
  }

  /** Returns a tag that differs from the last million of this attachment and from all tags of others. */
  #nextTag(): number {
    this.tag = (this.tag + TAG_STEP) | 0;
    return this.tag;
  }

  #count(counts: (tag: number) => boolean): number {
    const used = this.memory.load(USED);
    let count = 0;
    for (let cell = 0; cell < used; cell++) {
      const word = this.memory.load(this.memory.holder(cell));
      if (isTag(word) && counts(word)) count++;
    }
    return count;
  }

  #search(tag: number): number {
    const memory = this.memory;
    const used = memory.load(USED);
    for (let cell = 0; cell < used; cell++) {
      if (memory.load(memory.holder(cell)) !== FREE || !memory.swap(memory.holder(cell), FREE, tag)) continue;
      this.#hint = cell;
      if (memory.ttlMs > 0) this.leases.set(cell, tag, memory.ttlMs);
      return cell;
    }
    return memory.ttlMs > 0 && this.#dispatcher.expire() ? this.#takeExpired(tag) : -1;
  }

  /**
   * Searches once more after an expiry. If another thread was faster, a thread may already wait for the slot that we
   * freed.
   */
  #takeExpired(tag: number): number {
    const cell = Atomics.load(this.#words, GATE) === OPEN ? this.#search(tag) : -1;
    if (cell < 0) this.call();
    return cell;
  }
}
