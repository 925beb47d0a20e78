import { bucketLimit, type HostPolicy } from "../host-policy.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import { type Account, type Ledger, newLedger } from "../order/state.ts";
import { addHold, addWaiter, advance, endHold, removeWaiter } from "../order/transitions.ts";
import { Breaker } from "./breaker.ts";
import type { Lease } from "./lease.ts";
import type { LiveLimits } from "./slot-store.ts";
import { type PooledWaiter, WaiterPool } from "./waiter-pool.ts";

/** Those that end at the same moment end in the order they were granted: sums of fractions depend on it, in any store. */
const endsBefore = (a: Lease, b: Lease) => (a.endsAt === b.endsAt ? a.fence < b.fence : a.endsAt < b.endsAt);

/** `isReclaimed`: it ran out, and nobody had given it back. */
export type LeaseEnded = (lease: Lease, isReclaimed: boolean) => void;

interface Cooldown {
  readonly bucket: string;
  until: number;
  coolIndex: number;
}

/**
 * Everything the memory store knows about one host.
 *
 * B1 leases in `leases` are exactly those that occupy a slot: ledger.inFlight = leases.size. B2 the pool and the ledger
 * count the same waiters. B3 what time ended is ended at the moment it ended, not when somebody looked: `settle` replays
 * the ends in order, so that use and meter are exact. Nothing here reads a clock.
 */
export class HostBook {
  readonly host: string;
  readonly ledger: Ledger;
  readonly pool = new WaiterPool();
  readonly breaker = new Breaker();
  readonly leases = new IndexedHeap<"leaseIndex", Lease>("leaseIndex", endsBefore);
  /** When the last released slot ended or will end: what the next release is spaced from. */
  lastEndAt = Number.NEGATIVE_INFINITY;
  probes = 0;
  touchedAt: number;
  pruneAt = 0;
  pruneIndex = -1;
  #given: HostPolicy | undefined;
  #policy: HostPolicy;
  #live: LiveLimits | undefined;
  #capacity: number | undefined;
  readonly #cooldowns = new Map<string, Cooldown>();
  readonly #coolest = new IndexedHeap<"coolIndex", Cooldown>("coolIndex", (a, b) => a.until < b.until);

  readonly #onEnded: LeaseEnded;

  constructor(host: string, policy: HostPolicy, now: number, onEnded: LeaseEnded) {
    this.host = host;
    this.#onEnded = onEnded;
    this.ledger = newLedger(now);
    this.touchedAt = now;
    this.#policy = policy;
  }

  /** What is in force: what the users fixed, else what an operator set, else what the instance brought. */
  get policy(): HostPolicy {
    return this.#policy;
  }

  get live(): LiveLimits | undefined {
    return this.#live;
  }

  get capacity(): number | undefined {
    return this.#capacity;
  }

  get free(): number {
    return Math.max(0, this.#policy.slots - this.leases.size);
  }

  use(policy: HostPolicy): void {
    if (policy !== this.#given) this.#adopt(policy);
  }

  /** A user of a named semaphore joins: the first fixes the capacity. False: it asks for another than is fixed. */
  joinCapacity(limit: number | undefined): boolean {
    if (this.#capacity === undefined) {
      const given = this.#given ?? this.#policy;
      this.#capacity = limit ?? given.slots;
      this.#adopt(given);
    }
    return limit === undefined || limit === this.#capacity;
  }

  setLive(limits: LiveLimits | undefined): void {
    this.#live = limits;
    this.#adopt(this.#given ?? this.#policy);
  }

  /** Ends what time has ended, each at its moment. Returns how many silent waiters that dropped. */
  settle(now: number, waiterTtlMs: number): number {
    for (let next = this.leases.peek(); next !== undefined && next.endsAt <= now; next = this.leases.peek()) {
      this.endLease(next, next.endsAt, !next.isReleased);
    }
    advance(this.ledger, now);
    const before = this.pool.size;
    const since = now - waiterTtlMs;
    for (let silent = this.pool.silentSince(since); silent !== undefined; silent = this.pool.silentSince(since)) {
      this.removeWaiter(silent);
    }
    return before - this.pool.size;
  }

  addWaiter(session: string, bucket: string, weight: number, arrivedAt: number, instance: string, now: number): void {
    const account = addWaiter(this.ledger, bucket, weight, bucketLimit(this.#policy, bucket));
    this.pool.add(session, arrivedAt, instance, account, now);
  }

  removeWaiter(waiter: PooledWaiter): void {
    this.pool.remove(waiter);
    removeWaiter(this.ledger, waiter.account, bucketLimit(this.#policy, waiter.account.bucket));
    this.#forgetCapacity();
  }

  startHold(bucket: string, weight: number): Account {
    return addHold(this.ledger, bucket, weight, bucketLimit(this.#policy, bucket));
  }

  addLease(lease: Lease): void {
    this.leases.push(lease);
    if (lease.isProbe) this.probes++;
  }

  /** `at` is now, or the lease's own end while settling. */
  endLease(lease: Lease, at: number, isReclaimed = false): void {
    advance(this.ledger, at);
    this.leases.remove(lease);
    lease.isOver = true;
    this.#onEnded(lease, isReclaimed);
    if (lease.isProbe) this.probes--;
    endHold(this.ledger, lease.account, bucketLimit(this.#policy, lease.account.bucket));
    this.#forgetCapacity();
  }

  /** Returns when it ends: a longer one that runs is not cut short. */
  startCooldown(bucket: string, until: number): number {
    const cooldown = this.#cooldowns.get(bucket);
    if (cooldown === undefined) {
      const fresh = { bucket, until, coolIndex: -1 };
      this.#cooldowns.set(bucket, fresh);
      this.#coolest.push(fresh);
      return until;
    }
    if (cooldown.until < until) {
      cooldown.until = until;
      this.#coolest.update(cooldown);
    }
    return cooldown.until;
  }

  cooldownMs(bucket: string, now: number): number {
    return Math.max(0, (this.#cooldowns.get(bucket)?.until ?? 0) - now);
  }

  dropCooldowns(now: number): number {
    let dropped = 0;
    for (let first = this.#coolest.peek(); first !== undefined && first.until <= now; first = this.#coolest.peek()) {
      this.#coolest.remove(first);
      this.#cooldowns.delete(first.bucket);
      dropped++;
    }
    return dropped;
  }

  /** Buckets that cool down still, and until when. */
  *cooldowns(now: number): Iterable<readonly [bucket: string, until: number]> {
    for (const { bucket, until } of this.#cooldowns.values()) if (until > now) yield [bucket, until];
  }

  /** Forgetting it changes no answer, but for fairness towards a bucket that was ahead before everybody left. */
  isForgettable(now: number): boolean {
    const isEmpty = this.leases.size === 0 && this.pool.size === 0 && this.#live === undefined;
    if (!isEmpty || this.lastEndAt + this.#policy.smoothMs > now) return false;
    this.dropCooldowns(now);
    return this.#cooldowns.size === 0 && this.breaker.isPristine(now, this.#policy.breaker);
  }

  #adopt(policy: HostPolicy): void {
    this.#given = policy;
    const slots = this.#capacity ?? this.#live?.slots ?? policy.slots;
    const slotsPerBucket = this.#live?.slotsPerBucket ?? policy.slotsPerBucket;
    const isAsGiven = slots === policy.slots && slotsPerBucket === policy.slotsPerBucket;
    this.#policy = isAsGiven ? policy : { ...policy, slots, slotsPerBucket };
    this.ledger.slots = slots;
  }

  #forgetCapacity(): void {
    if (this.#capacity === undefined || this.ledger.inFlight > 0 || this.pool.size > 0) return;
    this.#capacity = undefined;
    this.#given = undefined;
  }
}
