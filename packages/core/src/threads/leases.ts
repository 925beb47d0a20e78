import { isTag, type Memory, USED } from "./memory.ts";

export interface SharedTime {
  /** The same time in all threads. */
  now(): number;
  /** Milliseconds since the epoch, for `expiresAt`. */
  wallNow(): number;
}

/**
 * The deadlines of held slots. A deadline is stored together with the tag for which it was set, as one 64-bit word, so
 * that a delayed thread can never set the deadline of the current holder:
 *
 * TLEASE1 A slot is overdue only by a deadline that was set for the tag in its holder word. It is taken back by a
 *     compare-and-swap from that tag, so a renewal (which changes the tag) and an expiry exclude each other.
 * TLEASE2 A tag without a deadline (its thread is between two instructions, or died there) gets one full ttl from the
 *     time when this thread first saw it. So no slot is held for ever, and none is taken early.
 */
export class Leases {
  readonly #memory: Memory;
  readonly #time: SharedTime;
  readonly #firstSeen = new Map<number, { tag: number; at: number }>();

  constructor(memory: Memory, time: SharedTime) {
    this.#memory = memory;
    this.#time = time;
  }

  /** Milliseconds since the semaphore was created: 32 bits that wrap around and are compared by their difference. */
  #at(): number {
    return Math.floor(this.#time.now() - this.#memory.baseAt) | 0;
  }

  /** Adds one millisecond, because `#at` rounds down on both sides: a slot never expires early. */
  set(cell: number, tag: number, ttlMs: number): void {
    const deadline = (this.#at() + Math.ceil(ttlMs) + 1) | 0;
    const both = (BigInt(tag) << 32n) | BigInt(deadline >>> 0);
    Atomics.store(this.#memory.longs, this.#memory.deadline(cell), both);
  }

  /** The milliseconds until this holder is overdue; 0 or less if it is. */
  remainingMs(cell: number, tag: number): number {
    const both = Atomics.load(this.#memory.longs, this.#memory.deadline(cell));
    if (Number(both >> 32n) !== tag) return this.#remainingSinceSeen(cell, tag);
    return (Number(BigInt.asIntN(32, both)) - this.#at()) | 0;
  }

  /** The deadline in milliseconds since the epoch. */
  expiresAt(cell: number, tag: number): number | undefined {
    if (this.#memory.ttlMs === 0) return undefined;
    return this.#time.wallNow() + this.remainingMs(cell, tag);
  }

  /** The milliseconds until the first holder is overdue. */
  nextMs(): number {
    const memory = this.#memory;
    let next = memory.ttlMs;
    const used = memory.load(USED);
    for (let cell = 0; cell < used; cell++) {
      const word = memory.load(memory.holder(cell));
      if (isTag(word)) next = Math.min(next, this.remainingMs(cell, word));
    }
    return Math.max(next, 1);
  }

  #remainingSinceSeen(cell: number, tag: number): number {
    const seen = this.#firstSeen.get(cell);
    if (seen?.tag === tag) return (seen.at + this.#memory.ttlMs - this.#at()) | 0;
    this.#firstSeen.set(cell, { tag, at: this.#at() });
    return this.#memory.ttlMs;
  }
}
