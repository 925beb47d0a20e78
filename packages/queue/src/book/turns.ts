import type { SchedulerOptions } from "../options.ts";
import type { Book } from "./book.ts";
import type { Bucket } from "./bucket.ts";

/**
 * Layer 6 of the funnel: which bucket is next at a hot host. Weighted round robin over the buckets that can be
 * considered now: the bucket with the smallest virtual time goes first. Then its virtual time grows by 1/weight, with
 * weight = base + perWait × waitCount.
 * A bucket that cannot be considered is not in the index, so it does not block the others. Cost: O(log n).
 */

/**
 * Call before a waiter gets its place. A bucket without other waiters joins at the minimum of the buckets that wait: it
 * has no advantage from its absence. If none of them can be considered now, it joins at the last turn.
 */
export function joinTurns(book: Book, name: string): void {
  if (!book.index.usesTurns) return;
  const bucket = book.index.bucket(name);
  if (bucket?.account === undefined || bucket.waiting > 0) return;
  const minimum = book.index.nextTurn?.virtualTime ?? book.head.turnAt ?? 0;
  if (bucket.virtualTime < minimum) book.put({ ...bucket.account, virtualTime: minimum });
}

/** The bucket takes its turn. */
export function takeTurn(book: Book, bucket: Bucket, { baseWeight, weightPerWait }: SchedulerOptions): void {
  const { account } = bucket;
  if (account === undefined) return;
  const weight = Math.max(1, baseWeight + weightPerWait * (account.waitCount ?? 0));
  book.draft.turnAt = bucket.virtualTime;
  book.put({ ...account, virtualTime: bucket.virtualTime + 1 / weight });
}

/**
 * Counts that no slot was free, at most once per poll interval. Otherwise a host that decides often would raise the
 * weights too fast.
 */
export function countWait(book: Book, bucket: Bucket, pollIntervalMs: number): void {
  const { account } = bucket;
  if (account === undefined || book.now - (account.waitCountedAt ?? Number.NEGATIVE_INFINITY) < pollIntervalMs) return;
  book.put({ ...account, waitCount: (account.waitCount ?? 0) + 1, waitCountedAt: book.now });
}

export function halveWait(book: Book, name: string): void {
  const account = book.index.bucket(name)?.account;
  if (account?.waitCount === undefined || account.waitCount === 0) return;
  book.put({ ...account, waitCount: Math.floor(account.waitCount / 2) });
}
