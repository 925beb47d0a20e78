import type { Book } from "../book/book.ts";
import { giveBack } from "../book/budgets.ts";
import { addWait } from "../book/head.ts";
import { releaseLease, takeBackLease } from "../book/leases.ts";
import type { EndingRecord, LeaseRecord, WaiterRecord } from "../book/records.ts";
import { endNeededUntil, isEndForgotten, rememberEnd, standingOf } from "../book/standing.ts";
import { dropWaiter } from "../book/waiters.ts";
import type { EndNote, Input, Outcome } from "../inputs.ts";
import { type Deciding, DONE, MISSING, wakeInstance } from "./deciding.ts";

/**
 * How sessions begin and end in the book.
 *
 * ENDS1 A session begins once: in the decision that finds it unknown. It ends once: while it waits, when its slot is
 *   taken away, or if the book does not know it and has no end of it.
 * ENDS2 Only these decisions add a note. The instance whose commit was accepted reports the notes once, whichever
 *   instance has the session. So nothing is counted twice, and a count is lost only if that instance stops between the
 *   commit and the count, or if the store loses the commit. A failover that loses the commit may also count a session
 *   twice.
 */

/** The data that is needed to end a session. */
export interface Ending {
  readonly session: string;
  readonly bucket: string;
  readonly arrivedAt: number;
  /** Its deadline. */
  readonly keepUntil: number;
}

type EndInput = Input & { kind: "end" };
type More = Pick<EndingRecord, "code" | "retryAt">;
/** One that became impossible counts as a timeout. */
type End = EndNote["end"] | "impossible";

export function beginSession({ notes }: Deciding, { session, bucket }: Pick<Ending, "session" | "bucket">): void {
  notes.push({ kind: "begun", session, bucket });
}

export function endSession({ book, context, notes }: Deciding, ending: Ending, end: End, more?: More): void {
  const { session, bucket, arrivedAt, keepUntil } = ending;
  rememberEnd(book, { key: session, end, instance: context.instance, keepUntil, ...more });
  const waitedMs = Math.max(0, Math.min(book.now, keepUntil) - arrivedAt);
  const reason = end === "impossible" ? end : book.now >= keepUntil ? "deadline" : "idle";
  notes.push({
    kind: "ended",
    session,
    bucket,
    end: end === "impossible" ? "timeout" : end,
    reason,
    code: more?.code ?? 0,
    waitedMs,
  });
}

/** Ends a session that waits. Its instance is notified, because the client may have a poll open there. */
export function endWaiter(deciding: Deciding, waiter: WaiterRecord, end: End, more?: More): void {
  const { key: session, bucket, arrivedAt, deadlineAt: keepUntil, instance } = waiter;
  if (end === "timeout") addWait(deciding.book, deciding.book.now - arrivedAt);
  dropWaiter(deciding.book, waiter);
  endSession(deciding, { session, bucket, arrivedAt, keepUntil }, end, more);
  if (instance !== deciding.context.instance) wakeInstance(deciding, instance);
}

/** Whether this instance made the lease, and no call has taken it. */
export function isUndelivered({ context }: Deciding, { instance, session, fence }: LeaseRecord): boolean {
  return instance === context.instance && context.isUndelivered(session, fence);
}

/** Takes back a slot that no client got. */
export function takeLease({ book, notes }: Deciding, lease: LeaseRecord): void {
  const { session, bucket, fence } = lease;
  takeBackLease(book, lease);
  notes.push({ kind: "returned", session, bucket, fence });
}

/** `DONE`: this decision ended the session. */
export function takeEnd(deciding: Deciding, input: EndInput): Outcome {
  const standing = standingOf(deciding.book, input.session, deciding.book.now);
  switch (standing.kind) {
    case "ended":
      return MISSING;
    case "unknown":
      return endUnknown(deciding, input, standing.isBegun);
    case "waiting":
      return endWaiting(deciding, input, standing.waiter);
    case "held":
      return cancelHeld(deciding, input, standing.lease);
  }
}

/** If another instance has the session now, or a poll came meanwhile, only a cancellation or the deadline ends it. */
function endWaiting(deciding: Deciding, input: EndInput, waiter: WaiterRecord): Outcome {
  const { book, context } = deciding;
  if (isOfEarlier(book, input, waiter.deadlineAt)) return MISSING;
  if (input.end === "timeout") {
    const isPolled = context.isPolledHere(input.session) && book.now < waiter.deadlineAt;
    if (waiter.instance !== context.instance || isPolled) return MISSING;
  }
  endWaiter(deciding, waiter, input.end);
  return DONE;
}

/**
 * A cancellation within `cancelMs` of the grant ends the slot as a release does: its client may have used it. A slot that
 * no client got is free at once.
 */
function cancelHeld(deciding: Deciding, input: EndInput, lease: LeaseRecord): Outcome {
  const { book, context } = deciding;
  if (input.end !== "canceled" || isOfEarlier(book, input, lease.keepUntil)) return MISSING;
  if (isUndelivered(deciding, lease)) takeLease(deciding, lease);
  else if (input.at - lease.grantedAt > context.cancelMs) return MISSING;
  else {
    giveBack(book, lease);
    releaseLease(book, lease, lease.grantedAt);
  }
  endSession(deciding, { ...input, keepUntil: lease.keepUntil }, input.end);
  if (lease.instance !== context.instance) wakeInstance(deciding, lease.instance);
  return DONE;
}

/** The same session id was used again after its deadline. This input belongs to the earlier session. */
function isOfEarlier({ now }: Book, { keepUntil }: EndInput, deadlineAt: number): boolean {
  return keepUntil <= now && deadlineAt > keepUntil;
}

/** Ends a session that the book never had, or dropped when its instance was considered dead. */
function endUnknown(deciding: Deciding, input: EndInput, isBegun: boolean): Outcome {
  const { book } = deciding;
  const { session, keepUntil } = input;
  // If its end may have been forgotten, the session counts as ended.
  const record = book.get("ending", session);
  const isRecorded = record !== undefined && record.end !== "dropped" && record.keepUntil >= keepUntil;
  if (isRecorded || endNeededUntil(keepUntil) <= book.now) return MISSING;
  const wasBegun = isBegun || record?.end === "dropped";
  if (!wasBegun && isEndForgotten(book, input)) return MISSING;
  if (!wasBegun) beginSession(deciding, input);
  endSession(deciding, input, input.end);
  return DONE;
}
