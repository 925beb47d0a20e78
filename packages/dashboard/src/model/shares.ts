import type { BucketState, HostState, SessionState } from "./host-watch.ts";

/** The class of sessions that name none. */
export const DEFAULT_CLASS = "default";

/** A bucket with its fair share of slot time. At a host with classes, of a bucket in one class. */
export interface Share {
  readonly bucket: BucketState;
  /** The slot time that a bucket of this weight would have used if it had always waited. */
  readonly fairMs: number | undefined;
  /** The known positions of its sessions. */
  readonly positions: readonly number[];
}

/** Buckets with waiters first, then by slot time. */
export function sharesOf({ buckets, progressMs, classes, sessions }: HostState): Share[] {
  const positions = Map.groupBy(sessions, (session: SessionState) => lineOf(session));
  const meters = new Map(classes?.map((one) => [one.name, one.progressMs]));
  return buckets
    .map((bucket) => {
      const meter = classes === undefined ? progressMs : meters.get(bucket.class ?? DEFAULT_CLASS);
      return {
        bucket,
        fairMs: meter === undefined ? undefined : meter * bucket.weight,
        positions: (positions.get(lineOf(bucket)) ?? []).map(({ position }) => position),
      };
    })
    .sort(
      (a, b) =>
        b.bucket.waiting - a.bucket.waiting ||
        b.bucket.inFlight - a.bucket.inFlight ||
        b.bucket.usedMs - a.bucket.usedMs,
    );
}

/** The waiters of a bucket in one class. Names of classes have no spaces. */
function lineOf({ bucket, class: named = DEFAULT_CLASS }: BucketState | SessionState): string {
  return `${named} ${bucket}`;
}
