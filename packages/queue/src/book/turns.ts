import type { SchedulerOptions } from "../options.ts";
import type { Book } from "./book.ts";
import type { Bucket } from "./bucket.ts";

/**
 * Layer 6 of the funnel: which bucket is next at a hot host. Weighted round robin over the buckets that can be
 * considered now: the bucket with the smallest virtual time goes first. Then its virtual time grows by 1/weight, with
 * weight = base + perWait × waitCount. A try without a free slot raises the wait count, and costs no turn: otherwise a
 * bucket that waited would be behind every bucket that came later.
 * A bucket that cannot be considered is not in the index, so it does not block the others. Cost: O(log n).
 */

/**
 * Call before the first waiter of a bucket enters the pool: the bucket starts at the smallest virtual time of the buckets
 * that wait, so its absence gives it no advantage. It does not fall below the virtual time that it had.
 */
export function joinTurns(book: Book, name: string): void {
  const { index, head } = book;
  const bucket = index.bucket(name);
  if (!index.usesTurns || bucket?.account === undefined || bucket.waiting > 0) return;
  const minimum = index.nextTurn?.virtualTime ?? head.turnAt ?? 0;
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
 * Counts that no slot was free for the bucket whose last count was longest ago, at most once per poll interval. Otherwise
 * a host that decides often would raise the weights too fast. Returns false if no bucket was counted.
 */
export function countWait(book: Book, pollIntervalMs: number): boolean {
  const account = book.index.nextTry?.account;
  if (account === undefined) return false;
  if (book.now - (account.waitCountedAt ?? Number.NEGATIVE_INFINITY) < pollIntervalMs) return false;
  book.put({ ...account, waitCount: (account.waitCount ?? 0) + 1, waitCountedAt: book.now });
  return true;
}

export function halveWait(book: Book, name: string): void {
  const account = book.index.bucket(name)?.account;
  if (account?.waitCount === undefined || account.waitCount === 0) return;
  book.put({ ...account, waitCount: Math.floor(account.waitCount / 2) });
}
