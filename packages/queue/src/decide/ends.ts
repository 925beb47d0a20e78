import type { Book } from "../book/book.ts";
import { addWait } from "../book/heat.ts";
import { dropLease, rememberEnd } from "../book/leases.ts";
import type { SessionRecord, WaiterRecord } from "../book/records.ts";
import { END_GRACE_MS } from "../book/session-shelf.ts";
import { standingOf } from "../book/standing.ts";
import { dropWaiter } from "../book/waiters.ts";
import type { EndNote, Input, Outcome } from "../inputs.ts";
import { type Deciding, DONE, MISSING, wakeInstance } from "./deciding.ts";

/**
 * The ends of sessions without a slot, and how they are counted.
 *
 * ENDS1 a session ends in the book once: where it waits, where its slot is taken from it, or where the book does not know it and has no
 *    end of it
 * ENDS2 the decision that ends it notes that, and nothing else does. Notes are reported once, after the commit, by the instance that
 *    committed: it counts the end, whichever instance has the session. So no end is counted twice, and none is missed unless that instance
 *    stops before it knows of its commit, or the store loses the commit
 */

/** What is needed of a session to end it. */
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
  rememberEnd(book, { kind: "session", key: session, end, instance: context.instance, keepUntil, ...more });
  const waitedMs = Math.max(0, Math.min(book.now, keepUntil) - arrivedAt);
  const reason = book.now >= keepUntil ? "deadline" : "idle";
  notes.push({ kind: "ended", session, bucket, end, reason, code: more?.code ?? 0, waitedMs });
}

/** A session that waits. Its instance is notified: its client may have a poll open there. */
export function endWaiter(deciding: Deciding, waiter: WaiterRecord, end: EndNote["end"], more?: More): void {
  const { key: session, bucket, arrivedAt, deadlineAt: keepUntil, instance } = waiter;
  dropWaiter(deciding.book, waiter);
  endSession(deciding, { session, bucket, arrivedAt, keepUntil }, end, more);
  if (instance !== deciding.context.instance) wakeInstance(deciding, instance);
}

/** Only the client's own word ends a session that another instance has meanwhile. Done: the session ended now, and here. */
export function takeEnd(deciding: Deciding, input: Input & { kind: "end" }): Outcome {
  const { book, context } = deciding;
  const standing = standingOf(book, input.session, book.now);
  if (standing.kind === "ended") return MISSING;
  if (standing.kind === "unknown") return endUnknown(deciding, input);
  const { instance } = standing.kind === "held" ? standing.lease : standing.waiter;
  const until = standing.kind === "held" ? standing.lease.keepUntil : standing.waiter.deadlineAt;
  // A name that came back after its deadline: this is the end of its earlier life.
  if (input.keepUntil <= book.now && until > input.keepUntil) return MISSING;
  if (instance !== context.instance && input.end !== "canceled") return MISSING;
  if (standing.kind === "waiting") {
    if (input.end === "timeout") addWait(book, book.now - standing.waiter.arrivedAt);
    endWaiter(deciding, standing.waiter, input.end);
  } else {
    dropLease(book, standing.lease);
    endSession(deciding, { ...input, keepUntil: Math.max(input.keepUntil, until) }, input.end);
    if (instance !== context.instance) wakeInstance(deciding, instance);
  }
  return DONE;
}

/** The book never had it, or lost it when its instance was taken for dead. */
function endUnknown(deciding: Deciding, input: Input & { kind: "end" }): Outcome {
  const { book } = deciding;
  const { session, keepUntil } = input;
  // Past the grace its end may have been forgotten: it is taken to have ended.
  if (endedUntil(book, session) >= keepUntil || keepUntil + END_GRACE_MS <= book.now) return MISSING;
  endSession(deciding, input, input.end);
  return DONE;
}

/** The deadline of the life of a session that has ended, the last one of its name. */
function endedUntil(book: Book, session: string): number {
  return book.get("session", session)?.keepUntil ?? Number.NEGATIVE_INFINITY;
}
