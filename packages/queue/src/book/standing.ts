import { type Demand, type DemandDifference, differenceOf } from "@slotkeeper/protocol";
import type { Book } from "./book.ts";
import type { EndingRecord, LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";

/**
 * The state of a session according to the book, and how long the book keeps its end. Every answer is derived from it,
 * whichever instance made the decision.
 */
export type Standing =
  | { readonly kind: "held"; readonly lease: LeaseRecord }
  | { readonly kind: "waiting"; readonly waiter: WaiterRecord; readonly offer: OfferRecord | undefined }
  | { readonly kind: "ended"; readonly record: EndOfSession }
  /** `isBegun`: the session waited before, and the book dropped it when its instance died. */
  | { readonly kind: "unknown"; readonly isBegun: boolean };

export type EndOfSession = Omit<EndingRecord, "kind" | "key">;

const UNKNOWN: Standing = { kind: "unknown", isBegun: false };
const DROPPED: Standing = { kind: "unknown", isBegun: true };

export function standingOf(book: Book, session: string, now: number): Standing {
  const lease = book.leaseOf(session);
  if (lease !== undefined && !lease.isReleased && lease.endsAt > now) return { kind: "held", lease };
  const waiter = book.get("waiter", session);
  if (waiter !== undefined) return { kind: "waiting", waiter, offer: book.get("offer", session) };
  const record = book.get("ending", session);
  if (record !== undefined && record.keepUntil > now)
    return record.end === "dropped" ? DROPPED : { kind: "ended", record };
  return lease === undefined ? UNKNOWN : released(lease);
}

function released({ keepUntil }: LeaseRecord): Standing {
  return { kind: "ended", record: { end: "released", keepUntil } };
}

/** In what the session asked for something else. One that waits after its deadline is no longer the session of its id. */
export function otherDemand(standing: Standing, demand: Demand | undefined, now: number): DemandDifference | undefined {
  if (standing.kind === "held") return differenceOf(standing.lease.charge?.asked, demand);
  if (standing.kind !== "waiting" || standing.waiter.deadlineAt <= now) return undefined;
  return differenceOf(standing.waiter.demand, demand);
}

/**
 * The ends of sessions: how long they are kept, and what follows if the end of a session was forgotten.
 *
 * END1 A host keeps the `most` newest ends, and each at most `KEPT_MS`. So their number does not depend on how long
 *   sessions may wait. The ends of one decision are all kept until the next one, so that the instance that commits it
 *   finds how its sessions ended.
 * END2 Every session that ended after `head.forgottenAt` is in the book, as a lease or an end, until its deadline.
 * END3 A token names a time at which its session had not ended (`pendingAt`): the arrival or, in the token of a later
 *   answer, the commit that this answer is based on. If the book does not have the session, then it has ended if that
 *   time is not after `head.forgottenAt`. Otherwise it has never ended (END2), and may join. So no session is granted
 *   twice.
 * END4 A host may be forgotten when its ends need not be kept any more, no waiter's end could be needed any more, and
 *   `forgottenAt` is `KEPT_MS` ago (`mayForget`). So a host that the store does not know starts with `forgottenAt` as if it
 *   had just been forgotten.
 * Not promised: that a session that has not ended is never taken for ended. This needs three things at once: the book
 * lost the session, or never had it; its token is older than `KEPT_MS` or than the `most` newest ends; and other
 * sessions of the host have ended since that token.
 * All times are times of the store. Only an arrival is an estimate, which may be ahead by `AHEAD_MS`. An arrival that
 * is further ahead raises `forgottenAt` when it joins, so that END3 holds for its token too.
 */

/** How many ends a host keeps. */
export const MOST_ENDS = 10_000;
/** How long a host keeps an end. SQL has the same number (`slotkeeper_is_unused`, `slotkeeper_new_host`). */
const KEPT_MS = 600_000;
/** How far ahead of the book an arrival may be. SQL includes it, too. */
const AHEAD_MS = 1_000;
/**
 * How long after its deadline an end is kept. Another instance may have an old copy of the session, from before its
 * client moved on. It ends that copy at the deadline and must then find the recorded end. Otherwise it would count a
 * second end. A waiter is kept for the same time, so that an instance that ends it late does not count it as begun again.
 */
const GRACE_MS = 10_000;
/** How many ends one decision forgets at most, so that the cost of a decision does not depend on how many there are. */
const FORGOTTEN_AT_ONCE = 64;

type Ended = Pick<EndingRecord, "keepUntil" | "endedAt">;
type Pending = { readonly arrivedAt: number; readonly pendingAt?: number | undefined };

/** Until when the end of a session must be kept, if there are not too many. */
export function endKeptUntil({ keepUntil, endedAt = Number.POSITIVE_INFINITY }: Ended): number {
  return Math.min(keepUntil + GRACE_MS, endedAt + KEPT_MS);
}

/** Until when the end of a session with this deadline may be needed. After that, its token alone shows that it has ended. */
export function endNeededUntil(deadlineAt: number): number {
  return deadlineAt + GRACE_MS;
}

export function rememberEnd(book: Book, record: Omit<EndingRecord, "kind" | "endedAt">): void {
  const { key, end, keepUntil, instance, code, retryAt } = record;
  if (endNeededUntil(keepUntil) <= book.now) return;
  book.put({ kind: "ending", key, end, keepUntil, endedAt: book.now, instance, code, retryAt });
}

/**
 * A repeated first call found the end of its session. Its client may have a token with its later deadline. The end of an
 * earlier session with this id stays as it is.
 */
export function extendEnd(book: Book, session: string, until: number): void {
  const record = book.get("ending", session);
  if (record !== undefined && record.keepUntil > book.now) {
    if (record.keepUntil < until) book.put({ ...record, keepUntil: until, endedAt: book.now });
    return;
  }
  const lease = book.leaseOf(session);
  if (lease !== undefined && lease.keepUntil < until) book.put({ ...lease, keepUntil: until });
}

/** END1, END2. */
export function forgetEnds(book: Book, most: number): void {
  for (let count = 0; count < FORGOTTEN_AT_ONCE; count++) {
    const oldest = book.index.endings.nextEnd;
    if (oldest === undefined) return;
    const isTooMany = book.size("ending") > most && oldest.endedAt !== book.now;
    if (endKeptUntil(oldest) > book.now && !isTooMany) return;
    if (oldest.end !== "dropped" && endNeededUntil(oldest.keepUntil) > book.now)
      raise(book, (oldest.endedAt ?? book.now) + AHEAD_MS);
    book.del("ending", oldest.key);
  }
}

/** END3: whether a session that the book does not have must have ended. */
export function isEndForgotten({ head }: Book, { arrivedAt, pendingAt = arrivedAt }: Pending): boolean {
  return !isAfter(Math.max(arrivedAt, pendingAt), head.forgottenAt);
}

/** A session joins. */
export function noteArrival(book: Book, arrivedAt: number): void {
  if (arrivedAt > book.now + AHEAD_MS) raise(book, arrivedAt);
}

/** END4, for a host that the store does not know. */
export function startForgotten(book: Book): void {
  raise(book, forgottenAtStart(book.now));
}

/** END4: whether a host that is forgotten and created again would know as much about forgotten ends. */
export function isStart(forgottenAt: number | undefined, now: number): boolean {
  return forgottenAt === undefined || forgottenAt <= forgottenAtStart(now);
}

function forgottenAtStart(now: number): number {
  return now - KEPT_MS + AHEAD_MS;
}

function raise(book: Book, at: number): void {
  if (isAfter(at, book.head.forgottenAt)) book.draft.forgottenAt = at;
}

function isAfter(at: number, forgottenAt = Number.NEGATIVE_INFINITY): boolean {
  return at > forgottenAt;
}
