/**
 * What all instances of the service together must have counted for the sessions of a history: exact where the calls and
 * answers determine it, otherwise the least and the most.
 *
 *   begun      sessions. One whose first call got no answer may have begun; a repeated first call begins no second one.
 *   granted    slots, those included that no client received: at most one for each call that got no answer, and for each
 *              `pending` answer after which the client was away for `collectMs`.
 *   returned   slots that were taken back because no client fetched them.
 *   timeout, throttled, canceled   how sessions ended without a slot; a slot that is given back by `cancel` may count as canceled.
 *   released   slots that ended by `release`.
 *
 * Nothing is known about a session that began before lost commits or a jump of the store's clock.
 */
import { type Call, isAnswered, isDone } from "./call.ts";
import { groupBy } from "./group-by.ts";
import { type History, leaseEnd, type Session, type Slot } from "./history.ts";

export const COUNT_NAMES = ["begun", "granted", "returned", "timeout", "throttled", "canceled", "released"] as const;

export type CountName = (typeof COUNT_NAMES)[number];

export interface Bounds {
  readonly least: number;
  readonly most: number;
}

export type Counts = Readonly<Record<CountName, Bounds>>;

const NONE: Bounds = { least: 0, most: 0 };
const MAYBE: Bounds = { least: 0, most: 1 };
const ONE: Bounds = { least: 1, most: 1 };
const UNKNOWN: Bounds = { least: 0, most: Number.POSITIVE_INFINITY };

export function countsOf(history: History): Counts {
  const all = [...groupBy(history.sessions, requestOf).values()].flatMap((same) =>
    same.map((session) => countSession(history, session, same.find(hasBegun) ?? same[0])),
  );
  const sum = (name: CountName) =>
    all.map((counts) => counts[name]).reduce((a, b) => ({ least: a.least + b.least, most: a.most + b.most }), NONE);
  return Object.fromEntries(COUNT_NAMES.map((name) => [name, sum(name)])) as Counts;
}

/** The same for sessions that one request id names; the session itself if it has none. */
function requestOf(session: Session): unknown {
  const requestId = session.calls.find((call) => call.requestId !== undefined)?.requestId;
  return requestId === undefined ? session : `${session.host}\n${session.bucket}\n${requestId}`;
}

/** `first`: the session that began, of those with the same request id. */
function countSession(history: History, session: Session, first: Session | undefined): Counts {
  if (history.faults.doubtedFrom(session.askedAt) !== Number.POSITIVE_INFINITY) {
    return Object.fromEntries(COUNT_NAMES.map((name) => [name, UNKNOWN])) as Counts;
  }
  const { slots } = session;
  const missed = { least: 0, most: missedGrants(history, session) };
  const released = slots.map((slot) => releasedOf(history, slot));
  return {
    begun: session === first ? begunOf(session) : hasBegun(session) ? MAYBE : NONE,
    granted: { least: slots.length, most: slots.length + missed.most },
    returned: missed,
    timeout: slots.length > 0 ? NONE : timeoutOf(session),
    throttled: slots.length > 0 ? NONE : throttledOf(history, session),
    canceled: canceledOf(history, session),
    released: released.reduce((a, b) => ({ least: a.least + b.least, most: a.most + b.most }), NONE),
  };
}

const isEnd = (call: Call) =>
  call.result === "timeout" && call.reason !== "unknown-token" && call.reason !== "forgotten";
const isExpiry = (call: Call) => call.reason === "deadline" || call.reason === "idle";

function hasBegun({ calls }: Session): boolean {
  return calls.some((call) => call.result === "pending" || call.result === "granted" || isEnd(call));
}

function begunOf(session: Session): Bounds {
  if (hasBegun(session)) return ONE;
  return session.calls.every(({ result }) => result === "overloaded") ? NONE : MAYBE;
}

/** The calls after which a slot may have been granted that no client received. */
function missedGrants({ facts, lines: { endsAt } }: History, { host, calls, slots }: Session): number {
  const { transitMs = Number.POSITIVE_INFINITY } = facts.of(host);
  const awayMs = (facts.of(host).least("collectMs", 0, endsAt) ?? 0) - 2 * transitMs;
  const until = Math.min(...slots.map(({ arrivedAt }) => arrivedAt));
  const before = calls.filter(({ sentAt }) => sentAt <= until);
  const isMissed = (call: Call, at: number) => {
    if (!isAnswered(call)) return true;
    const next = before[at + 1]?.sentAt ?? Number.POSITIVE_INFINITY;
    return call.result === "pending" && next - call.answeredAt >= awayMs;
  };
  return before.filter(isMissed).length;
}

function timeoutOf({ calls, cancels }: Session): Bounds {
  if (calls.some(({ result }) => result === "throttled" || result === "overloaded")) return NONE;
  return cancels.length === 0 && calls.some((call) => isEnd(call) && isExpiry(call)) ? ONE : MAYBE;
}

/** A first call that is throttled again without a session counts again. */
function throttledOf(history: History, session: Session): Bounds {
  const { calls, cancels, host } = session;
  if (history.failedAt(host) === Number.POSITIVE_INFINITY || calls.some(isEnd)) return NONE;
  const throttled = calls.some(({ result }) => result === "throttled");
  const firstCalls = calls.filter(({ token }) => token === undefined).length;
  return { least: throttled && cancels.length === 0 ? 1 : 0, most: hasBegun(session) ? 1 : firstCalls };
}

function canceledOf(history: History, { host, cancels, calls, slots }: Session): Bounds {
  if (cancels.length === 0) return NONE;
  const isOpen = slots.length === 0 && !calls.some((call) => isExpiry(call) || call.result === "throttled");
  const isEffective = cancels.some((call) => call.result === "canceled" && isSettled(history, host, call));
  return isOpen && isEffective && calls.some((call) => call.reason === "canceled") ? ONE : MAYBE;
}

function releasedOf(history: History, slot: Slot): Bounds {
  const { releases, revocations, session } = slot;
  if (releases.length === 0) return NONE;
  const end = leaseEnd(slot);
  const isSure = releases.some(
    (call) => isDone(call) && call.answeredAt < end && isSettled(history, session.host, call),
  );
  return isSure && session.cancels.length === 0 && revocations.length === 0 ? ONE : MAYBE;
}

/** Whether an acknowledged call has certainly taken effect within the history. */
function isSettled({ facts, faults, lines: { endsAt } }: History, host: string, call: Call): boolean {
  const by = call.answeredAt + (facts.of(host).promptMs ?? Number.POSITIVE_INFINITY);
  return by <= endsAt && !faults.isDelayed(call.sentAt, by);
}
