import { IndexedHeap } from "slotkeeper/parts";
import { SmallMap } from "../small-map.ts";
import type { CooldownRecord, EndingRecord, LeaseRecord, OfferRecord } from "./records.ts";

interface Timed<R> {
  readonly record: R;
  timedIndex: number;
}

/** Records by key, and the one that ends next. */
class Nearest<R extends { readonly key: string }> {
  readonly #heap: IndexedHeap<"timedIndex", Timed<R>>;
  readonly #byKey = new SmallMap<string, Timed<R>>();

  /** It must not depend on how the book was made, so no two records are equal. */
  constructor(endsBefore: (a: R, b: R) => boolean) {
    this.#heap = new IndexedHeap("timedIndex", (a, b) => endsBefore(a.record, b.record));
  }

  get next(): R | undefined {
    return this.#heap.peek()?.record;
  }

  get(key: string): R | undefined {
    return this.#byKey.get(key)?.record;
  }

  set(before: R | undefined, after: R | undefined): void {
    if (before !== undefined) {
      this.#heap.remove(this.#byKey.get(before.key) as Timed<R>);
      this.#byKey.delete(before.key);
    }
    if (after === undefined) return;
    const entry = { record: after, timedIndex: -1 };
    this.#byKey.set(after.key, entry);
    this.#heap.push(entry);
  }
}

/**
 * Leases, offers and cooldowns, ordered by when they end, and ended sessions, ordered by when they ended. Derived from
 * the records: call the matching `set…` method for each changed record. Cost: O(log n) each.
 */
export class Endings {
  readonly #leases = new Nearest<LeaseRecord>(leaseEndsBefore);
  readonly #bySession = new SmallMap<string, LeaseRecord>();
  // Created when first needed: most hosts have none of these, and a new host should cost little.
  #offers: Nearest<OfferRecord> | undefined;
  #cooldowns: Nearest<CooldownRecord> | undefined;
  #ends: EndsByTime | undefined;

  /** The lease that ends next. */
  get nextLease(): LeaseRecord | undefined {
    return this.#leases.next;
  }

  get nextOffer(): OfferRecord | undefined {
    return this.#offers?.next;
  }

  get nextCooldown(): CooldownRecord | undefined {
    return this.#cooldowns?.next;
  }

  /** The session that ended first. */
  get nextEnd(): EndingRecord | undefined {
    return this.#ends?.next;
  }

  cooldownOf(bucket: string): CooldownRecord | undefined {
    return this.#cooldowns?.get(bucket);
  }

  leaseOf(session: string): LeaseRecord | undefined {
    return this.#bySession.get(session);
  }

  hasOffer(session: string): boolean {
    return this.#offers?.get(session) !== undefined;
  }

  setLease(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void {
    this.#leases.set(before, after);
    if (before !== undefined && this.#bySession.get(before.session) === before) this.#bySession.delete(before.session);
    if (after !== undefined) this.#bySession.set(after.session, after);
  }

  setOffer(before: OfferRecord | undefined, after: OfferRecord | undefined): void {
    this.#offers ??= new Nearest((a, b) => isEarlier(a.lapsesAt, b.lapsesAt, a, b));
    this.#offers.set(before, after);
  }

  setCooldown(before: CooldownRecord | undefined, after: CooldownRecord | undefined): void {
    this.#cooldowns ??= new Nearest((a, b) => isEarlier(a.until, b.until, a, b));
    this.#cooldowns.set(before, after);
  }

  setEnd(before: EndingRecord | undefined, after: EndingRecord | undefined): void {
    this.#ends ??= new EndsByTime();
    if (before !== undefined) this.#ends.remove(before);
    if (after !== undefined) this.#ends.add(after);
  }
}

/** Leases that end at the same time end in the order in which they were granted. */
function leaseEndsBefore(a: LeaseRecord, b: LeaseRecord): boolean {
  return a.endsAt === b.endsAt ? a.fence < b.fence : a.endsAt < b.endsAt;
}

interface Keyed {
  readonly key: string;
}

/** Records that end at the same time end in the order of their keys. */
function isEarlier(endA: number, endB: number, a: Keyed, b: Keyed): boolean {
  return endA === endB ? a.key < b.key : endA < endB;
}

/**
 * The ended sessions of a host, ordered by when they ended; then by key, so that the order does not depend on how the
 * book was made. A busy host has ten thousand of them, and each decision adds some at the end and removes some from the
 * front. So this is a sorted array, and not a heap: with a heap and a map a cycle of the engine took 16.9 µs instead of 15.6.
 * Cost: O(1) at both ends, amortized; O(n) elsewhere, for an end that is prolonged, or a commit of another instance that is
 * read out of order.
 */
class EndsByTime {
  /** Those before `#start` are removed. */
  #ends: EndingRecord[] = [];
  #start = 0;

  /** The session that ended first. */
  get next(): EndingRecord | undefined {
    return this.#ends[this.#start];
  }

  add(record: EndingRecord): void {
    const ends = this.#ends;
    const last = ends.at(-1);
    // Most hosts have one: with `push` it would get an array for 17.
    if (last === undefined) this.#ends = [record];
    else if (isBefore(last, record)) ends.push(record);
    else ends.splice(this.#placeOf(record), 0, record);
  }

  /** The record must be present. */
  remove(record: EndingRecord): void {
    const ends = this.#ends;
    if (record !== this.next) {
      ends.splice(this.#placeOf(record), 1);
      return;
    }
    this.#start++;
    if (this.#start * 2 < ends.length) return;
    ends.splice(0, this.#start);
    this.#start = 0;
  }

  /** The index of the first record that is not before this one. */
  #placeOf(record: EndingRecord): number {
    let [low, high] = [this.#start, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#ends[middle] as EndingRecord, record)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBefore(a: EndingRecord, b: EndingRecord): boolean {
  return isEarlier(a.endedAt ?? a.keepUntil, b.endedAt ?? b.keepUntil, a, b);
}
