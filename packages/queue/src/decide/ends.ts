import { rememberEnd } from "../book/leases.ts";
import type { SessionRecord, WaiterRecord } from "../book/records.ts";
import { dropWaiter } from "../book/waiters.ts";
import type { EndNote } from "../inputs.ts";
import { type Deciding, wakeInstance } from "./deciding.ts";

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
