import { isTag, type Memory, USED } from "./memory.ts";

export interface SharedTime {
  /** The same in all threads. */
  now(): number;
  /** Since the epoch, for people. */
  wallNow(): number;
}

/**
 * Until when a slot may be held. A deadline is stored together with the tag it was set for, as one 64-bit word, so that
 * a thread that wakes up late can never set the deadline of the present holder:
 *
 * TLEASE1 A slot is overdue only by a deadline set for the tag that is in its holder word, and is taken back by a
 *    compare-and-swap from that tag: a renewal (which changes the tag) and an expiry exclude each other.
 * TLEASE2 A tag without a deadline (its thread is between two instructions, or died there) is given one full ttl from when
 *    this thread first saw it. So nothing is held for ever, and nothing is taken early.
 */
export class Leases {
  readonly #memory: Memory;
  readonly #time: SharedTime;
  readonly #firstSeen = new Map<number, { tag: number; at: number }>();

  constructor(memory: Memory, time: SharedTime) {
    this.#memory = memory;
    this.#time = time;
  }

  /** Milliseconds since the semaphore was made: 32 bits, wrapping, compared by their difference. */
  #at(): number {
    return Math.floor(this.#time.now() - this.#memory.baseAt) | 0;
  }

  /** Milliseconds are cut off in `#at` on both sides, hence the one more: never early. */
  set(cell: number, tag: number, ttlMs: number): void {
    const deadline = (this.#at() + Math.ceil(ttlMs) + 1) | 0;
    const both = (BigInt(tag) << 32n) | BigInt(deadline >>> 0);
    Atomics.store(this.#memory.longs, this.#memory.deadline(cell), both);
  }

  /** How long until this holder is overdue; 0 or less: it is. */
  remainingMs(cell: number, tag: number): number {
    const both = Atomics.load(this.#memory.longs, this.#memory.deadline(cell));
    if (Number(both >> 32n) !== tag) return this.#remainingSinceSeen(cell, tag);
    return (Number(BigInt.asIntN(32, both)) - this.#at()) | 0;
  }

  /** As an instant of the wall clock. */
  expiresAt(cell: number, tag: number): number | undefined {
    if (this.#memory.ttlMs === 0) return undefined;
    return this.#time.wallNow() + this.remainingMs(cell, tag);
  }

  /** How long until the first of the holders is overdue. */
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
