import { budgetOfOrder, type Costs, classOf, widthOf } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { closeBreaker, openBreaker, reportTo, throttleFor, viewBreaker } from "../book/breaker.ts";
import { missingBudgets, settle } from "../book/budgets.ts";
import { ceilingOf } from "../book/classes.ts";
import { becomeBusy } from "../book/head.ts";
import { dropOffer, endLease, ownLease, releaseLease, renewLease } from "../book/leases.ts";
import { joinCapacity, setLiveLimits, setPaused, useClasses } from "../book/limits.ts";
import type { EndingRecord, LeaseRecord, WaiterRecord } from "../book/records.ts";
import { extendEnd, isEndForgotten, noteArrival, otherDemand, rememberEnd, standingOf } from "../book/standing.ts";
import { addWaiter, dropWaiter, placeClient } from "../book/waiters.ts";
import { bucketLimit } from "../host-policy.ts";
import type { Input, Outcome } from "../inputs.ts";
import { type Deciding, DONE, FORGOTTEN, MISSING } from "./deciding.ts";
import { beginSession, endSession, endWaiter, isUndelivered, takeEnd, takeLease } from "./ends.ts";
import { hand } from "./hand-out.ts";
import { impossible, lackedKey, unknownDemand } from "./impossible.ts";

/** Applies one input to the book. It grants no slots, except to a new session when no other session waits. */
export function takeInput(deciding: Deciding, input: Input): Outcome {
  switch (input.kind) {
    case "arrive":
      return arrive(deciding, input);
    case "client":
      return moveClient(deciding, input);
    case "end":
      return takeEnd(deciding, input);
    case "return":
      return takeBack(deciding, input);
    case "release":
      return release(deciding, input);
    case "renew":
      return renew(deciding, input);
    case "revoke":
      return revoke(deciding, input);
    case "report":
      report(deciding, input.status, false);
      return DONE;
    case "breaker":
      setBreaker(deciding, input.isOpen);
      return DONE;
    case "limits":
      setLiveLimits(deciding.book, input.limits);
      return DONE;
    case "pause":
      return pause(deciding.book, input.isPaused);
    case "unspace":
      if (deciding.book.head.lastEndAt !== undefined) deciding.book.draft.lastEndAt = undefined;
      return DONE;
    case "dead":
      return bury(deciding, input.instance);
    case "forget":
      // `forget` is decided last, after all other inputs.
      return DONE;
  }
}

function arrive(deciding: Deciding, input: Input & { kind: "arrive" }): Outcome {
  const { book } = deciding;
  const { instance } = deciding.context;
  const standing = standingOf(book, input.session, book.now);
  const isLate = book.now >= input.deadlineAt;
  const other = isLate ? undefined : otherDemand(standing, input.demand, book.now);
  if (other !== undefined) return { kind: "other-demands", ...other };
  if (standing.kind === "held" && !(isLate && standing.lease.keepUntil > input.deadlineAt))
    ownLease(book, standing.lease, instance, input.deadlineAt);
  // After its deadline a session gets no slot. A slot with a later deadline belongs to a later session of the same id.
  if (isLate) return DONE;
  if (standing.kind === "unknown") return admit(deciding, input, standing.isBegun);
  noteArrival(book, input.arrivedAt);
  if (standing.kind === "ended") extendEnd(book, input.session, input.deadlineAt);
  if (standing.kind !== "waiting") return DONE;
  if (standing.waiter.deadlineAt > book.now) {
    placeClient(book, extended(standing.waiter, input.deadlineAt), instance, undefined);
    return DONE;
  }
  // The same id is used again, and the earlier session was not ended at its deadline.
  endWaiter(deciding, standing.waiter, "timeout");
  return admit(deciding, input, false);
}

/** END3. A session that just begins here cannot have ended: no other instance can know it. */
function mayHaveEnded({ book, context }: Deciding, input: Input & { kind: "arrive" }): boolean {
  const isNew = input.isReturning !== true && !context.isTokenSent(input.session);
  return !isNew && isEndForgotten(book, input);
}

/** `isBegun`: the book dropped the session when its instance died, and it joins again. */
function admit(deciding: Deciding, input: Input & { kind: "arrive" }, isBegun: boolean): Outcome {
  const { book } = deciding;
  if (!isBegun && mayHaveEnded(deciding, input)) return FORGOTTEN;
  noteArrival(book, input.arrivedAt);
  const throttled = throttledFor(deciding, input.openMs);
  const isNew = !isBegun && input.isReturning !== true;
  // While the store was down, a first call may have been answered `pending` before its keys were checked.
  const never =
    throttled === undefined
      ? (impossible(book, input, slotsFor(deciding, input)) ??
        (isNew || isBegun ? undefined : lackedKey(book, input.demand)))
      : undefined;
  const refused = isNew && throttled === undefined ? (never ?? unknownDemand(book, input.demand)) : undefined;
  if (refused !== undefined) return { kind: "impossible", ...refused };
  const isRefused = throttled === undefined && never === undefined && !joinsCapacity(deciding, input);
  if (isRefused) return { kind: "mismatch", capacity: book.head.slots };
  if (isBegun) book.del("ending", input.session);
  else beginSession(deciding, input);
  if (throttled !== undefined) endThrottled(deciding, input, throttled);
  else if (never !== undefined) endSession(deciding, { ...input, keepUntil: input.deadlineAt }, "impossible");
  else {
    useClasses(book, classOf(input.demand));
    if (isAlone(deciding, input)) grantAlone(deciding, input);
    else join(deciding, input);
  }
  return DONE;
}

/** The slots of the host. A named semaphore without users gets the number that its first user asks for. */
function slotsFor({ book, context }: Deciding, { limit }: Input & { kind: "arrive" }): number {
  const { capacity, slots } = book.head;
  return context.isSemaphore && capacity === undefined ? (limit ?? book.policy.slots) : slots;
}

/** Whether a named semaphore has the capacity that the session asks for. */
function joinsCapacity({ book, context }: Deciding, { limit, isReturning }: Input & { kind: "arrive" }): boolean {
  return !context.isSemaphore || joinCapacity(book, limit) || isReturning === true;
}

/**
 * No other session waits or arrives, and no limit applies. This is the most common case, and it skips the pool. The
 * weighted scheduler counts every wait and turn, and the order by a budget every session that joins, so it does not apply
 * there. A test compares the decision with and without this shortcut: the book and the notes must be the same
 * (`alone.prop.test.ts`).
 */
function isAlone({ book, context, inputs }: Deciding, input: Input & { kind: "arrive" }): boolean {
  if (context.scheduler.isEnabled || budgetOfOrder(book.policy.order) !== undefined) return false;
  const { session, bucket, demand } = input;
  const width = widthOf(demand);
  if (
    inputs.length > 1 ||
    book.size("waiter") > 0 ||
    book.free < width ||
    book.isPaused ||
    !context.isPolledHere(session)
  )
    return false;
  const { breaker } = book.head;
  if (breaker.openedAt !== undefined) return false;
  if (missingBudgets(book, input).length > 0) return false;
  if (!book.index.keysAdmit(waiterOf(input, context.instance))) return false;
  const ofClass = classOf(demand);
  if ((book.index.ofClass(ofClass)?.inFlight ?? 0) + width > ceilingOf(book, ofClass)) return false;
  const held = book.index.heldBy(bucket);
  return held + width <= bucketLimit(book.policy, bucket) && (book.get("cooldown", bucket)?.until ?? 0) <= book.now;
}

function grantAlone(deciding: Deciding, input: Input & { kind: "arrive" }): void {
  becomeBusy(deciding.book, deciding.context.pollIntervalMs);
  hand(deciding, waiterOf(input, deciding.context.instance), false);
}

function join(deciding: Deciding, input: Input & { kind: "arrive" | "return" }): void {
  const { book } = deciding;
  const { instance, pollIntervalMs } = deciding.context;
  const { session, bucket, weight, arrivedAt, deadlineAt, openMs, demand } = input;
  const awayAt = input.kind === "return" ? input.awayAt : undefined;
  if (book.size("waiter") === 0) becomeBusy(book, pollIntervalMs);
  const isReturning = input.kind === "arrive" && input.isReturning === true;
  addWaiter(
    book,
    { key: session, instance, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt, demand },
    isReturning,
  );
}

type Throttle = Pick<EndingRecord, "code" | "retryAt">;

/** Records the end, because the client may use its token at any instance, which must find that the session has ended. */
function endThrottled(deciding: Deciding, input: Input & { kind: "arrive" | "return" }, throttle: Throttle): void {
  endSession(deciding, { ...input, keepUntil: input.deadlineAt }, "throttled", throttle);
}

/** Layer 1, for a session that is not in the book. */
function throttledFor(deciding: Deciding, openMs: number): Throttle | undefined {
  const { head, now } = deciding.book;
  const throttle = throttleFor(viewBreaker(head.breaker, now), openMs);
  return throttle && { code: throttle.code, retryAt: now + throttle.retryInMs };
}

/** Only if this instance still has the session; another one may have taken it over. A poll may have come meanwhile. */
function moveClient({ book, context }: Deciding, { session, awayAt }: Input & { kind: "client" }): Outcome {
  const waiter = book.get("waiter", session);
  if (waiter?.instance === context.instance)
    placeClient(book, waiter, context.instance, context.isPolledHere(session) ? undefined : awayAt);
  return DONE;
}

function takeBack(deciding: Deciding, input: Input & { kind: "return" }): Outcome {
  const { book, context } = deciding;
  const standing = standingOf(book, input.session, book.now);
  if (standing.kind !== "held") return MISSING;
  const { lease } = standing;
  // A call that came meanwhile takes the slot.
  const isTaken = !isUndelivered(deciding, lease) || context.isPolledHere(input.session);
  if (lease.fence !== input.fence || isTaken) return MISSING;
  takeLease(deciding, lease);
  const throttled = throttledFor(deciding, input.openMs);
  const ending = { ...input, keepUntil: input.deadlineAt };
  if (book.now >= input.deadlineAt) endSession(deciding, ending, "timeout");
  else if (impossible(book, input, book.head.slots) !== undefined) endSession(deciding, ending, "impossible");
  else if (throttled !== undefined) endThrottled(deciding, input, throttled);
  else {
    useClasses(book, classOf(input.demand));
    join(deciding, input);
  }
  return DONE;
}

function release(deciding: Deciding, { slotToken, hitAt, status, used }: Input & { kind: "release" }): Outcome {
  const { book } = deciding;
  const lease = held(deciding, slotToken);
  // A repeated release counts no second time.
  if (lease === undefined) return MISSING;
  const { openedAt = 0 } = book.head.breaker;
  // The probe of an earlier opening says nothing about this one.
  if (status !== undefined) report(deciding, status, lease.isProbe && lease.grantedAt >= openedAt);
  const ignored = used === undefined ? undefined : settleUse(deciding, lease, used);
  const endsAt = releaseLease(book, lease, hitAt);
  return { kind: "released", bucket: lease.bucket, endsAt, heldMs: book.now - lease.grantedAt, ignored };
}

/** Returns the names of the budgets that it ignored. */
function settleUse({ book, notes }: Deciding, lease: LeaseRecord, used: Costs): readonly string[] {
  const { bucket } = lease;
  const { ignored, excess } = settle(book, lease, used);
  for (const [budget, units] of Object.entries(excess)) notes.push({ kind: "excess", bucket, budget, units });
  return ignored;
}

function renew(deciding: Deciding, { slotToken }: Input & { kind: "renew" }): Outcome {
  const lease = held(deciding, slotToken);
  return lease === undefined ? MISSING : { kind: "renewed", endsAt: renewLease(deciding.book, lease) };
}

function revoke(deciding: Deciding, { fence }: Input & { kind: "revoke" }): Outcome {
  for (const lease of deciding.book.all("lease")) {
    if (lease.fence !== fence || lease.isReleased) continue;
    endLease(deciding.book, lease);
    return DONE;
  }
  return MISSING;
}

/** DECIDE3: the lease that this token controls, unless it was released. */
function held(deciding: Deciding, slotToken: string): LeaseRecord | undefined {
  const lease = deciding.book.get("lease", slotToken);
  return lease?.isReleased === true ? undefined : lease;
}

/** An offer is not a grant yet: its waiter keeps its place, and gets no slot before the host goes on. */
function pause(book: Book, isPaused: boolean): Outcome {
  setPaused(book, isPaused);
  if (isPaused) for (const offer of Array.from(book.all("offer"))) dropOffer(book, offer);
  return DONE;
}

/** An operator opens or closes the breaker. */
function setBreaker({ book }: Deciding, isOpen: boolean): void {
  const next = isOpen ? openBreaker(0, book.now) : closeBreaker();
  if (JSON.stringify(next) !== JSON.stringify(book.head.breaker)) book.draft.breaker = next;
}

function report(deciding: Deciding, status: number, isProbe: boolean): void {
  const { book } = deciding;
  const { breaker } = book.head;
  const next = reportTo(breaker, { status, isProbe }, book.now, book.policy.breaker);
  if (next !== breaker) book.draft.breaker = next;
}

/** The mark `dropped` is left, so that a session that joins again does not begin a second time. */
function bury(deciding: Deciding, instance: string): Outcome {
  const { book } = deciding;
  const waiters = [...book.all("waiter")].filter((waiter) => waiter.instance === instance);
  for (const waiter of waiters) {
    dropWaiter(book, waiter);
    rememberEnd(book, { key: waiter.key, end: "dropped", keepUntil: waiter.deadlineAt });
  }
  book.del("absence", instance);
  return DONE;
}

function waiterOf(input: Input & { kind: "arrive" }, instance: string): WaiterRecord {
  const { session: key, bucket, weight, arrivedAt, deadlineAt, openMs, demand } = input;
  return { kind: "waiter", key, instance, bucket, weight, arrivedAt, deadlineAt, openMs, isInside: true, demand };
}

/** A repeated first call continues the session with its first arrival and a later deadline. */
function extended(waiter: WaiterRecord, deadlineAt: number): WaiterRecord {
  return waiter.deadlineAt < deadlineAt ? { ...waiter, deadlineAt } : waiter;
}
