import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import { DenyWindows } from "../funnel/deny-windows.ts";
import { Heat } from "../funnel/heat.ts";
import { ProbeQuota } from "../funnel/probe-quota.ts";
import { WeightedTurns } from "../funnel/weighted-turns.ts";
import { type HostPolicy, type ResolvedHost, resolveHost } from "../host-policy.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import type { QueueOptions } from "../options.ts";
import { BucketOrder } from "../order/bucket-order.ts";
import type { BreakerView } from "../store/slot-store.ts";
import { BucketQueue } from "./bucket-queue.ts";
import { DrainMeter } from "./drain-meter.ts";
import { Positions } from "./positions.ts";
import type { Session } from "./session.ts";

/**
 * The waiting side of one host at this instance: who waits, where each stands, and what the store last said.
 *
 * H1 a pending session is in exactly one place (see `Place`), and `waiting` holds it once. H2 a bucket is in the order
 * exactly when somebody of it may be sent now. H3 an ended session is in nothing. All changes are O(log n).
 */
export class HostQueue {
  readonly key: string;
  hostname: string | undefined;
  readonly buckets = new Map<string, BucketQueue>();
  readonly denied = new DenyWindows();
  readonly turns = new WeightedTurns();
  readonly heat = new Heat();
  readonly quota = new ProbeQuota();
  readonly drain = new DrainMeter();
  /** Sessions the store does not know: the next batch takes them. Those that ended meanwhile are skipped there. */
  fresh: Session[] = [];
  /** Of batches whose answer was lost: they may have been granted, so they are asked about first. */
  unsure: Session[] = [];
  order: BucketOrder<BucketQueue>;
  /** Every pending session of the host. */
  readonly waiting = new Set<Session>();
  /** Sessions that refer to this host, ended ones included: it is forgotten when there are none. */
  sessions = 0;
  /** How many of those outside may try for a place. */
  offers = 0;
  /** Calls to the store so far: tells whether a slot was freed while one was being decided. */
  calls = 0;
  /** The longest window any session brought: past it the breaker is open for nobody. */
  longestOpenMs = 0;
  level = 0;
  /** Slots to be had, as far as known: by the store's last answer, and one for each that was freed since. */
  knownFree = 0;
  /** How many to look for though none is known. */
  lookFor = 0;
  /** Releases on their way: at the store those slots may be free already. */
  releasing = 0;
  /** Slots freed while the store decides: its answer may not count them. */
  freedMeanwhile = 0;
  /** The store is being called, this very moment. */
  isCalling = false;
  freeAt: number | undefined;
  breaker: BreakerView = { phase: "closed" };
  breakerAt = Number.NEGATIVE_INFINITY;
  isStoreDown = false;
  readonly positions = new Positions();
  /** Moves with every change that can change a rank. */
  version = 0;
  #resolved: ResolvedHost;
  #isScheduled = false;
  #capacity: number | undefined;
  readonly #offerable = new IndexedHeap<"offerIndex", BucketQueue>("offerIndex", offerBefore);
  readonly #idle = new IndexedHeap<"idleIndex", BucketQueue>("idleIndex", (a, b) => a.idleAt < b.idleAt);

  constructor(key: string, hostname: string | undefined, options: QueueOptions, capacity: number | undefined) {
    this.key = key;
    this.hostname = hostname;
    this.#capacity = capacity;
    this.#resolved = resolveHost(options, hostname, capacity);
    this.#isScheduled = options.scheduler.isEnabled;
    this.order = new BucketOrder(this.#resolved.policy.order === "fifo");
  }

  get pending(): number {
    return this.waiting.size;
  }

  get policy(): HostPolicy {
    return this.#resolved.policy;
  }

  /** The same limits, for a batch the weighted scheduler chose. */
  get weightedPolicy(): HostPolicy {
    return this.#resolved.weighted;
  }

  get isSemaphore(): boolean {
    return this.hostname?.startsWith(SEMAPHORE_PREFIX) === true;
  }

  get capacity(): number | undefined {
    return this.#capacity;
  }

  /** New limits; everybody keeps his place. */
  reconfigure(options: QueueOptions, capacity = this.#capacity): void {
    this.#capacity = capacity;
    this.#resolved = resolveHost(options, this.hostname, capacity);
    this.#isScheduled = options.scheduler.isEnabled;
    for (const bucket of this.buckets.values()) this.order.remove(bucket);
    this.order = new BucketOrder(this.#resolved.policy.order === "fifo");
    for (const bucket of this.buckets.values()) {
      bucket.weight = this.#resolved.weightOf(bucket.name);
      this.refresh(bucket);
    }
    this.offers++;
    this.knownFree = this.policy.slots;
  }

  /** A caller with the plain name came after one with the hash alone: from now on the host's own limits hold. */
  learnName(hostname: string | undefined, options: QueueOptions): void {
    if (hostname === undefined || this.hostname !== undefined) return;
    this.hostname = hostname;
    this.reconfigure(options);
  }

  hear(breaker: BreakerView, now: number): void {
    this.breaker = breaker;
    this.breakerAt = now;
  }

  bucketFor(name: string, now: number): BucketQueue {
    let bucket = this.buckets.get(name);
    if (bucket === undefined) {
      bucket = new BucketQueue(name, this.#resolved.weightOf(name), this.turns.minimum, now);
      this.buckets.set(name, bucket);
    }
    this.#idle.remove(bucket);
    return bucket;
  }

  arrive(session: Session): void {
    this.sessions++;
    this.comeBack(session);
    this.makeFresh(session);
  }

  /** Counted as waiting (again). */
  comeBack(session: Session): void {
    this.waiting.add(session);
    session.bucket.pending++;
  }

  makeFresh(session: Session): void {
    session.place = "fresh";
    this.fresh.push(session);
    this.version++;
  }

  /** It has, or keeps, a place in the pool. */
  settleInside(session: Session): void {
    session.place = "inside";
    if (!session.isPooled) {
      session.isPooled = true;
      session.mayBeStored = true;
      session.bucket.places++;
    }
    if (session.isAwake) session.bucket.ready.push(session);
    this.refresh(session.bucket);
  }

  settleOutside(session: Session): void {
    this.#unpool(session);
    session.place = "outside";
    session.bucket.outside.push(session);
    this.refresh(session.bucket);
  }

  /** Takes it out of every structure; it keeps being counted. */
  detach(session: Session): void {
    session.bucket.ready.remove(session);
    session.bucket.outside.remove(session);
    this.refresh(session.bucket);
  }

  /** Its slot is on the way back; it stands nowhere until then. */
  settleReturning(session: Session): void {
    session.place = "returning";
    this.#unpool(session);
    this.refresh(session.bucket);
  }

  /** It waits no more. */
  leave(session: Session, now: number, idleMs: number): void {
    this.waiting.delete(session);
    session.bucket.pending--;
    if (session.isPooled) this.offers++;
    this.#unpool(session);
    this.detach(session);
    if (session.bucket.pending === 0) this.#retire(session.bucket, now + idleMs);
    this.version++;
  }

  /** A slot whose end was known has ended by itself, though nobody said so; others may have with it, and are looked for. */
  passEnd(now: number): void {
    if (this.freeAt === undefined || this.freeAt > now) return;
    this.freeAt = undefined;
    this.knownFree++;
    this.lookFor = this.policy.slots;
  }

  /** Its client is there again, or no longer. */
  setAwake(session: Session, isAwake: boolean): void {
    if (session.isAwake === isAwake) return;
    session.isAwake = isAwake;
    if (session.place !== "inside") return;
    if (isAwake) session.bucket.ready.push(session);
    else session.bucket.ready.remove(session);
    this.refresh(session.bucket);
  }

  /** A slot of the bucket is free again: its account is one lighter, and the reason to deny it may be gone. */
  freed(name: string | undefined, now: number): void {
    const bucket = name === undefined ? undefined : this.buckets.get(name);
    // What the store tells in the midst of being asked is in its answer.
    if (!this.isCalling) {
      this.knownFree++;
      this.freedMeanwhile++;
      bucket?.freed(this.calls, now);
    }
    if (bucket === undefined) return;
    this.denied.close(bucket);
    this.refresh(bucket);
  }

  /** The next to try for a place: of the bucket with the fewest places, the oldest. */
  takeOffer(): Session | undefined {
    const bucket = this.#offerable.peek();
    const session = bucket?.outside.pop();
    if (bucket !== undefined) this.refresh(bucket);
    return session;
  }

  /** Puts a bucket where it belongs after anything about it changed. */
  refresh(bucket: BucketQueue): void {
    this.order.remove(bucket);
    bucket.headAt = bucket.ready.peek()?.claims.arrivedAt ?? bucket.headAt;
    if (bucket.isTryable) this.order.add(bucket);
    if (this.#isScheduled) this.turns.refresh(bucket);
    else this.turns.remove(bucket);
    this.#offerable.remove(bucket);
    if (bucket.outside.size > 0 && bucket.places < this.policy.waitersPerBucket) this.#offerable.push(bucket);
    this.version++;
  }

  /** Forgets buckets whose numbers have outlived their last session long enough. */
  forgetIdle(now: number): void {
    for (let first = this.#idle.peek(); first !== undefined && first.idleAt <= now; first = this.#idle.peek()) {
      this.#idle.remove(first);
      if (first.isDenied) this.denied.close(first);
      this.buckets.delete(first.name);
    }
  }

  #unpool(session: Session): void {
    if (!session.isPooled) return;
    session.isPooled = false;
    session.bucket.places--;
  }

  /** What would not be missed goes at once: a new bucket joins at the same minimum with the same count. */
  #retire(bucket: BucketQueue, until: number): void {
    const isWorthKeeping = bucket.isDenied || bucket.waitCount > 0 || bucket.virtualTime > this.turns.minimum;
    if (!isWorthKeeping || (!this.#isScheduled && !bucket.isDenied)) {
      this.buckets.delete(bucket.name);
      return;
    }
    bucket.idleAt = until;
    if (bucket.idleIndex === -1) this.#idle.push(bucket);
  }
}

function offerBefore(a: BucketQueue, b: BucketQueue): boolean {
  if (a.places !== b.places) return a.places < b.places;
  return (a.outside.peek()?.claims.arrivedAt ?? 0) < (b.outside.peek()?.claims.arrivedAt ?? 0);
}
