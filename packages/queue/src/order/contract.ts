/** What the order needs to know about a bucket. `order.ts` defines the order; `bucket-order.ts` finds the best bucket. */

/** A bucket as the order sees it. */
export interface Rank {
  /** Slots that the bucket holds. */
  inFlight: number;
  /** Its share compared with other buckets, above 0. */
  weight: number;
  /** Slot-milliseconds used up to `asOf`. From then on it grows by `inFlight` per millisecond. */
  usedMs: number;
  asOf: number;
  /** When its oldest eligible waiter arrived. */
  headAt: number;
  /** The id of its session: decides between waiters that arrived at the same time. */
  headKey: string;
}
