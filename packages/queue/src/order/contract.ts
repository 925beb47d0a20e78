/** What the order needs to know, and what it hands back. `order.ts` says why; `state.ts` and `transitions.ts` say how. */

/** A bucket as the order sees it. */
export interface Rank {
  /** Slots in the bucket's hands. */
  inFlight: number;
  /** Its share against other buckets, above 0. */
  weight: number;
  /** Slot-milliseconds used up to `asOf`; from there on it accrues `inFlight` per millisecond. */
  usedMs: number;
  asOf: number;
  /** When its oldest eligible waiter arrived. */
  headAt: number;
}
