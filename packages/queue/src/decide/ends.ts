import { addWait } from "../book/average-wait.ts";
import type { Book } from "../book/book.ts";
import { dropLease, releaseLease } from "../book/leases.ts";
import type { SessionRecord, WaiterRecord } from "../book/records.ts";
import { endNeededUntil, isEndForgotten, rememberEnd } from "../book/session-ends.ts";
import { standingOf } from "../book/standing.ts";
import { dropWaiter } from "../book/waiters.ts";
import type { EndNote, Input, Outcome } from "../inputs.ts";
import { type Deciding, DONE, MISSING, wakeInstance } from "./deciding.ts";

/**
 * How sessions without a slot end, and how these ends are counted.
 *
 * ENDS1 A session ends in the book once: while it waits, when its slot is taken away, or if the book does not know it
 *   and has no end of it.
 * ENDS2 Only the decision that ends a session adds a note about the end. The instance that committed it reports the
 *   note once, after the commit, and so counts the end, whichever instance has the session. So no end is counted twice.
 *   An end is missed only if that instance stops before it knows of its commit, or if the store loses the commit.
 */

/** The data that is needed to end a session. */
export interface Ending {
  readonly session: string;
  readonly bucket: string;
  readonly arrivedAt: number;
  /** Its deadline. */
  readonly keepUntil: number;
}

type More = Pick<SessionRecord, "code" | "retryAt">;

export function endSession({ book, context, notes }: Deciding, ending: Ending, end: EndNote["end"], more?: More): void {
  const { session, bucket, arrivedAt, keepUntil } = ending;
  rememberEnd(book, { key: session, end, instance: context.instance, keepUntil, ...more });
  const waitedMs = Math.max(0, Math.min(book.now, keepUntil) - arrivedAt);
  const reason = book.now >= keepUntil ? "deadline" : "idle";
  notes.push({ kind: "ended", session, bucket, end, reason, code: more?.code ?? 0, waitedMs });
}

/** Ends a session that waits. Its instance is notified, because the client may have a poll open there. */
export function endWaiter(deciding: Deciding, waiter: WaiterRecord, end: EndNote["end"], more?: More): void {
  const { key: session, bucket, arrivedAt, deadlineAt: keepUntil, instance } = waiter;
  dropWaiter(deciding.book, waiter);
  endSession(deciding, { session, bucket, arrivedAt, keepUntil }, end, more);
  if (instance !== deciding.context.instance) wakeInstance(deciding, instance);
}

/**
 * If another instance has the session now, only a cancellation by the client ends it. If the client may have used the
 * slot, a cancellation ends it as a release does, and only within `cancelMs` of its grant. `DONE`: this decision ended
 * the session.
 */
export function takeEnd(deciding: Deciding, input: Input & { kind: "end" }): Outcome {
  const { book, context } = deciding;
  const standing = standingOf(book, input.session, book.now);
  if (standing.kind === "ended") return MISSING;
  if (standing.kind === "unknown") return endUnknown(deciding, input);
  const { instance } = standing.kind === "held" ? standing.lease : standing.waiter;
  const until = standing.kind === "held" ? standing.lease.keepUntil : standing.waiter.deadlineAt;
  // The same session id was used again after its deadline. This input belongs to the earlier session.
  if (input.keepUntil <= book.now && until > input.keepUntil) return MISSING;
  // The other way round: the slot belongs to the earlier session, and this one never joined it.
  if (standing.kind === "held" && until < input.keepUntil) return MISSING;
  if (instance !== context.instance && input.end !== "canceled") return MISSING;
  if (standing.kind === "waiting") {
    if (input.end === "timeout") addWait(book, book.now - standing.waiter.arrivedAt);
    endWaiter(deciding, standing.waiter, input.end);
  } else {
    const { lease } = standing;
    if (input.isUndelivered && instance === context.instance) dropLease(book, lease);
    else if (input.at - lease.grantedAt > context.cancelMs) return MISSING;
    else releaseLease(book, lease, lease.grantedAt);
    endSession(deciding, { ...input, keepUntil: Math.max(input.keepUntil, until) }, input.end);
    if (instance !== context.instance) wakeInstance(deciding, instance);
  }
  return DONE;
}

/** Ends a session that the book never had, or dropped when its instance was considered dead. */
function endUnknown(deciding: Deciding, input: Input & { kind: "end" }): Outcome {
  const { book } = deciding;
  const { session, keepUntil } = input;
  // If its end may have been forgotten, the session counts as ended.
  if (endedUntil(book, session) >= keepUntil || endNeededUntil(keepUntil) <= book.now) return MISSING;
  if (isEndForgotten(book, input)) return MISSING;
  endSession(deciding, input, input.end);
  return DONE;
}

/** The deadline of the ended session with this id; of several, the last one. */
function endedUntil(book: Book, session: string): number {
  return book.get("session", session)?.keepUntil ?? Number.NEGATIVE_INFINITY;
}
