import { SHARED_BUCKET } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import type { Bucket, WaiterEntry } from "./bucket.ts";

/** A bucket that may have no waiter yet. */
interface Places {
  readonly name: string;
  readonly places: number;
}

/**
 * Layer 2 of the funnel: which waiters have a place in the pool, and who is next to get one. Derived from the records.
 *
 * WPOOL1 no bucket owns the pool: a newcomer whose bucket has at least two places fewer than the largest takes the place of that
 * bucket's youngest waiter, which keeps its arrival time and waits outside. Two, because with one the two buckets would
 * displace each other in turn. Of several largest buckets the one with the youngest waiter loses.
 * WPOOL2 a place that frees goes to the bucket with the fewest places, oldest session first.
 * WPOOL3 a session that returns takes the place of one that arrived after it, if its bucket has fewer places than that one's: it had a
 * place until its instance died.
 * The shared bucket and named semaphores have no limit of their own. Cost: O(log buckets).
 */
export class WaiterPool {
  #size = 0;
  // Made when first needed: many hosts never have a waiter.
  #largest: IndexedHeap<"largestIndex", Bucket> | undefined;
  #fewest: IndexedHeap<"fewestIndex", Bucket> | undefined;

  /** Waiters inside. */
  get size(): number {
    return this.#size;
  }

  /** Call around any change of the bucket's places or outsiders. */
  leave(bucket: Bucket): void {
    this.#size -= bucket.places;
    this.#largest?.remove(bucket);
    this.#fewest?.remove(bucket);
  }

  enter(bucket: Bucket): void {
    this.#size += bucket.places;
    if (bucket.places > 0) {
      this.#largest ??= new IndexedHeap("largestIndex", losesBefore);
      this.#largest.push(bucket);
    }
    if (bucket.outsiders > 0) {
      this.#fewest ??= new IndexedHeap("fewestIndex", entersBefore);
      this.#fewest.push(bucket);
    }
  }

  /** Whether a newcomer of the bucket gets a place, and at whose expense. `returnedTo`: the arrival of one that returns. */
  admits(
    bucket: Places,
    policy: HostPolicy,
    returnedTo = Number.POSITIVE_INFINITY,
  ): { readonly isAdmitted: boolean; readonly displaces?: WaiterEntry } {
    if (bucket.places >= bucketPlaces(policy, bucket)) return { isAdmitted: false };
    if (this.#size < policy.waiters) return { isAdmitted: true };
    const largest = this.#largest?.peek();
    const youngest = largest?.young.peek();
    if (largest === undefined || youngest === undefined) return { isAdmitted: false };
    const fewer = youngest.record.arrivedAt > returnedTo ? 1 : 2;
    if (largest.places < bucket.places + fewer) return { isAdmitted: false };
    return { isAdmitted: true, displaces: youngest };
  }

  /** Who gets the next free place; undefined: no waiter outside may, or there is no place. */
  next(policy: HostPolicy): WaiterEntry | undefined {
    if (this.#size >= policy.waiters) return undefined;
    const first = this.#fewest?.peek();
    if (this.#fewest === undefined || first === undefined) return undefined;
    if (first.places < bucketPlaces(policy, first)) return first.outside.peek();
    // The shared bucket has no limit of its own and may stand behind a bucket that is at its limit.
    for (const bucket of this.#fewest.values()) {
      if (bucket.places < bucketPlaces(policy, bucket)) return bucket.outside.peek();
    }
    return undefined;
  }
}

function bucketPlaces({ waitersPerBucket }: HostPolicy, { name }: Places): number {
  return name === SHARED_BUCKET ? Number.POSITIVE_INFINITY : waitersPerBucket;
}

function losesBefore(a: Bucket, b: Bucket): boolean {
  if (a.places !== b.places) return a.places > b.places;
  return (a.young.peek()?.record.arrivedAt ?? 0) > (b.young.peek()?.record.arrivedAt ?? 0);
}

function entersBefore(a: Bucket, b: Bucket): boolean {
  if (a.places !== b.places) return a.places < b.places;
  return (a.outside.peek()?.record.arrivedAt ?? 0) < (b.outside.peek()?.record.arrivedAt ?? 0);
}
