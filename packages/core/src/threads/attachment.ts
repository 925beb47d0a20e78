import { Desk } from "./desk.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { Identity } from "./identity.ts";
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

/** One thread's end of a shared semaphore: every operation that neither waits nor creates objects. */
export class Attachment {
  readonly memory: Memory;
  readonly identity: Identity;
  readonly queue: WaitQueue;
  readonly leases: Leases;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #dispatcher: Dispatcher;
  readonly #desk: Desk;
  /**
   * The last slot taken in each holder cell. Tags repeat after a million; an old slot object whose tag came round again
   * finds another object here, so it cannot free what this thread holds now. (DISPATCH2; another thread's tag differs anyway.)
   */
  readonly holding: (SharedSlot | undefined)[] = [];
  /** The cell taken last: most likely free, and in this core's cache. */
  #hint = 0;
  /** The tag used last: after a successful `take`, the slot's. */
  tag: number;
  /** Called for every cell of this thread that this thread served itself. */
  onSettled: ((cell: number) => void) | undefined;

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

  /** Takes a free slot if no thread waits: the holder cell, or -1. */
  take(): number {
    const words = this.#words;
    // A plain read costs nothing where Atomics.load costs as much as the swap. It may be old only towards threads that
    // nothing orders before this call, and those are not earlier arrivals; a "no" is confirmed, so polling sees changes.
    if (words[GATE] !== OPEN && Atomics.load(words, GATE) !== OPEN) return -1;
    const tag = this.#nextTag();
    const cell = this.#hint;
    if (Atomics.compareExchange(words, HOLDERS + cell * 4, FREE, tag) !== FREE) return this.#search(tag);
    if (this.memory.ttlMs > 0) this.leases.set(cell, tag, this.memory.ttlMs);
    return cell;
  }

  /** Whether this tag was still in its cell; then it is free, and the next in the queue has been seen to. */
  free(cell: number, tag: number): boolean {
    if (Atomics.compareExchange(this.#words, HOLDERS + cell * 4, tag, FREE) !== tag) return false;
    if (Atomics.load(this.#words, GATE) !== OPEN) this.call();
    return true;
  }

  isHeld(cell: number, tag: number): boolean {
    return this.memory.load(this.memory.holder(cell)) === tag;
  }

  /**
   * Postpones the deadline; gives the new tag, or 0 if the slot was lost. A new tag, so that an expiry under way fails
   * (TLEASE1), and the deadline before the tag, so that the new one is never without.
   */
  renew(cell: number, tag: number, ttlMs: number): number {
    const next = this.#nextTag();
    this.leases.set(cell, next, ttlMs);
    return this.memory.swap(this.memory.holder(cell), tag, next) ? next : 0;
  }

  /** Enters the queue: the wait cell, which may have its outcome already, or 0 if there is no cell left. */
  enqueue(): { cell: number; tag: number } {
    const cell = this.queue.claim();
    const tag = this.#nextTag();
    if (cell !== 0) {
      this.queue.push(cell, tag);
      this.call();
    }
    return { cell, tag };
  }

  /** Leaves the queue; false if the outcome came first. */
  cancel(cell: number): boolean {
    const { isCancelled, needsDesk } = this.queue.cancel(cell);
    if (needsDesk) this.call();
    return isCancelled;
  }

  /** Sees to it that the queue is served: by this thread, or by the one that is at it. */
  call(): void {
    this.#desk.call();
    const settled = this.#dispatcher.settledHere;
    if (settled.length === 0) return;
    this.#dispatcher.settledHere = [];
    for (const cell of settled) this.onSettled?.(cell);
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

  /** Declares a thread dead; gives the number of slots it held. */
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

  /** Differs from the last million of this attachment, and from all of others. */
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

  /** One more search; if another was faster, a thread may already wait for what we freed. */
  #takeExpired(tag: number): number {
    const cell = Atomics.load(this.#words, GATE) === OPEN ? this.#search(tag) : -1;
    if (cell < 0) this.call();
    return cell;
  }
}
