import type { Book } from "../book/book.ts";
import { isPristine } from "../book/breaker.ts";
import { allowBuckets } from "../book/deny.ts";
import { becomeIdle } from "../book/heat.ts";
import { dropOffer, endLease } from "../book/leases.ts";
import { forgetCapacity, useLimits } from "../book/limits.ts";
import type { LeaseRecord, OfferRecord } from "../book/records.ts";
import { END_GRACE_MS } from "../book/session-shelf.ts";
import { retireIdle } from "../book/use.ts";
import { admitWaiters, placeClient } from "../book/waiters.ts";
import type { Input, Note, Outcome } from "../inputs.ts";
import { type DecideContext, type Deciding, MISSING, OFFER_MS, wakeInstance } from "./deciding.ts";
import { collectOffers, handOut, throttleWaiters } from "./hand-out.ts";
import { takeInput } from "./take-input.ts";

/** What a decision asks the cycle to commit and to answer. The changes themselves are in the book. */
export interface Decision {
  /** One for each input. */
  readonly outcomes: readonly Outcome[];
  readonly notes: readonly Note[];
  /** Other instances to notify at once: first those whose waiters were offered a slot, or ended. */
  readonly wake: readonly string[];
  /** The host has no users and nothing worth keeping. */
  readonly isForgotten: boolean;
}

/** Sessions forgotten in one decision, at most: a decision costs the same however many ended. */
const FORGOTTEN_AT_ONCE = 64;
/** How many instances are notified of a commit that does not change their waiters: each notification has a cost. */
const MOST_NOTIFIED = 16;
/** Inputs that make a host known. */
const CREATES: ReadonlySet<Input["kind"]> = new Set(["arrive", "report", "limits", "breaker"]);

/**
 * The one decision about a host: takes inputs, changes the book, and hands out what is free. The funnel's layers in order:
 * 1 breaker, 2 waiter pool, 3 deny windows, 4 heat, 5 quota, 6 turns, 7 slot, bucket limit and cooldown.
 *
 *   DECIDE1 at no moment are more than `slots` leases and offers of a host alive, nor more than its limit of a bucket
 *   DECIDE2 a session is granted at most one slot in its life, and nothing after it ended or past its deadline
 *   DECIDE3 a lease has one owner, its token; what was released, revoked or expired belongs to no one
 *   DECIDE4 fences of a host only grow
 *   DECIDE5 what time ended is ended at the moment it ended, in order, so that use and meter are exact
 *   DECIDE6 a free slot is never left beside a waiter that may have it
 *   DECIDE7 the best-ranked waiter goes first (`order.ts`), whichever instance it lives on, each grant counted before the next
 *   DECIDE8 the same book, inputs and context give the same changes
 * Not promised: that the book is current. The commit that follows is refused where it is not, and the decision is made again.
 */
export function decide(book: Book, inputs: readonly Input[], context: DecideContext): Decision {
  const deciding: Deciding = { book, context, inputs, notes: [], wake: [] };
  const now = Math.max(context.now, book.head.now);
  book.index.useTurns(context.scheduler.isEnabled);
  if (book.limits === undefined && !inputs.some(({ kind }) => CREATES.has(kind))) return unknownHost(inputs);
  catchUp(deciding, now);
  forgetCapacity(book);
  useLimits(book, context.limits);
  const outcomes = inputs.map((input) => takeInput(deciding, input));
  collectOffers(deciding);
  throttleWaiters(deciding);
  allowBuckets(book);
  admitWaiters(book);
  // A grant frees a place in the pool, and the waiter that gets it may be granted too.
  do handOut(deciding);
  while (admitWaiters(book));
  if (book.isChanged) {
    tidy(book, context.idleMs);
    notifyOthers(deciding);
  }
  return {
    outcomes,
    notes: deciding.notes,
    wake: deciding.wake,
    isForgotten: inputs.some(({ kind }) => kind === "forget") && isForgettable(book),
  };
}

/** Instances that wait at the host are about to commit too: an instance that knows of this commit does not conflict with it. */
function notifyOthers(deciding: Deciding): void {
  const { book, context, wake } = deciding;
  for (const instance of book.index.instances) {
    if (wake.length >= MOST_NOTIFIED) return;
    if (instance !== context.instance) wakeInstance(deciding, instance);
  }
}

/** A release, a renewal or a cancellation never creates a host. */
function unknownHost(inputs: readonly Input[]): Decision {
  const outcomes = inputs.map(() => MISSING);
  return { outcomes, notes: [], wake: [], isForgotten: false };
}

/** DECIDE5. */
function catchUp(deciding: Deciding, now: number): void {
  const { book } = deciding;
  for (;;) {
    const { nextLease: lease, nextOffer: offer } = book.index;
    const leaseAt = lease?.endsAt ?? Number.POSITIVE_INFINITY;
    const offerAt = offer?.lapsesAt ?? Number.POSITIVE_INFINITY;
    if (Math.min(leaseAt, offerAt) > now) break;
    book.moveTo(Math.max(book.head.meterAt, Math.min(leaseAt, offerAt)));
    if (lease !== undefined && leaseAt <= offerAt) expire(deciding, lease);
    else if (offer !== undefined) lapse(deciding, offer);
  }
  book.moveTo(now);
  if (book.get("absence", deciding.context.instance) !== undefined) book.del("absence", deciding.context.instance);
  if (book.size("absence") === 0) return;
  for (const { key, missedAt } of Array.from(book.all("absence"))) {
    if ((deciding.context.seenAt(key) ?? 0) > missedAt) book.del("absence", key);
  }
}

function expire(deciding: Deciding, lease: LeaseRecord): void {
  endLease(deciding.book, lease);
  if (!lease.isReleased) deciding.notes.push({ kind: "reclaimed" });
}

/** The slot is offered to the next. The client is taken to be away, or its whole instance to be. */
function lapse(deciding: Deciding, offer: OfferRecord): void {
  const { key, bucket, instance, offeredAt, lapsesAt } = offer;
  const waiter = deciding.book.get("waiter", key);
  dropOffer(deciding.book, offer);
  deciding.notes.push({ kind: "uncollected", session: key, bucket });
  if (waiter === undefined || waiter.awayAt !== undefined) return;
  // The store was away for longer than the offer, not the client.
  if (deciding.context.isPolledHere(key)) return;
  if (lapsesAt - offeredAt > OFFER_MS) placeClient(deciding.book, waiter, waiter.instance, offeredAt);
  else if ((deciding.context.seenAt(instance) ?? 0) <= lapsesAt) {
    deciding.book.put({ kind: "absence", key: instance, missedAt: lapsesAt });
  } else placeClient(deciding.book, waiter, waiter.instance, lapsesAt - deciding.context.collectMs);
}

/** Drops what time has made useless, along with a change that is committed anyway. */
function tidy(book: Book, idleMs: number): void {
  for (const { key } of book.expiredSessions(book.now, FORGOTTEN_AT_ONCE)) book.del("session", key);
  for (let first = book.index.nextCooldown; first !== undefined; first = book.index.nextCooldown) {
    if (first.until > book.now) break;
    book.del("cooldown", first.key);
  }
  retireIdle(book, idleMs);
  forgetCapacity(book);
  if (book.size("waiter") === 0) becomeIdle(book);
  book.draft.now = book.now;
}

/** Forgetting it changes no answer, but for fairness towards a bucket that was ahead before all sessions ended. */
function isForgettable(book: Book): boolean {
  const { lastEndAt, breaker } = book.head;
  if (book.inFlight > 0 || book.live !== undefined) return false;
  for (const { deadlineAt } of book.all("waiter")) if (deadlineAt > book.now) return false;
  if (lastEndAt !== undefined && lastEndAt + book.policy.smoothMs > book.now) return false;
  for (const { until } of book.all("cooldown")) if (until > book.now) return false;
  for (const { keepUntil } of book.all("session")) if (keepUntil + END_GRACE_MS > book.now) return false;
  return isPristine(breaker, book.now, book.policy.breaker);
}
