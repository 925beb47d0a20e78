import type { BucketState, HostState, SessionState } from "./host-watch.ts";

/** The slot time of a bucket, and its fair share. */
export interface Share {
  readonly bucket: BucketState;
  readonly usedMs: number;
  /** The slot time that a bucket of this weight would have used if it had always waited. */
  readonly fairMs: number | undefined;
  /** The known positions of its sessions. */
  readonly positions: readonly number[];
}

/** Buckets with waiters first, then by slot time. */
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
