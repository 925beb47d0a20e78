import { becomeBusy } from "../book/average-wait.ts";
import type { Book } from "../book/book.ts";
import { closeBreaker, openBreaker, reportTo, throttleFor, viewBreaker } from "../book/breaker.ts";
import { dropLease, endLease, ownLease, releaseLease, renewLease } from "../book/leases.ts";
import { joinCapacity, useLive } from "../book/limits.ts";
import type { LeaseRecord, SessionRecord, WaiterRecord } from "../book/records.ts";
import { isEndForgotten, noteArrival } from "../book/session-ends.ts";
import { standingOf } from "../book/standing.ts";
import { addWaiter, dropWaiter, placeClient } from "../book/waiters.ts";
import { bucketLimit } from "../host-policy.ts";
import type { Input, Outcome } from "../inputs.ts";
import { type Deciding, DONE, MISSING } from "./deciding.ts";
import { endSession, takeEnd } from "./ends.ts";
import { hand } from "./hand-out.ts";

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
      deciding.book.draft.breaker = input.isOpen ? openBreaker(0, deciding.book.now) : closeBreaker();
      return DONE;
    case "limits":
      useLive(deciding.book, input.limits);
      return DONE;
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
  if (book.now >= input.deadlineAt) return arriveLate(deciding, input);
  const standing = standingOf(book, input.session, book.now);
  if (standing.kind === "unknown" && mayHaveEnded(deciding, input)) return { kind: "ended", isFirst: false };
  noteArrival(book, input.arrivedAt);
  if (standing.kind === "held") {
    const { lease } = standing;
    ownLease(book, lease, instance, input.deadlineAt);
    const isOwnGrant = lease.instance === instance;
    return { kind: "held", isFirst: lease.keepUntil === input.deadlineAt, isOwnGrant };
  }
  if (standing.kind === "ended") {
    rememberUntil(book, input.session, input.deadlineAt);
    return { kind: "ended", isFirst: isFirst(standing.record, input.deadlineAt) };
  }
  if (standing.kind === "unknown") return admit(deciding, input);
  placeClient(book, extended(standing.waiter, input.deadlineAt), instance, undefined);
  return { kind: "waiting", isFirst: standing.waiter.arrivedAt === input.arrivedAt };
}

/** END3. A session that just begins here cannot have ended: no other instance can know it. */
function mayHaveEnded({ book, context }: Deciding, input: Input & { kind: "arrive" }): boolean {
  const isNew = input.isReturning !== true && !context.isTokenSent(input.session);
  return !isNew && isEndForgotten(book, input);
}

/** After its deadline a session gets no slot. Its client may already have one, or the book may still have its end. */
function arriveLate({ book, context }: Deciding, { session, deadlineAt }: Input & { kind: "arrive" }): Outcome {
  const lease = book.leaseOf(session);
  if (lease !== undefined && lease.keepUntil >= deadlineAt)
    return { kind: "held", isFirst: lease.keepUntil === deadlineAt, isOwnGrant: lease.instance === context.instance };
  const record = book.get("session", session);
  if (record === undefined || record.keepUntil < deadlineAt) return DONE;
  return { kind: "ended", isFirst: isFirst(record, deadlineAt) };
}

/** Whether the ended session had this deadline from the start. */
function isFirst(
  { keepUntil, isExtended }: Pick<SessionRecord, "keepUntil" | "isExtended">,
  deadlineAt: number,
): boolean {
  return keepUntil === deadlineAt && isExtended !== true;
}

function admit(deciding: Deciding, input: Input & { kind: "arrive" }): Outcome {
  const { book } = deciding;
  const { isSemaphore } = deciding.context;
  const throttled = throttledFor(deciding, input.openMs);
  if (throttled !== undefined) {
    if (deciding.context.isTokenSent(input.session)) rememberThrottled(deciding, input, throttled);
    return throttled;
  }
  if (isSemaphore && !joinCapacity(book, input.limit) && input.isReturning !== true) {
    return { kind: "mismatch", capacity: book.head.slots };
  }
  if (isAlone(deciding, input)) hand(deciding, waiterOf(input, deciding.context.instance), false);
  else join(deciding, input);
  return DONE;
}

/**
 * No other session waits or arrives, and no limit applies. This is the most common case, and it skips the pool. The
 * weighted scheduler counts every wait and turn, so it does not apply there.
 */
function isAlone({ book, context, inputs }: Deciding, { session, bucket }: Input & { kind: "arrive" }): boolean {
  if (context.scheduler.isEnabled) return false;
  if (inputs.length > 1 || book.size("waiter") > 0 || book.free === 0 || !context.isPolledHere(session)) return false;
  const { breaker } = book.head;
  if (breaker.openedAt !== undefined) return false;
  const held = book.index.bucket(bucket)?.inFlight ?? 0;
  return held < bucketLimit(book.policy, bucket) && (book.get("cooldown", bucket)?.until ?? 0) <= book.now;
}

function join(deciding: Deciding, input: Input & { kind: "arrive" | "return" }): void {
  const { book } = deciding;
  const { instance, pollIntervalMs } = deciding.context;
  const { session, bucket, weight, arrivedAt, deadlineAt, openMs } = input;
  const awayAt = input.kind === "return" ? input.awayAt : undefined;
  if (book.size("waiter") === 0) becomeBusy(book, pollIntervalMs);
  const isReturning = input.kind === "arrive" && input.isReturning === true;
  addWaiter(book, { key: session, instance, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt }, isReturning);
}

type Throttled = Outcome & { kind: "throttled" };

/** The client may use its token at another instance, which must find that the session has ended. */
function rememberThrottled(
  deciding: Deciding,
  input: Input & { kind: "arrive" | "return" },
  throttled: Throttled,
): void {
  const { code, retryAt } = throttled;
  endSession(deciding, { ...input, keepUntil: input.deadlineAt }, "throttled", { code, retryAt });
}

/** Layer 1, for a session that is not in the book. */
function throttledFor(deciding: Deciding, openMs: number): Throttled | undefined {
  const { head, now } = deciding.book;
  const throttle = throttleFor(viewBreaker(head.breaker, now), openMs);
  return throttle && { kind: "throttled", code: throttle.code, retryAt: now + throttle.retryInMs };
}

/** Only if this instance still has the session; another one may have taken it over. */
function moveClient(deciding: Deciding, { session, awayAt }: Input & { kind: "client" }): Outcome {
  const waiter = deciding.book.get("waiter", session);
  if (waiter?.instance === deciding.context.instance)
    placeClient(deciding.book, waiter, deciding.context.instance, awayAt);
  return DONE;
}

function takeBack(deciding: Deciding, input: Input & { kind: "return" }): Outcome {
  const { book } = deciding;
  const { session } = input;
  const standing = standingOf(book, session, book.now);
  if (standing.kind !== "held" || standing.lease.instance !== deciding.context.instance) return MISSING;
  dropLease(book, standing.lease);
  deciding.notes.push({ kind: "uncollected", session, bucket: standing.lease.bucket });
  if (book.now >= input.deadlineAt) return DONE;
  const throttled = throttledFor(deciding, input.openMs);
  if (throttled === undefined) join(deciding, input);
  else rememberThrottled(deciding, input, throttled);
  return throttled ?? DONE;
}

function release(deciding: Deciding, { slotToken, hitAt, status }: Input & { kind: "release" }): Outcome {
  const { book } = deciding;
  const lease = held(deciding, slotToken);
  if (status !== undefined) report(deciding, status, lease?.isProbe ?? false);
  if (lease === undefined) return MISSING;
  const endsAt = releaseLease(book, lease, hitAt);
  return { kind: "released", bucket: lease.bucket, endsAt, heldMs: book.now - lease.grantedAt };
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

function report(deciding: Deciding, status: number, isProbe: boolean): void {
  const { book } = deciding;
  const { breaker } = book.head;
  const next = reportTo(breaker, { status, isProbe }, book.now, book.policy.breaker);
  if (next !== breaker) book.draft.breaker = next;
}

function bury(deciding: Deciding, instance: string): Outcome {
  const { book } = deciding;
  const waiters = [...book.all("waiter")].filter((waiter) => waiter.instance === instance);
  for (const waiter of waiters) dropWaiter(book, waiter);
  book.del("absence", instance);
  return DONE;
}

/**
 * A first call that is repeated with the same `requestId` is the same session with a later deadline. Its end is kept
 * until then. The end of an earlier session with this id stays as it is.
 */
function rememberUntil(book: Book, session: string, until: number): void {
  const record = book.get("session", session);
  if (record !== undefined && record.keepUntil > book.now) {
    if (record.keepUntil < until) book.put({ ...record, keepUntil: until, endedAt: book.now, isExtended: true });
    return;
  }
  const lease = book.leaseOf(session);
  if (lease !== undefined && lease.keepUntil < until) book.put({ ...lease, keepUntil: until });
}

function waiterOf(input: Input & { kind: "arrive" }, instance: string): WaiterRecord {
  const { session: key, bucket, weight, arrivedAt, deadlineAt, openMs } = input;
  return { kind: "waiter", key, instance, bucket, weight, arrivedAt, deadlineAt, openMs, isInside: true };
}

function extended(waiter: WaiterRecord, deadlineAt: number): WaiterRecord {
  return waiter.deadlineAt < deadlineAt ? { ...waiter, deadlineAt } : waiter;
}
