import type { BucketQueue } from "../engine/bucket-queue.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import type { SchedulerOptions } from "../options.ts";

/**
 * Layer 6: whose turn it is to try at a hot host. Weighted round robin over the buckets that can be tried now: the one
 * with the smallest virtual time goes, and its time moves on by 1/weight, weight = base + perWait × waitCount. A bucket
 * that cannot be tried is not in the heap, so it blocks nobody (the old service asked the smallest of all buckets, and
 * one silent bucket froze the host). Cost: O(log n).
 */
export class WeightedTurns {
  readonly #turns = new IndexedHeap<"turnIndex", BucketQueue>("turnIndex", turnBefore);
  #floor = 0;

  /** Where a newcomer joins: nobody gains by having been away. */
  get minimum(): number {
    return this.#turns.peek()?.virtualTime ?? this.#floor;
  }

  /** Puts the bucket where it belongs now. */
  refresh(bucket: BucketQueue): void {
    if (!bucket.isTryable) {
      this.#turns.remove(bucket);
    } else if (this.#turns.has(bucket)) {
      this.#turns.update(bucket);
    } else {
      bucket.virtualTime = Math.max(bucket.virtualTime, this.minimum);
      this.#turns.push(bucket);
    }
  }

  remove(bucket: BucketQueue): void {
    this.#turns.remove(bucket);
  }

  /** The next bucket; its turn is taken. The caller takes a session from it and refreshes it. */
  take({ baseWeight, weightPerWait }: SchedulerOptions): BucketQueue | undefined {
    const bucket = this.#turns.peek();
    if (bucket === undefined) return undefined;
    this.#floor = bucket.virtualTime;
    bucket.virtualTime += 1 / Math.max(1, baseWeight + weightPerWait * bucket.waitCount);
    this.#turns.update(bucket);
    return bucket;
  }
}

/** Counts "no slot" once in a poll interval: a host that is asked often must not make its waiters heavy. */
export function countWait(bucket: BucketQueue, now: number, intervalMs: number): void {
  if (now - bucket.waitCountedAt < intervalMs) return;
  bucket.waitCountedAt = now;
  bucket.waitCount++;
}

export function halveWait(bucket: BucketQueue): void {
  bucket.waitCount = Math.floor(bucket.waitCount / 2);
}

function turnBefore(a: BucketQueue, b: BucketQueue): boolean {
  return a.virtualTime === b.virtualTime ? a.headAt < b.headAt : a.virtualTime < b.virtualTime;
}
