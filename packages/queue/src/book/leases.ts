import { SHARED_BUCKET, widthOf } from "@slotkeeper/protocol";
import type { Book } from "./book.ts";
import { giveBack, pay } from "./budgets.ts";
import { lineOfSlot, lineOfWaiter } from "./line.ts";
import type { LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";
import { rememberEnd } from "./standing.ts";
import { charge, retire } from "./use.ts";

/**
 * The life of a slot. Each function is one transition. Only these functions write leases and offers.
 *
 * | from     | event                                          | to                                            |
 * |----------|------------------------------------------------|-----------------------------------------------|
 * | free     | granted to a waiter whose poll is open here    | held: the waiter becomes a lease              |
 * | free     | granted to any other waiter                    | offered: no token, the waiter keeps its place |
 * | offered  | an instance has a poll of the session open     | held                                          |
 * | offered  | `lapsesAt` passed, or the session ended        | free                                          |
 * | held     | released, minimum hold or spacing left         | ending: occupied, the token is no longer valid |
 * | held     | released, revoked, expired, or never fetched   | free                                          |
 * | ending   | `endsAt` passed                                | free                                          |
 *
 * LEASE1 The account of a line is charged before the number of its slots changes (USE2).
 * LEASE2 After its lease ends, a session is kept as `released` until its deadline, unless its client never got the
 *   slot.
 * LEASE3 Every lease gets a fence above all earlier ones, and at least the time in microseconds. So a store that lost
 *   its last commits in a failover does not issue their fences again.
 */

/** A waiter becomes the holder of a slot. */
export function grantLease(
  book: Book,
  waiter: WaiterRecord,
  { token, instance, isProbe }: { readonly token: string; readonly instance: string; readonly isProbe: boolean },
): LeaseRecord {
  charge(book, lineOfWaiter(waiter), waiter.weight);
  const { now } = book;
  const { leaseMs, maxHoldMs } = book.policy;
  const offer = book.get("offer", waiter.key);
  const fence = Math.max(book.head.fence + 1, Math.floor(now * 1000));
  book.draft.fence = fence;
  const lease: LeaseRecord = {
    kind: "lease",
    key: token,
    fence,
    session: waiter.key,
    bucket: waiter.bucket,
    instance,
    grantedAt: now,
    endsAt: now + Math.min(leaseMs, maxHoldMs),
    isReleased: false,
    isProbe,
    keepUntil: waiter.deadlineAt,
    width: widthOf(waiter.demand),
    charge: offer === undefined ? pay(book, waiter) : offer.charge,
  };
  // Put the lease before the waiter leaves the pool. In between, neither the bucket nor a semaphore may look idle and
  // be forgotten.
  book.put(lease);
  book.del("offer", waiter.key);
  book.del("waiter", waiter.key);
  return lease;
}

/** Sets a slot aside for a waiter. */
export function offerSlot(book: Book, waiter: WaiterRecord, lapsesAt: number, isProbe: boolean): void {
  charge(book, lineOfWaiter(waiter), waiter.weight);
  const { key, bucket, instance, demand } = waiter;
  const width = widthOf(demand);
  const paid = pay(book, waiter);
  book.put({ kind: "offer", key, bucket, instance, offeredAt: book.now, lapsesAt, isProbe, width, charge: paid });
}

/** Frees the slot and gives back what it cost. The waiter keeps its place. */
export function dropOffer(book: Book, offer: OfferRecord): void {
  const line = lineOfSlot(offer);
  charge(book, line);
  giveBack(book, offer);
  book.del("offer", offer.key);
  retire(book, line);
}

/** Frees the slot and ends its session, unless a cancellation has ended it before. */
export function endLease(book: Book, lease: LeaseRecord): void {
  const { session: key, keepUntil, isReleased } = lease;
  dropLease(book, lease);
  const isEnded = isReleased && (book.get("ending", key)?.keepUntil ?? 0) >= keepUntil;
  if (!isEnded) rememberEnd(book, { key, end: "released", keepUntil });
}

/** Frees the slot without recording an end. */
function dropLease(book: Book, lease: LeaseRecord): void {
  const line = lineOfSlot(lease);
  charge(book, line);
  book.del("lease", lease.key);
  retire(book, line);
}

/** Takes back a slot that the client never got, with what it cost. */
export function takeBackLease(book: Book, lease: LeaseRecord): void {
  giveBack(book, lease);
  dropLease(book, lease);
}

/** Call when the order has changed: no grant corrects the new accounts (CHARGED3). */
export function forgetCounted(book: Book): void {
  for (const kind of ["lease", "offer"] as const)
    for (const record of Array.from(book.all(kind)))
      if (record.charge?.counted !== undefined)
        book.put({ ...record, charge: { ...record.charge, counted: undefined } });
}

/** Returns when the slot ends: max(hit + minimum hold, last end + spacing, now), but at most one lease time from now. */
export function releaseLease(book: Book, lease: LeaseRecord, hitAt: number | undefined): number {
  const { now } = book;
  const { minHoldMs, smoothMs, leaseMs, cooldownMs } = book.policy;
  const { lastEndAt } = book.head;
  // A hit in the future, or more than one lease time ago, is impossible and counts as now.
  const isPossible = hitAt !== undefined && hitAt <= now && hitAt >= now - leaseMs;
  const heldUntil = hitAt === undefined ? now : (isPossible ? hitAt : now) + minHoldMs;
  const spacedUntil = smoothMs > 0 && lastEndAt !== undefined ? lastEndAt + smoothMs : now;
  const endsAt = Math.min(Math.max(heldUntil, spacedUntil, now), now + leaseMs);
  if (smoothMs > 0) book.draft.lastEndAt = Math.max(lastEndAt ?? endsAt, endsAt);
  if (cooldownMs > 0 && lease.bucket !== SHARED_BUCKET) startCooldown(book, lease.bucket, endsAt + cooldownMs);
  if (endsAt <= now) endLease(book, lease);
  else book.put({ ...lease, endsAt, isReleased: true });
  return endsAt;
}

/** Returns the new end of the lease. */
export function renewLease(book: Book, lease: LeaseRecord): number {
  const { leaseMs, maxHoldMs } = book.policy;
  const endsAt = Math.max(lease.endsAt, Math.min(book.now + leaseMs, lease.grantedAt + maxHoldMs));
  if (endsAt !== lease.endsAt) book.put({ ...lease, endsAt });
  return endsAt;
}

/**
 * Makes this instance the owner of the lease, because it is about to send the lease to the client again. A repeated first
 * call has a later deadline, and its client a token with it: the end of the session is kept until then.
 */
export function ownLease(book: Book, lease: LeaseRecord, instance: string, deadlineAt: number): void {
  const keepUntil = Math.max(lease.keepUntil, deadlineAt);
  if (lease.instance !== instance || keepUntil !== lease.keepUntil) book.put({ ...lease, instance, keepUntil });
}

/** Deletes cooldowns that are over. */
export function endCooldowns(book: Book): void {
  for (let first = book.index.endings.nextCooldown; first !== undefined; first = book.index.endings.nextCooldown) {
    if (first.until > book.now) return;
    book.del("cooldown", first.key);
  }
}

/** Does not shorten a cooldown that runs longer. */
function startCooldown(book: Book, bucket: string, until: number): void {
  const running = book.get("cooldown", bucket);
  if (running === undefined || running.until < until) book.put({ kind: "cooldown", key: bucket, until });
}

/**
 * Slot tokens: `slot_<host key>.<secret>`. A release or a renewal needs nothing else. Logs and secret scanners
 * recognize them by their prefix.
 */
const PREFIX = "slot_";

/** `secret`: at least 128 random bits, without a dot. */
export function slotTokenOf(host: string, secret: string): string {
  return `${PREFIX}${host}.${secret}`;
}

/**
 * Undefined: the text is not a slot token. No host has a key with U+0000, which PostgreSQL cannot store: a call for such
 * a key would fail and be repeated for ever.
 */
export function hostOfToken(slotToken: string): string | undefined {
  const end = slotToken.lastIndexOf(".");
  if (!slotToken.startsWith(PREFIX) || end <= PREFIX.length || slotToken.includes("\0")) return undefined;
  return slotToken.slice(PREFIX.length, end);
}
