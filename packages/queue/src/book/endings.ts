import { IndexedHeap } from "slotkeeper/parts";
import { SmallMap } from "../small-map.ts";
import { EndsByTime } from "./ends-by-time.ts";
import type { CooldownRecord, EndingRecord, LeaseRecord, OfferRecord } from "./records.ts";

interface LeaseEntry {
  record: LeaseRecord;
  leaseIndex: number;
}

interface Timed<R> {
  readonly record: R;
  timedIndex: number;
}

/** Records by key, ordered by when they end; then by key, so that the order does not depend on how the book was made. */
class Nearest<R extends { readonly key: string }> {
  readonly #heap: IndexedHeap<"timedIndex", Timed<R>>;
  readonly #byKey = new SmallMap<string, Timed<R>>();

  constructor(endOf: (record: R) => number) {
    this.#heap = new IndexedHeap("timedIndex", ({ record: a }, { record: b }) => {
      const [endA, endB] = [endOf(a), endOf(b)];
      return endA === endB ? a.key < b.key : endA < endB;
    });
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
  readonly #leases = new IndexedHeap<"leaseIndex", LeaseEntry>("leaseIndex", endsBefore);
  readonly #byToken = new SmallMap<string, LeaseEntry>();
  readonly #bySession = new SmallMap<string, LeaseEntry>();
  // Created when first needed: most hosts have none of these, and a new host should cost little.
  #offers: Nearest<OfferRecord> | undefined;
  #cooldowns: Nearest<CooldownRecord> | undefined;
  #ends: EndsByTime | undefined;

  /** The lease that ends next. */
  get nextLease(): LeaseRecord | undefined {
    return this.#leases.peek()?.record;
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
    return this.#bySession.get(session)?.record;
  }

  hasOffer(session: string): boolean {
    return this.#offers?.get(session) !== undefined;
  }

  setLease(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void {
    if (before === undefined && after !== undefined) this.#addLease(after);
    else if (before !== undefined && after === undefined) this.#dropLease(before);
    else if (after !== undefined) {
      const entry = this.#byToken.get(after.key) as LeaseEntry;
      entry.record = after;
      this.#leases.put(entry);
    }
  }

  setOffer(before: OfferRecord | undefined, after: OfferRecord | undefined): void {
    this.#offers ??= new Nearest(({ lapsesAt }) => lapsesAt);
    this.#offers.set(before, after);
  }

  setCooldown(before: CooldownRecord | undefined, after: CooldownRecord | undefined): void {
    this.#cooldowns ??= new Nearest(({ until }) => until);
    this.#cooldowns.set(before, after);
  }

  setEnd(before: EndingRecord | undefined, after: EndingRecord | undefined): void {
    this.#ends ??= new EndsByTime();
    if (before !== undefined) this.#ends.remove(before);
    if (after !== undefined) this.#ends.add(after);
  }

  #addLease(record: LeaseRecord): void {
    const entry = { record, leaseIndex: -1 };
    this.#byToken.set(record.key, entry);
    this.#bySession.set(record.session, entry);
    this.#leases.push(entry);
  }

  #dropLease({ key, session }: LeaseRecord): void {
    const entry = this.#byToken.get(key) as LeaseEntry;
    this.#byToken.delete(key);
    if (this.#bySession.get(session) === entry) this.#bySession.delete(session);
    this.#leases.remove(entry);
  }
}

/** Leases that end at the same time end in the order in which they were granted. */
function endsBefore({ record: a }: LeaseEntry, { record: b }: LeaseEntry): boolean {
  return a.endsAt === b.endsAt ? a.fence < b.fence : a.endsAt < b.endsAt;
}
