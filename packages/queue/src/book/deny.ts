import type { Book } from "./book.ts";
import type { AccountRecord } from "./records.ts";
import { charge, retire } from "./use.ts";

/** Layer 3 of the funnel: a bucket that was refused for its own limit or cooldown is not considered for a while. */

type DenyReason = NonNullable<AccountRecord["denyReason"]>;

/** The length of a deny window if no cooldown is configured. */
const DEFAULT_DENY_MS = 3_000;

/**
 * The window ends with its reason: when the first slot of the bucket ends, or with its cooldown. `random` in [0, 1) adds up
 * to a third to the longest window.
 */
export function denyBucket(book: Book, name: string, reason: DenyReason, random: number): void {
  const account = book.index.bucket(name)?.account ?? charge(book, name);
  const lengthMs = book.policy.cooldownMs > 0 ? book.policy.cooldownMs : DEFAULT_DENY_MS;
  const windowEnd = book.now + lengthMs * (1 + random / 3);
  const reasonEnd = reason === "ip-limit" ? firstEnd(book, name) : (book.get("cooldown", name)?.until ?? book.now);
  book.put({ ...account, denyUntil: Math.min(windowEnd, reasonEnd), denyReason: reason });
}

/** Ends deny windows that are over. */
export function allowBuckets(book: Book): void {
  for (let first = book.index.nextDenied; first?.account !== undefined; first = book.index.nextDenied) {
    if ((first.account.denyUntil ?? 0) > book.now) return;
    allowBucket(book, first.account);
  }
}

/** A slot of the bucket ends at `at`. If the bucket was refused for its limit, its deny window ends at that time, too. */
export function allowFrom(book: Book, name: string, at: number): void {
  const account = book.index.bucket(name)?.account;
  if (account?.denyUntil === undefined || account.denyReason !== "ip-limit" || account.denyUntil <= at) return;
  if (at <= book.now) allowBucket(book, account);
  else book.put({ ...account, denyUntil: at });
}

function allowBucket(book: Book, account: AccountRecord): void {
  book.put({ ...account, denyUntil: undefined, denyReason: undefined });
  retire(book, account.key);
}

/**
 * When the first slot of the bucket ends. It runs only for a refused bucket, and reads at most one lease per slot of
 * the host.
 */
function firstEnd(book: Book, bucket: string): number {
  let first = Number.POSITIVE_INFINITY;
  for (const lease of book.all("lease")) if (lease.bucket === bucket) first = Math.min(first, lease.endsAt);
  for (const offer of book.all("offer")) if (offer.bucket === bucket) first = Math.min(first, offer.lapsesAt);
  return first;
}
