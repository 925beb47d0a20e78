import type { Book } from "../book/book.ts";
import { isCounted } from "../book/breaker.ts";
import { tidyBudgets } from "../book/budgets.ts";
import { becomeIdle } from "../book/head.ts";
import { mayForget } from "../book/host-use.ts";
import { dropOffer, endCooldowns, endLease } from "../book/leases.ts";
import { forgetCapacity, isSame, useLimits } from "../book/limits.ts";
import type { LeaseRecord, OfferRecord } from "../book/records.ts";
import { forgetEnds, startForgotten } from "../book/standing.ts";
import { retireIdle } from "../book/use.ts";
import { admitWaiters, placeClient, swapStuck } from "../book/waiters.ts";
import { isConstrained } from "../host-policy.ts";
import type { Input, Note, Outcome } from "../inputs.ts";
import { type DecideContext, type Deciding, MISSING, OFFER_MS, wakeInstance } from "./deciding.ts";
import { endWaiter } from "./ends.ts";
import { collectOffers, handOut, throttleWaiters } from "./hand-out.ts";
import { endImpossible } from "./impossible.ts";
import { takeInput } from "./take-input.ts";

/** The result of a decision: what the cycle commits and answers. The changes themselves are in the book. */
export interface Decision {
  /** One for each input. */
  readonly outcomes: readonly Outcome[];
  readonly notes: readonly Note[];
  /** Other instances to notify immediately. Those whose waiters got an offer or ended come first. */
  readonly wake: readonly string[];
  /** The host has no users and nothing that must be kept. */
  readonly isForgotten: boolean;
}

/** How many instances are notified of a commit that does not change their waiters. Each notification has a cost. */
const MOST_NOTIFIED = 16;
/** Inputs that create a host. */
const CREATES: ReadonlySet<Input["kind"]> = new Set(["limits", "breaker", "pause"]);

/**
 * Makes the decision about a host: applies the inputs to the book, then hands out free slots. The layers of the funnel
 * in order: 1 breaker, 2 waiter pool, 3 limit and cooldown of the bucket, 4 to 6 the order, 7 slot.
 *
 * DECIDE1 The leases and offers of a host never occupy more than `slots`, and those of a bucket never more than its limit.
 * DECIDE2 A session gets at most one slot in its life, and none after it ended or after its deadline.
 * DECIDE3 Only the token of a lease controls it, and no longer than the lease: a released, revoked or expired slot has
 *   no owner.
 * DECIDE4 The fences of a host only grow.
 * DECIDE5 What ends by time ends at exactly its time and in order, so that use and meter are exact.
 * DECIDE6 A slot is never left free while a waiter may have it, except for a first that needs several (FIRST1).
 *   While an operator has paused the host, no waiter may.
 * DECIDE7 The best-ranked waiter goes first (`order.ts`), at any instance. Each grant counts before the next one is
 *   chosen.
 * DECIDE8 The same book, inputs and context give the same changes.
 * Not promised: that the book is current. If it is not, the store refuses the commit, and the decision is made again.
 */
export function decide(book: Book, inputs: readonly Input[], context: DecideContext): Decision {
  const deciding: Deciding = { book, context, inputs, notes: [], wake: [] };
  const now = Math.max(context.now, book.head.now);
  if (book.limits === undefined && !inputs.some((input) => createsHost(input, context))) return unknownHost(inputs);
  catchUp(deciding, now);
  if (book.tag === undefined) startForgotten(book);
  forgetCapacity(book);
  const before = useLimits(book, context.limits);
  const isWeighted = context.scheduler.isEnabled && !isConstrained(book.policy);
  book.index.useScheduler(isWeighted ? context : undefined);
  const outcomes = inputs.map((input) => takeInput(deciding, input));
  if (before !== undefined && !isSame(before, book.policy)) endImpossible(deciding);
  // First the breaker: an offer from before it opened becomes no lease.
  throttleWaiters(deciding);
  collectOffers(deciding);
  if ((book.index.nextCoolAt ?? Number.POSITIVE_INFINITY) <= book.now) endCooldowns(book);
  endOverdue(deciding);
  admitWaiters(book, context.collectMs);
  // A grant frees a place in the pool, and the waiter that gets it may be granted a slot, too.
  do handOut(deciding);
  while (admitWaiters(book, context.collectMs) || swapStuck(book));
  if (book.isChanged) {
    tidy(book, context);
    notifyOthers(deciding);
  }
  return {
    outcomes,
    notes: deciding.notes,
    wake: deciding.wake,
    isForgotten: inputs.some(({ kind }) => kind === "forget") && mayForget(book, book.now),
  };
}

/** They hold back the waiters behind them. */
function endOverdue(deciding: Deciding): void {
  const { index } = deciding.book;
  for (let waiter = index.ladder?.overdue; waiter !== undefined; waiter = index.ladder?.overdue)
    endWaiter(deciding, waiter, "timeout");
}

/**
 * Other instances that wait at the host are about to commit, too. If they know of this commit, they do not conflict
 * with it.
 */
function notifyOthers(deciding: Deciding): void {
  const { book, context, wake } = deciding;
  for (const instance of book.index.instances) {
    if (wake.length >= MOST_NOTIFIED) return;
    if (instance !== context.instance) wakeInstance(deciding, instance);
  }
}

/** A report creates a host only if its status counts, a session only before its deadline. */
function createsHost(input: Input, { limits, now }: DecideContext): boolean {
  if (input.kind === "report") return isCounted(input.status, limits.policy.breaker);
  return input.kind === "arrive" ? input.deadlineAt > now : CREATES.has(input.kind);
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
    const { nextLease: lease, nextOffer: offer } = book.index.endings;
    const leaseAt = lease?.endsAt ?? Number.POSITIVE_INFINITY;
    const offerAt = offer?.lapsesAt ?? Number.POSITIVE_INFINITY;
    if (Math.min(leaseAt, offerAt) > now) break;
    book.moveTo(Math.max(book.head.meterAt, Math.min(leaseAt, offerAt)));
    if (lease !== undefined && leaseAt <= offerAt) expire(deciding, lease);
    else if (offer !== undefined) lapse(deciding, offer);
  }
  book.moveTo(now);
  book.index.useTime(now, deciding.context.collectMs);
  if (book.get("absence", deciding.context.instance) !== undefined) book.del("absence", deciding.context.instance);
  if (book.size("absence") === 0) return;
  for (const { key, missedAt } of Array.from(book.all("absence"))) {
    if ((deciding.context.seenAt(key) ?? 0) > missedAt) book.del("absence", key);
  }
}

function expire(deciding: Deciding, lease: LeaseRecord): void {
  endLease(deciding.book, lease);
  const { bucket, fence, isReleased } = lease;
  if (!isReleased) deciding.notes.push({ kind: "reclaimed", bucket, fence });
}

/** The offer ends, and the next waiter gets the slot. Records that the client is away, or that its whole instance is. */
function lapse(deciding: Deciding, offer: OfferRecord): void {
  const { key, bucket, instance, offeredAt, lapsesAt } = offer;
  const waiter = deciding.book.get("waiter", key);
  dropOffer(deciding.book, offer);
  deciding.notes.push({ kind: "uncollected", session: key, bucket });
  if (waiter === undefined || waiter.awayAt !== undefined) return;
  // The client is present: the store was unavailable for longer than the offer lasted.
  if (deciding.context.isPolledHere(key)) return;
  if (lapsesAt - offeredAt > OFFER_MS) placeClient(deciding.book, waiter, waiter.instance, offeredAt);
  else if ((deciding.context.seenAt(instance) ?? 0) <= lapsesAt) {
    deciding.book.put({ kind: "absence", key: instance, missedAt: lapsesAt });
  } else placeClient(deciding.book, waiter, waiter.instance, lapsesAt - deciding.context.collectMs);
}

/** Deletes records that are out of date. It runs only with a change that is committed anyway. */
function tidy(book: Book, { idleMs, mostEnds }: DecideContext): void {
  forgetEnds(book, mostEnds);
  endCooldowns(book);
  retireIdle(book, idleMs);
  forgetCapacity(book);
  if (book.size("budget") > 0 || book.head.fullAt !== undefined) tidyBudgets(book);
  if (book.size("waiter") === 0) becomeIdle(book);
  book.draft.now = book.now;
}
