import type { HostPolicy } from "../host-policy.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import type { Account } from "../order/state.ts";

/** A session in the pool. `seenAt`: when its instance last said that it lives. */
export interface PooledWaiter {
  readonly session: string;
  readonly arrivedAt: number;
  instance: string;
  seenAt: number;
  readonly places: BucketPlaces;
  readonly account: Account;
  youngestIndex: number;
  silentIndex: number;
}

interface BucketPlaces {
  readonly bucket: string;
  readonly youngestFirst: IndexedHeap<"youngestIndex", PooledWaiter>;
  largestIndex: number;
}

/**
 * Who may take part in the tries for a host's slots.
 *
 * P1 never more than `waiters` in all, nor `waitersPerBucket` of a bucket. P2 no bucket owns the pool: a newcomer whose
 * bucket has at least two places fewer than the largest takes the place of that bucket's youngest, who keeps its
 * arrival time and waits outside; of several that are largest, the bucket of the youngest waiter of all loses. Two, because with one the two buckets would take turns displacing each other.
 * P3 a waiter whose instance fell silent is not counted. Cost: O(log n).
 */
export class WaiterPool {
  readonly #waiters = new Map<string, PooledWaiter>();
  readonly #buckets = new Map<string, BucketPlaces>();
  readonly #largestFirst = new IndexedHeap<"largestIndex", BucketPlaces>("largestIndex", losesBefore);
  readonly #silentFirst = new IndexedHeap<"silentIndex", PooledWaiter>("silentIndex", silentBefore);

  get size(): number {
    return this.#waiters.size;
  }

  get(session: string): PooledWaiter | undefined {
    return this.#waiters.get(session);
  }

  placesOf(bucket: string): number {
    return this.#buckets.get(bucket)?.youngestFirst.size ?? 0;
  }

  /** Says whether a newcomer may enter, and at whose expense. */
  admits(bucket: string, policy: HostPolicy): { readonly isAdmitted: boolean; readonly displaces?: PooledWaiter } {
    const places = this.placesOf(bucket);
    if (places >= policy.waitersPerBucket) return { isAdmitted: false };
    if (this.size < policy.waiters) return { isAdmitted: true };
    const largest = this.#largestFirst.peek();
    const victim = largest?.youngestFirst.peek();
    if (largest === undefined || victim === undefined || largest.youngestFirst.size < places + 2) {
      return { isAdmitted: false };
    }
    return { isAdmitted: true, displaces: victim };
  }

  add(session: string, arrivedAt: number, instance: string, account: Account, now: number): void {
    const places = this.#placesFor(account.bucket);
    const waiter: PooledWaiter = {
      session,
      arrivedAt,
      instance,
      seenAt: now,
      places,
      account,
      youngestIndex: -1,
      silentIndex: -1,
    };
    this.#waiters.set(session, waiter);
    places.youngestFirst.push(waiter);
    this.#largestFirst.update(places);
    this.#silentFirst.push(waiter);
  }

  remove(waiter: PooledWaiter): void {
    const { places } = waiter;
    this.#waiters.delete(waiter.session);
    this.#silentFirst.remove(waiter);
    places.youngestFirst.remove(waiter);
    if (places.youngestFirst.size > 0) {
      this.#largestFirst.update(places);
      return;
    }
    this.#largestFirst.remove(places);
    this.#buckets.delete(places.bucket);
  }

  /** The last instance to speak for a session has it. */
  refresh(waiter: PooledWaiter, instance: string, now: number): void {
    waiter.instance = instance;
    waiter.seenAt = now;
    this.#silentFirst.update(waiter);
  }

  /** A waiter nobody has spoken for since `before`. */
  silentSince(before: number): PooledWaiter | undefined {
    const first = this.#silentFirst.peek();
    return first !== undefined && first.seenAt < before ? first : undefined;
  }

  #placesFor(bucket: string): BucketPlaces {
    let places = this.#buckets.get(bucket);
    if (places === undefined) {
      const youngestFirst = new IndexedHeap<"youngestIndex", PooledWaiter>(
        "youngestIndex",
        (a, b) => a.arrivedAt > b.arrivedAt,
      );
      places = { bucket, youngestFirst, largestIndex: -1 };
      this.#buckets.set(bucket, places);
      this.#largestFirst.push(places);
    }
    return places;
  }
}

/** Not only for a rule's sake: every store must choose the same victim. */
function losesBefore(a: BucketPlaces, b: BucketPlaces): boolean {
  if (a.youngestFirst.size !== b.youngestFirst.size) return a.youngestFirst.size > b.youngestFirst.size;
  return (a.youngestFirst.peek()?.arrivedAt ?? 0) > (b.youngestFirst.peek()?.arrivedAt ?? 0);
}

/** Who came first goes first: sums of fractions depend on the order, in any store. */
function silentBefore(a: PooledWaiter, b: PooledWaiter): boolean {
  return a.seenAt === b.seenAt ? a.arrivedAt < b.arrivedAt : a.seenAt < b.seenAt;
}
