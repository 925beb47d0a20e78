import { budgetOfOrder, classOf, widthOf } from "@slotkeeper/protocol";
import { sharedKeysOf } from "../book/accounts.ts";
import type { Book } from "../book/book.ts";
import { phaseFor, throttleFor, viewBreaker } from "../book/breaker.ts";
import { missingBudgets } from "../book/budgets.ts";
import { isClassInShare, roomOf } from "../book/classes.ts";
import { addWait } from "../book/head.ts";
import { dropOffer, grantLease, offerSlot, slotTokenOf } from "../book/leases.ts";
import { type Line, lineOfWaiter } from "../book/line.ts";
import type { OfferRecord, WaiterRecord } from "../book/records.ts";
import { charge, isInShare } from "../book/use.ts";
import { admitWaiters, placeClient } from "../book/waiters.ts";
import { bucketLimit } from "../host-policy.ts";
import { type Deciding, OFFER_MS, wakeInstance } from "./deciding.ts";
import { endWaiter } from "./ends.ts";

/** How often a line is reported as refused if there is no cooldown. */
const REFUSED_MS = 3_000;

/**
 * Turns offers into leases if the session has a poll open here. If the client is known to be away, the slot goes to the
 * next waiter. If a limit was lowered after the offer, the slot does not exist any more. The oldest offer comes first: records
 * have no order, and a store may return them in any.
 */
export function collectOffers(deciding: Deciding): void {
  const { book } = deciding;
  if (book.size("offer") === 0) return;
  // By age: the order of the records depends on the store.
  for (const offer of Array.from(book.all("offer")).sort(byAge)) {
    const waiter = book.get("waiter", offer.key);
    if (waiter === undefined || waiter.deadlineAt <= book.now || isOverLimit(book, offer)) dropOffer(book, offer);
    else if (placeAway(deciding, waiter)) {
      dropOffer(book, offer);
      deciding.notes.push({ kind: "uncollected", session: offer.key, bucket: offer.bucket });
    } else if (deciding.context.isPolledHere(offer.key)) hand(deciding, waiter, offer.isProbe);
  }
}

function byAge(a: OfferRecord, b: OfferRecord): number {
  return a.offeredAt - b.offeredAt || (a.key < b.key ? -1 : 1);
}

function isOverLimit(book: Book, { bucket, charge: paid }: OfferRecord): boolean {
  const ofClass = book.index.ofClass(classOf(paid?.asked));
  const isOver = book.index.heldKeys?.isOver(paid?.asked?.keys) === true;
  if (isOver || (ofClass !== undefined && roomOf(book, ofClass) < 0)) return true;
  return book.inFlight > book.head.slots || book.index.heldBy(bucket) > bucketLimit(book.policy, bucket);
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

/** Layers 3 to 7: DECIDE6, DECIDE7. */
export function handOut(deciding: Deciding): void {
  const { book } = deciding;
  if (book.isPaused) {
    setFirst(book, undefined);
    return;
  }
  const { order } = book;
  order.begin(book);
  while (book.free > 0) {
    checkOverCeiling(deciding);
    const waiter = best(deciding);
    if (waiter === AGAIN) continue;
    const isProbe = waiter !== undefined && isHalfOpen(deciding, waiter);
    if (isProbe && book.index.probes >= book.policy.breaker.halfOpenProbes) {
      setFirst(book, undefined);
      return;
    }
    refusePassedOver(deciding);
    const isFirst = waiter !== undefined && !fits(book, waiter);
    setFirst(book, isFirst ? waiter.key : undefined);
    if (waiter === undefined || isFirst) return;
    order.granted(book, book.index.line(lineOfWaiter(waiter)) as Line);
    hand(deciding, waiter, isProbe);
    // The next of its keys moves on, and competes for the next slot.
    if (book.policy.keys !== undefined) admitWaiters(book, deciding.context.collectMs);
  }
  setFirst(book, undefined);
  order.full(book);
}

/** The waiter was ended or is away. The next one must be chosen. */
const AGAIN = Symbol("again");

/**
 * The waiter that gets the next grant: the best-ranked. If it needs more slots than are free and may not be first, the
 * best-ranked of those that fit takes its place.
 */
function best(deciding: Deciding): WaiterRecord | typeof AGAIN | undefined {
  const { book } = deciding;
  const { order } = book;
  const waiter = order.next(book)?.head?.record;
  if (waiter === undefined || !isTooWide(book, waiter)) return waiter && present(deciding, waiter);
  const checked = present(deciding, waiter);
  if (checked === AGAIN || mayBeFirst(book, waiter)) return checked;
  const narrow = order.next(book, book.free)?.head?.record;
  return narrow && present(deciding, narrow);
}

/** A waiter that the ceiling of its class has no room for is not chosen, so it is checked here. */
function checkOverCeiling(deciding: Deciding): void {
  const { book } = deciding;
  while (book.order.overCeiling(book).some(({ waiter }) => present(deciding, waiter) === AGAIN));
}

/**
 * The first of a host: the best-ranked waiter, if it needs more slots than are free, or a budget cannot pay for it. While
 * it waits, no other waiter is granted. Otherwise narrow or cheap requests would take each slot and each unit that becomes
 * free, and a wide or expensive one would never be granted.
 *
 * FIRST1 Only the best-ranked waiter is first. One that lacks only slots is first only while its line and its class are
 *   in zone 0 or 1 of `order.ts`, or if the order is by a budget.
 * FIRST2 While there is a first, no other waiter and no direct caller is granted. Nothing is set aside for it.
 * FIRST3 Each decision finds it again. So it waits at most until `width` slots end and its budgets have refilled, or until
 *   another waiter ranks better.
 * The head names it, for direct callers and for answers. A host without wide requests and budgets has none: its
 * best-ranked waiter fits whenever a slot is free.
 */

function isTooWide({ free }: Book, { demand }: WaiterRecord): boolean {
  return widthOf(demand) > free;
}

/** Whether it can be granted now: enough slots are free, and all budgets can pay. */
function fits(book: Book, waiter: WaiterRecord): boolean {
  return !isTooWide(book, waiter) && missingBudgets(book, waiter).length === 0;
}

/** Whether the best-ranked waiter may be first. In the order by a budget it always may (CORDER3). */
function mayBeFirst(book: Book, waiter: WaiterRecord): boolean {
  if (budgetOfOrder(book.policy.order) !== undefined) return true;
  const isOwn = isInShare(book, lineOfWaiter(waiter)) && isClassInShare(book, classOf(waiter.demand));
  return isOwn || missingBudgets(book, waiter).length > 0;
}

/** Undefined: there is no first. */
function setFirst(book: Book, session: string | undefined): void {
  if (book.head.first !== session) book.draft.first = session;
}

/** Reports the lines that only their own limit or cooldown keeps from the slot. */
function refusePassedOver({ book, notes }: Deciding): void {
  const { order } = book;
  for (let line = order.passedOver(book); line !== undefined; line = order.passedOver(book)) {
    book.put({ ...charge(book, line.name), refusedAt: book.now });
    order.refused(book, line);
    notes.push({ kind: "refused", bucket: line.bucket });
  }
}

/** A line is reported at most once between two of its grants, and at most once per cooldown (or 3 s). */
function clearRefusal(book: Book, name: string): void {
  const { cooldownMs } = book.policy;
  const refusedAt = book.index.line(name)?.account?.refusedAt ?? Number.POSITIVE_INFINITY;
  if (book.now - refusedAt < (cooldownMs > 0 ? cooldownMs : REFUSED_MS)) return;
  book.put({ ...charge(book, name), refusedAt: undefined });
}

/** The waiter, if its client is present and its deadline has not passed. */
function present(deciding: Deciding, waiter: WaiterRecord): WaiterRecord | typeof AGAIN {
  if (placeAway(deciding, waiter)) return AGAIN;
  if (waiter.deadlineAt > deciding.book.now) return waiter;
  endWaiter(deciding, waiter, "timeout");
  return AGAIN;
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

/** Grants a lease if the client has a poll open here, otherwise makes an offer. */
export function hand(deciding: Deciding, waiter: WaiterRecord, isProbe: boolean): void {
  const { book } = deciding;
  const { instance, isPolledHere, newSecret, collectMs } = deciding.context;
  clearRefusal(book, lineOfWaiter(waiter));
  if (isPolledHere(waiter.key)) {
    const waitedMs = book.now - waiter.arrivedAt;
    addWait(book, waitedMs);
    const token = slotTokenOf(book.host, newSecret());
    const { fence, session, bucket, charge: paid } = grantLease(book, waiter, { token, instance, isProbe });
    deciding.notes.push({ kind: "granted", session, bucket, fence, waitedMs: Math.max(0, waitedMs) });
    for (const limit of paid?.short ?? []) deciding.notes.push({ kind: "short", bucket, limit });
    if (book.policy.keys !== undefined && paid !== undefined)
      for (const key of sharedKeysOf(paid.costs)) deciding.notes.push({ kind: "shared", bucket, key });
    return;
  }
  const isHere = waiter.instance === instance;
  offerSlot(book, waiter, book.now + (isHere || waiter.awayAt !== undefined ? collectMs : OFFER_MS), isProbe);
  if (!isHere) wakeInstance(deciding, waiter.instance);
}
