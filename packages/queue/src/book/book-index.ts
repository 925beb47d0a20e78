import { budgetOfOrder, widthOf } from "@slotkeeper/protocol";
import { bucketLimit, type HostPolicy } from "../host-policy.ts";
import type { Order } from "../order/contract.ts";
import { orderOf } from "../order/order-of.ts";
import type { WeightedSettings } from "../order/weighted/numbers.ts";
import { SmallMap } from "../small-map.ts";
import { keyOfAccount, MOST_VALUES } from "./accounts.ts";
import { Bucket, type WaiterEntry } from "./bucket.ts";
import { Endings } from "./endings.ts";
import type { HeldAt, KeyLine, Ladder } from "./ladder.ts";
import { Ledger, Widths } from "./ledger.ts";
import type {
  CooldownRecord,
  EndingRecord,
  LeaseRecord,
  OfferRecord,
  RecordKind,
  RecordOf,
  WaiterRecord,
} from "./records.ts";
import { Refills } from "./refills.ts";
import { RestingBuckets } from "./resting-buckets.ts";
import { WaiterIndex } from "./waiter-index.ts";
import { WaiterPool } from "./waiter-pool.ts";

/** Kinds of records that the index is derived from. */
type IndexedKind = Exclude<RecordKind, "limits">;
type Change<K extends IndexedKind> = [before: RecordOf<K> | undefined, after: RecordOf<K> | undefined];

/**
 * Answers the questions of a decision without a search through the records: which bucket is next, what ends next, which
 * waiter may enter the pool.
 * The index is derived from the records. `set` applies one change of a record; the order of changes does not matter.
 * The number of slots of a bucket is correct immediately. Heaps and sums over buckets are updated when they are next
 * read.
 * Cost: O(log n) each.
 */
export class BookIndex {
  readonly #ledger = new Ledger();
  readonly #pool = new WaiterPool();
  readonly #endings = new Endings();
  readonly widths = new Widths();
  readonly #buckets = new SmallMap<string, Bucket>();
  /** Buckets that changed since the index was last read. They are in no heap until then. */
  #dirty: Bucket[] = [];
  // Created when first needed, here and in the parts of the index: a host that is used once needs none of these. With all
  // of them an idle host takes 5.2 kB instead of 4.2.
  #waiters: WaiterIndex | undefined;
  #order: Order | undefined;
  readonly #resting = new RestingBuckets();
  #scheduler: WeightedSettings | undefined;
  #policy: HostPolicy | undefined;
  #now = Number.NEGATIVE_INFINITY;
  #collectMs = 0;
  #refills: Refills | undefined;
  /** When the budgets of a value of a key can pay for a waiter; 0: now. */
  readonly payableAt: (line: KeyLine, waiter: WaiterRecord) => number;
  #inFlight = 0;
  #probes = 0;
  #throttledAt: number | undefined;
  #foreignAt: number | undefined;

  constructor(payableAt: (line: KeyLine, waiter: WaiterRecord) => number) {
    this.payableAt = payableAt;
  }

  /** Instances that have waiters here. */
  get instances(): Iterable<string> {
    return this.#waiters?.instances ?? [];
  }

  /** The waiter inside the pool whose client has been away for the longest time. */
  get longestAway(): WaiterEntry | undefined {
    return this.#waiters?.longestAway;
  }

  /** A waiter inside the pool whose keys have no room. */
  get heldBack(): WaiterEntry | undefined {
    this.#attachDirty();
    return this.#waiters?.heldBack;
  }

  /** The keys that hold back waiters. Undefined: the host has none. */
  get ladder(): Ladder | undefined {
    this.#attachDirty();
    return this.#waiters?.ladder;
  }

  /** The slots of all leases and offers. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Half-open probes among leases and offers. */
  get probes(): number {
    return this.#probes;
  }

  get ledger(): Ledger {
    this.#attachDirty();
    return this.#ledger;
  }

  get pool(): WaiterPool {
    this.#attachDirty();
    return this.#pool;
  }

  get order(): Order {
    this.#attachDirty();
    return this.#orderOf();
  }

  get buckets(): Iterable<Bucket> {
    this.#attachDirty();
    return this.#buckets.values();
  }

  /** The lease that ends next. */
  get nextLease(): LeaseRecord | undefined {
    return this.#endings.nextLease;
  }

  get nextOffer(): OfferRecord | undefined {
    return this.#endings.nextOffer;
  }

  get nextCooldown(): CooldownRecord | undefined {
    return this.#endings.nextCooldown;
  }

  /** The session that ended first. */
  get nextEnd(): EndingRecord | undefined {
    return this.#endings.nextEnd;
  }

  /** When the first cooldown of a bucket that is wanted ends. */
  get nextCoolAt(): number | undefined {
    this.#attachDirty();
    return this.#resting.nextCoolAt;
  }

  get nextIdle(): Bucket | undefined {
    this.#attachDirty();
    return this.#resting.nextIdle;
  }

  get nextResting(): Bucket | undefined {
    this.#attachDirty();
    return this.#resting.nextResting;
  }

  bucket(name: string): Bucket | undefined {
    return this.#buckets.get(name);
  }

  leaseOf(session: string): LeaseRecord | undefined {
    return this.#endings.leaseOf(session);
  }

  hasOffer(session: string): boolean {
    return this.#endings.hasOffer(session);
  }

  /** The budgets that are not full. */
  get refills(): Refills {
    return this.#refills ?? NO_REFILLS;
  }

  /** The keys, for what is held: their waiters may not be up to date. */
  get heldKeys(): Pick<Ladder, "isOver" | "shortOf"> | undefined {
    return this.#waiters?.ladder;
  }

  /** The key at which a waiter is held back. */
  heldAt(session: string): HeldAt | undefined {
    this.#attachDirty();
    return this.#waiters?.heldAt(session);
  }

  /** Whether the keys of a new waiter have room, if no other waits. */
  keysAdmit(waiter: WaiterRecord): boolean {
    return this.#waiters?.ladder?.admits(waiter, widthOf(waiter.demand)) ?? true;
  }

  usePolicy(policy: HostPolicy): void {
    // An order by a budget depends on the budgets, too.
    const isSame = policy.order === this.#policy?.order && budgetOfOrder(policy.order) === undefined;
    if (policy.keys !== this.#policy?.keys) this.#waitersOf().useKeys(policy.keys);
    for (const bucket of this.#buckets.values()) this.detach(bucket);
    this.#policy = policy;
    if (!isSame) this.#order = undefined;
  }

  /** The settings of the weighted scheduler. Undefined: it is off. */
  useScheduler(settings: WeightedSettings | undefined): void {
    const { scheduler, pollIntervalMs } = this.#scheduler ?? {};
    if (settings?.scheduler === scheduler && settings?.pollIntervalMs === pollIntervalMs) return;
    for (const bucket of this.#buckets.values()) this.detach(bucket);
    this.#scheduler = settings;
    this.#order = undefined;
  }

  set<K extends IndexedKind>(kind: K, ...change: Change<K>): void;
  set(kind: IndexedKind, before: never, after: never): void {
    switch (kind) {
      case "lease":
        this.#setLease(before, after);
        return;
      case "offer":
        this.#setOffer(before, after);
        return;
      case "waiter":
        this.#waitersOf().set(before, after);
        return;
      case "account":
        this.#setAccount(before, after);
        return;
      case "cooldown":
        this.#setCooldown(before, after);
        return;
      case "ending":
        this.#endings.setEnd(before, after);
        return;
      case "absence":
        this.#waitersOf().setAbsence(before, after);
        return;
      case "budget":
        this.#setBudget(before, after);
    }
  }

  /** Applies changes that other instances or direct SQL callers committed, the last of them at this time. See `#owe`. */
  atForeignTime(at: number, act: () => void): void {
    this.#foreignAt = at;
    act();
    this.#foreignAt = undefined;
  }

  /** Whether the waiters must be checked because the breaker opened. True once for each opening. */
  mustThrottle(openedAt: number | undefined): boolean {
    if (openedAt === this.#throttledAt) return false;
    this.#throttledAt = openedAt;
    return true;
  }

  resetThrottling(): void {
    this.#throttledAt = undefined;
  }

  /** What `useTime` was called with last. */
  get time(): readonly [now: number, collectMs: number] {
    return [this.#now, this.#collectMs];
  }

  /** The time of the decision. Clients that have been away for `collectMs` are gone: they are not considered for a slot. */
  useTime(now: number, collectMs: number): void {
    this.#now = now;
    this.#collectMs = collectMs;
    this.#waiters?.useTime(now, collectMs);
  }

  open(name: string): Bucket {
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      bucket = new Bucket(name);
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }

  /**
   * Call before anything about the bucket changes. The bucket returns to the heaps when the index is next read, once
   * for many changes.
   */
  detach(bucket: Bucket): void {
    if (bucket.isDirty) return;
    bucket.isDirty = true;
    this.#dirty.push(bucket);
    this.#order?.remove(bucket);
    this.#resting.remove(bucket);
    this.#pool.leave(bucket);
  }

  #setLease(...[before, after]: Change<"lease">): void {
    this.#endings.setLease(before, after);
    if (before === undefined && after !== undefined) this.#hold(after, 1, after.grantedAt);
    else if (before !== undefined && after === undefined)
      this.#hold(before, -1, before.instance === "" ? this.#foreignAt : undefined);
  }

  #setOffer(...[before, after]: Change<"offer">): void {
    this.#endings.setOffer(before, after);
    if (before !== undefined) this.#hold(before, -1, undefined);
    if (after !== undefined) this.#hold(after, 1, after.offeredAt);
    this.#waiters?.offerChanged((before ?? after)?.key ?? "");
  }

  /** Which values share one state changes only when the host keeps very many. */
  #setBudget(...[before, after]: Change<"budget">): void {
    const kept = this.refills.values;
    this.#refills ??= new Refills();
    this.#refills.set(before, after);
    const key = keyOfAccount((before ?? after)?.key ?? "");
    const { ladder } = this.#waiters ?? {};
    if (Math.max(kept, this.refills.values) >= MOST_VALUES) ladder?.changeAll();
    else if (key !== undefined) ladder?.change(key);
  }

  #setCooldown(...[before, after]: Change<"cooldown">): void {
    const bucket = this.#buckets.get((before ?? after)?.key ?? "");
    if (bucket !== undefined) this.detach(bucket);
    this.#endings.setCooldown(before, after);
  }

  #setAccount(...[before, after]: Change<"account">): void {
    const bucket = this.open((before ?? after)?.key ?? "");
    this.detach(bucket);
    bucket.account = after;
    bucket.weighted = after?.weighted;
    bucket.charged = after?.charged ?? 0;
    bucket.weight = after?.weight ?? 1;
    bucket.usedMs = after?.usedMs ?? 0;
    bucket.asOf = after?.asOf ?? 0;
  }

  #hold(record: LeaseRecord | OfferRecord, by: 1 | -1, at: number | undefined): void {
    const { bucket: name, width, isProbe, charge } = record;
    if (charge?.asked?.keys !== undefined) this.#waitersOf().hold(charge.asked.keys, by * width);
    const bucket = this.open(name);
    this.detach(bucket);
    if (bucket.account !== undefined && at !== undefined) this.#owe(bucket, by * width, at);
    bucket.inFlight += by * width;
    this.#inFlight += by * width;
    this.widths.add(width, by);
    if (isProbe) this.#probes += by;
  }

  /**
   * A decision charges the account of a bucket before it changes the number of its slots. Direct SQL callers, whose
   * leases have no instance, do not. This corrects the use for the time since `at`; the next charge stores it. If a
   * direct caller's release is not the last of several commits, `at` is that of the last one.
   */
  #owe(bucket: Bucket, by: number, at: number): void {
    const sinceMs = at - bucket.asOf;
    if (sinceMs > 0) bucket.usedMs -= by * sinceMs;
  }

  #attachDirty(): void {
    this.#waiters?.ladder?.settle();
    if (this.#dirty.length === 0) return;
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const bucket of dirty) this.#attach(bucket);
  }

  #attach(bucket: Bucket): void {
    const { head } = bucket;
    bucket.isDirty = false;
    if (head !== undefined) {
      bucket.headAt = head.record.arrivedAt;
      bucket.headKey = head.record.key;
    }
    bucket.headWidth = head?.width ?? 1;
    bucket.limit = this.#policy === undefined ? 0 : bucketLimit(this.#policy, bucket.name);
    bucket.coolsUntil = this.#endings.cooldownOf(bucket.name)?.until;
    this.#pool.enter(bucket);
    this.#ledger.recount(bucket);
    if (bucket.coolsUntil !== undefined && bucket.isWanted) this.#resting.cools(bucket);
    if (head !== undefined) this.#orderOf().add(bucket);
    else if (bucket.account !== undefined && !bucket.isActive) this.#resting.rests(bucket);
    if (bucket.isEmpty) this.#buckets.delete(bucket.name);
  }

  #waitersOf(): WaiterIndex {
    if (this.#waiters === undefined) {
      this.#waiters = new WaiterIndex(this);
      this.#waiters.useTime(this.#now, this.#collectMs);
      if (this.#policy?.keys !== undefined) this.#waiters.useKeys(this.#policy.keys);
    }
    return this.#waiters;
  }

  #orderOf(): Order {
    this.#order ??= orderOf(this.#policy, this.#scheduler);
    return this.#order;
  }
}

/** Of most hosts. It is never written. */
const NO_REFILLS = new Refills();
