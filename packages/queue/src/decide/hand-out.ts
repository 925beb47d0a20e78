import type { Book } from "../book/book.ts";
import { phaseFor, throttleFor, viewBreaker } from "../book/breaker.ts";
import type { Bucket } from "../book/bucket.ts";
import { denyBucket } from "../book/deny.ts";
import { addWait, isHot } from "../book/heat.ts";
import { dropOffer, grantLease, offerSlot } from "../book/leases.ts";
import type { WaiterRecord } from "../book/records.ts";
import { countWait, halveWait, takeTurn } from "../book/turns.ts";
import { placeClient } from "../book/waiters.ts";
import { bucketLimit } from "../host-policy.ts";
import { slotTokenOf } from "../slot-token.ts";
import { type Deciding, OFFER_MS, wakeInstance } from "./deciding.ts";
import { endWaiter } from "./ends.ts";

/**
 * Turns offers into leases if the session has a poll open here. If the client is known to be away, the slot goes to the
 * next waiter. If a limit was lowered after the offer, the slot does not exist any more.
 */
export function collectOffers(deciding: Deciding): void {
  const { book } = deciding;
  if (book.size("offer") === 0) return;
  for (const offer of Array.from(book.all("offer"))) {
    const waiter = book.get("waiter", offer.key);
    if (waiter === undefined || waiter.deadlineAt <= book.now || isOverLimit(book, offer.bucket))
      dropOffer(book, offer);
    else if (placeAway(deciding, waiter)) {
      dropOffer(book, offer);
      deciding.notes.push({ kind: "uncollected", session: offer.key, bucket: offer.bucket });
    } else if (deciding.context.isPolledHere(offer.key)) hand(deciding, waiter, offer.isProbe);
  }
}

function isOverLimit(book: Book, bucket: string): boolean {
  const held = book.index.bucket(bucket)?.inFlight ?? 0;
  return book.inFlight > book.head.slots || held > bucketLimit(book.policy, bucket);
}

/** Layer 1, for sessions that already wait. Runs once for each time the breaker opens. */
export function throttleWaiters(deciding: Deciding): void {
  const { book } = deciding;
  const { breaker } = book.head;
  if (!book.index.mustThrottle(breaker.openedAt)) return;
  const view = viewBreaker(breaker, book.now);
  if (view.phase === "closed") return;
  for (const waiter of Array.from(book.all("waiter"))) {
    const throttle = throttleFor(view, waiter.openMs);
    if (throttle === undefined) continue;
    const { code, retryInMs } = throttle;
    endWaiter(deciding, waiter, "throttled", { code, retryAt: book.now + retryInMs });
  }
}

/** Layers 4 to 7: DECIDE6, DECIDE7. */
export function handOut(deciding: Deciding): void {
  const { book } = deciding;
  const { scheduler } = deciding.context;
  const isWeighted = scheduler.isEnabled && isHostHot(deciding);
  const freeBefore = book.free;
  while (book.free > 0) {
    const bucket = isWeighted ? book.index.nextTurn : bestBucket(deciding);
    if (bucket === undefined) return;
    const waiter = headOf(deciding, bucket);
    if (waiter === undefined) continue;
    const isProbe = isHalfOpen(deciding, waiter);
    if (isProbe && book.index.probes >= book.policy.breaker.halfOpenProbes) return;
    if (isWeighted) takeTurn(book, bucket, scheduler);
    const reason = refusal(book, bucket.name, bucket.inFlight);
    halveWait(book, bucket.name);
    if (reason === undefined) hand(deciding, waiter, isProbe);
    else deny(deciding, bucket, reason);
  }
  if (!isWeighted) return;
  if (book.free < freeBefore) book.draft.probedAt = book.now;
  else considerInVain(deciding);
}

function isHostHot(deciding: Deciding): boolean {
  const { book } = deciding;
  const hot = isHot(book, deciding.context);
  if (hot !== book.head.isHot) book.draft.isHot = hot;
  return hot;
}

function bestBucket(deciding: Deciding): Bucket | undefined {
  const { index, head, inFlight, now } = deciding.book;
  return index.order.best(index.ledger.level(head.slots, inFlight), now);
}

/** The oldest waiter of the bucket, if its client is present and its deadline has not passed. */
function headOf(deciding: Deciding, bucket: Bucket): WaiterRecord | undefined {
  const { book } = deciding;
  const entry = bucket.head;
  if (entry === undefined) return undefined;
  const { record } = entry;
  if (placeAway(deciding, record)) return undefined;
  if (record.deadlineAt > book.now) return record;
  addWait(book, book.now - record.arrivedAt);
  endWaiter(deciding, record, "timeout");
  return undefined;
}

/**
 * If only this instance knows that the client is away, records it in the book. Returns false if nothing was recorded:
 * the client is present, or the book has it already.
 */
function placeAway({ book, context }: Deciding, waiter: WaiterRecord): boolean {
  if (waiter.awayAt !== undefined || waiter.instance !== context.instance) return false;
  const awayAt = context.awayHere(waiter.key);
  if (awayAt === undefined) return false;
  placeClient(book, waiter, context.instance, awayAt);
  return true;
}

function isHalfOpen(deciding: Deciding, { openMs }: WaiterRecord): boolean {
  const { book } = deciding;
  return phaseFor(viewBreaker(book.head.breaker, book.now), openMs) === "half-open";
}

/** Layer 7: why the bucket itself may not get a slot. */
export function refusal(book: Book, name: string, inFlight: number): "ip-limit" | "cooldown" | undefined {
  if (inFlight >= bucketLimit(book.policy, name)) return "ip-limit";
  return (book.get("cooldown", name)?.until ?? 0) > book.now ? "cooldown" : undefined;
}

function deny(deciding: Deciding, bucket: Bucket, reason: "ip-limit" | "cooldown"): void {
  denyBucket(deciding.book, bucket.name, reason, deciding.context.random());
  deciding.notes.push({ kind: "denied", bucket: bucket.name });
}

/** Grants a lease if the client has a poll open here, otherwise makes an offer. */
export function hand(deciding: Deciding, waiter: WaiterRecord, isProbe: boolean): void {
  const { book } = deciding;
  const { instance, isPolledHere, newSecret, collectMs } = deciding.context;
  if (isPolledHere(waiter.key)) {
    addWait(book, book.now - waiter.arrivedAt);
    grantLease(book, waiter, { token: slotTokenOf(book.host, newSecret()), instance, isProbe });
    return;
  }
  const isHere = waiter.instance === instance;
  offerSlot(book, waiter, book.now + (isHere || waiter.awayAt !== undefined ? collectMs : OFFER_MS), isProbe);
  if (!isHere) wakeInstance(deciding, waiter.instance);
}

/**
 * Layer 5: no slot is free. Considering a bucket in vain raises its weight, but does not use its turn: otherwise each
 * bucket that joins later would overtake those that have waited for long. It happens at most once per poll interval,
 * and the quota limits the number of buckets.
 */
function considerInVain({ book, context }: Deciding): void {
  const { scheduler, pollIntervalMs } = context;
  if (book.now - (book.head.probedAt ?? Number.NEGATIVE_INFINITY) < pollIntervalMs) return;
  const buckets = book.index.firstTurns(scheduler.maxProbesPerCycle ?? book.policy.slots);
  book.draft.probedAt = book.now;
  for (const bucket of buckets) countWait(book, bucket, pollIntervalMs);
}
