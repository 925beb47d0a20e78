import type { BucketState, HostState, SessionState } from "./host-watch.ts";

/** A bucket's part of the host, beside what would be fair. */
export interface Share {
  readonly bucket: BucketState;
  readonly usedMs: number;
  /** What a bucket of its weight that always waited would have used. */
  readonly fairMs: number | undefined;
  /** Positions of its sessions, as far as they are known here. */
  readonly positions: readonly number[];
}

/** Those that wait first, then by slot time. */
export function sharesOf({ buckets, progressMs, sessions }: HostState): Share[] {
  const positions = Map.groupBy(sessions, ({ bucket }: SessionState) => bucket);
  return buckets
    .map((bucket) => ({
      bucket,
      usedMs: bucket.usedMs,
      fairMs: progressMs === undefined ? undefined : progressMs * bucket.weight,
      positions: (positions.get(bucket.bucket) ?? []).map(({ position }) => position),
    }))
    .sort(
      (a, b) => b.bucket.waiting - a.bucket.waiting || b.bucket.inFlight - a.bucket.inFlight || b.usedMs - a.usedMs,
    );
}
