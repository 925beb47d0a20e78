import { bucketLimit, type HostPolicy } from "../host-policy.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import { BucketOrder } from "../order/bucket-order.ts";
import { Bucket, type WaiterEntry } from "./bucket.ts";
import { Ledger } from "./ledger.ts";
import type { AccountRecord, CooldownRecord, LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";
import { WaiterPool } from "./waiter-pool.ts";

interface LeaseEntry {
  record: LeaseRecord;
  leaseIndex: number;
}

interface OfferEntry {
  readonly record: OfferRecord;
  offerIndex: number;
}

interface CooldownEntry {
  readonly record: CooldownRecord;
  coolIndex: number;
}

/**
 * What a decision must find without looking through the records: whose turn it is, what ends next, who may enter the pool.
 * Derived: each `set…` takes the index from one state of a record to the next, and order does not matter. What buckets hold
 * is right at once; the heaps and sums over buckets are brought up to date when they are asked.
 * Cost: O(log n) each.
 */
export class BookIndex {
  readonly #ledger = new Ledger();
  readonly #pool = new WaiterPool();
  /** Buckets that changed since the index was last asked: out of every heap until then. */
  #dirty: Bucket[] = [];
  #usesTurns = false;
  /** Half-open probes among leases and offers. */
  probes = 0;
  /** The opening of the breaker for which waiters were looked through last. */
  throttledAt: number | undefined;
  /** While a commit of others is applied: when it was made. See `#owe`. */
  foreignAt: number | undefined;
  #order = new BucketOrder<Bucket>();
  #policy: HostPolicy | undefined;
  readonly #buckets = new Map<string, Bucket>();
  readonly #leases = new IndexedHeap<"leaseIndex", LeaseEntry>("leaseIndex", endsBefore);
  readonly #byToken = new Map<string, LeaseEntry>();
  readonly #bySession = new Map<string, LeaseEntry>();
  readonly #waiters = new Map<string, WaiterEntry>();
  readonly #offers = new IndexedHeap<"offerIndex", OfferEntry>("offerIndex", lapsesBefore);
  // Made when first needed: most hosts have none of these, and a new host should cost little.
  #offerOf: Map<string, OfferEntry> | undefined;
  #cooldowns: Map<string, CooldownEntry> | undefined;
  #absent: Set<string> | undefined;
  readonly #coolest = new IndexedHeap<"coolIndex", CooldownEntry>("coolIndex", coolsBefore);
  readonly #denied = new IndexedHeap<"denyIndex", Bucket>("denyIndex", allowedBefore);
  /** Without slots or waiters, and ahead of the meter: nearest first. */
  readonly #idle = new IndexedHeap<"idleIndex", Bucket>("idleIndex", isNearer);
  readonly #turns = new IndexedHeap<"turnIndex", Bucket>("turnIndex", turnBefore);
  readonly #byInstance = new Map<string, number>();

  /** Instances that have waiters here. */
  get instances(): Iterable<string> {
    return this.#byInstance.keys();
  }

  get ledger(): Ledger {
    this.#attachDirty();
    return this.#ledger;
  }

  get pool(): WaiterPool {
    this.#attachDirty();
    return this.#pool;
  }

  get order(): BucketOrder<Bucket> {
    this.#attachDirty();
    return this.#order;
  }

  get buckets(): Iterable<Bucket> {
    this.#attachDirty();
    return this.#buckets.values();
  }

  /** The lease that ends next. */
  get nextLease(): LeaseRecord | undefined {
    return this.#leases.peek()?.record;
  }

  get nextOffer(): OfferRecord | undefined {
    return this.#offers.peek()?.record;
  }

  get nextCooldown(): CooldownRecord | undefined {
    return this.#coolest.peek()?.record;
  }

  get nextDenied(): Bucket | undefined {
    return this.#denied.peek();
  }

  get nextIdle(): Bucket | undefined {
    this.#attachDirty();
    return this.#idle.peek();
  }

  /** Of the weighted scheduler: the eligible bucket with the smallest virtual time. */
  get nextTurn(): Bucket | undefined {
    this.#attachDirty();
    return this.#turns.peek();
  }

  bucket(name: string): Bucket | undefined {
    return this.#buckets.get(name);
  }

  waiter(session: string): WaiterEntry | undefined {
    return this.#waiters.get(session);
  }

  leaseOf(session: string): LeaseRecord | undefined {
    return this.#bySession.get(session)?.record;
  }

  isAbsent(instance: string): boolean {
    return this.#absent?.has(instance) === true;
  }

  usePolicy(policy: HostPolicy): void {
    const wasFifo = this.#policy?.order === "fifo";
    const isFifo = policy.order === "fifo";
    this.#policy = policy;
    for (const bucket of this.#buckets.values()) this.#detach(bucket);
    if (wasFifo !== isFifo) this.#order = new BucketOrder(isFifo);
  }

  /** Whether the weighted scheduler may ask for turns. */
  useTurns(isUsed: boolean): void {
    if (this.#usesTurns === isUsed) return;
    this.#usesTurns = isUsed;
    for (const bucket of this.#buckets.values()) this.#detach(bucket);
  }

  setLease(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void {
    if (before !== undefined && after !== undefined) {
      this.#moveLease(after);
      return;
    }
    if (after !== undefined) {
      const entry = { record: after, leaseIndex: -1 };
      this.#byToken.set(after.key, entry);
      this.#bySession.set(after.session, entry);
      this.#leases.push(entry);
      this.#hold(after.bucket, 1, after.grantedAt, after.isProbe);
    } else if (before !== undefined) {
      const entry = this.#byToken.get(before.key) as LeaseEntry;
      this.#byToken.delete(before.key);
      if (this.#bySession.get(before.session) === entry) this.#bySession.delete(before.session);
      this.#leases.remove(entry);
      this.#hold(before.bucket, -1, this.foreignAt, before.isProbe);
    }
  }

  setOffer(before: OfferRecord | undefined, after: OfferRecord | undefined): void {
    if (before !== undefined) {
      this.#offers.remove(this.#offerOf?.get(before.key) as OfferEntry);
      this.#offerOf?.delete(before.key);
      this.#hold(before.bucket, -1, this.foreignAt, before.isProbe);
    }
    if (after !== undefined) {
      const entry = { record: after, offerIndex: -1 };
      this.#offerOf ??= new Map();
      this.#offerOf.set(after.key, entry);
      this.#offers.push(entry);
      this.#hold(after.bucket, 1, after.offeredAt, after.isProbe);
    }
    const waiter = this.#waiters.get((before ?? after)?.key ?? "");
    if (waiter !== undefined) this.#replace(waiter, waiter.record);
  }

  setWaiter(before: WaiterRecord | undefined, after: WaiterRecord | undefined): void {
    const key = (before ?? after)?.key ?? "";
    if (before?.instance !== after?.instance) {
      this.#count(before?.instance, -1);
      this.#count(after?.instance, 1);
    }
    let entry = this.#waiters.get(key);
    if (entry !== undefined && after?.bucket === entry.record.bucket) {
      this.#replace(entry, after);
      return;
    }
    if (entry !== undefined) {
      this.#waiters.delete(key);
      this.#replace(entry, undefined);
    }
    if (after === undefined) return;
    const bucket = this.#open(after.bucket);
    entry = { record: after, bucket, isOffered: false, readyIndex: -1, youngIndex: -1, outsideIndex: -1 };
    this.#waiters.set(key, entry);
    this.#replace(entry, after);
  }

  setAccount(name: string, after: AccountRecord | undefined): void {
    const bucket = this.#open(name);
    this.#detach(bucket);
    this.#denied.remove(bucket);
    bucket.account = after;
    bucket.weight = after?.weight ?? 1;
    bucket.usedMs = after?.usedMs ?? 0;
    bucket.asOf = after?.asOf ?? 0;
    if (after?.denyUntil !== undefined) this.#denied.push(bucket);
  }

  setCooldown(name: string, after: CooldownRecord | undefined): void {
    const entry = this.#cooldowns?.get(name);
    if (entry !== undefined) this.#coolest.remove(entry);
    this.#cooldowns?.delete(name);
    if (after === undefined) return;
    const next = { record: after, coolIndex: -1 };
    this.#cooldowns ??= new Map();
    this.#cooldowns.set(name, next);
    this.#coolest.push(next);
  }

  setAbsent(instance: string, isAbsent: boolean): void {
    this.#absent ??= new Set();
    if (isAbsent) this.#absent.add(instance);
    else this.#absent.delete(instance);
    for (const entry of this.#waiters.values()) {
      if (entry.record.instance === instance) this.#replace(entry, entry.record);
    }
  }

  /** Its client has been away for too long: not considered until its record changes. */
  shelve(entry: WaiterEntry): void {
    this.#detach(entry.bucket);
    entry.bucket.ready.remove(entry);
  }

  #count(instance: string | undefined, by: 1 | -1): void {
    if (instance === undefined) return;
    const count = (this.#byInstance.get(instance) ?? 0) + by;
    if (count > 0) this.#byInstance.set(instance, count);
    else this.#byInstance.delete(instance);
  }

  #moveLease(after: LeaseRecord): void {
    const entry = this.#byToken.get(after.key) as LeaseEntry;
    entry.record = after;
    this.#leases.update(entry);
  }

  #replace(entry: WaiterEntry, after: WaiterRecord | undefined): void {
    const { bucket } = entry;
    this.#detach(bucket);
    if (bucket.young.has(entry) && !entry.isOffered) bucket.waiting--;
    bucket.ready.remove(entry);
    bucket.young.remove(entry);
    bucket.outside.remove(entry);
    if (after !== undefined) this.#place(entry, after);
  }

  #place(entry: WaiterEntry, after: WaiterRecord): void {
    const { bucket } = entry;
    entry.record = after;
    entry.isOffered = this.#offerOf?.has(after.key) === true;
    if (!after.isInside) {
      bucket.outside.push(entry);
      return;
    }
    bucket.young.push(entry);
    if (entry.isOffered) return;
    bucket.waiting++;
    if (!this.isAbsent(after.instance)) bucket.ready.push(entry);
  }

  #hold(name: string, by: 1 | -1, at: number | undefined, isProbe: boolean): void {
    const bucket = this.#open(name);
    this.#detach(bucket);
    if (bucket.account !== undefined && at !== undefined) this.#owe(bucket, by, at);
    bucket.inFlight += by;
    if (isProbe) this.probes += by;
  }

  /**
   * A decision charges the account up to the moment before it changes what the bucket holds. Direct SQL callers do not:
   * what they took from `at` on, or held until `at`, is corrected here and stored with the next charge.
   */
  #owe(bucket: Bucket, by: 1 | -1, at: number): void {
    const sinceMs = at - bucket.asOf;
    if (sinceMs > 0) bucket.usedMs -= by * sinceMs;
  }

  #open(name: string): Bucket {
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      bucket = new Bucket(name);
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }

  /** Before anything about the bucket changes. It comes back when the index is next asked: once for many changes. */
  #detach(bucket: Bucket): void {
    if (bucket.isDirty) return;
    bucket.isDirty = true;
    this.#dirty.push(bucket);
    this.#order.remove(bucket);
    this.#turns.remove(bucket);
    this.#idle.remove(bucket);
    this.#pool.leave(bucket);
  }

  #attachDirty(): void {
    if (this.#dirty.length === 0) return;
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const bucket of dirty) this.#attach(bucket);
  }

  #attach(bucket: Bucket): void {
    const { head } = bucket;
    bucket.isDirty = false;
    if (head !== undefined) bucket.headAt = head.record.arrivedAt;
    this.#pool.enter(bucket);
    this.#ledger.recount(bucket, this.#policy === undefined ? 0 : bucketLimit(this.#policy, bucket.name));
    if (bucket.isEligible) {
      this.#order.add(bucket);
      if (this.#usesTurns) this.#turns.push(bucket);
    } else if (bucket.account !== undefined && !bucket.isActive) this.#idle.push(bucket);
    if (bucket.isEmpty) this.#buckets.delete(bucket.name);
  }
}

/** Those that end at the same moment end in the order they were granted. */
function endsBefore({ record: a }: LeaseEntry, { record: b }: LeaseEntry): boolean {
  return a.endsAt === b.endsAt ? a.fence < b.fence : a.endsAt < b.endsAt;
}

function lapsesBefore({ record: a }: OfferEntry, { record: b }: OfferEntry): boolean {
  return a.lapsesAt < b.lapsesAt;
}

function coolsBefore({ record: a }: CooldownEntry, { record: b }: CooldownEntry): boolean {
  return a.until < b.until;
}

function allowedBefore(a: Bucket, b: Bucket): boolean {
  return (a.account?.denyUntil ?? 0) < (b.account?.denyUntil ?? 0);
}

function isNearer(a: Bucket, b: Bucket): boolean {
  return a.usedMs / a.weight < b.usedMs / b.weight;
}

function turnBefore(a: Bucket, b: Bucket): boolean {
  return a.virtualTime === b.virtualTime ? a.headAt < b.headAt : a.virtualTime < b.virtualTime;
}
