import {
  type BlockedBy,
  classOf,
  type DemandDifference,
  type PollAnswer,
  type SessionClaims,
  widthOf,
} from "@slotkeeper/protocol";
import { SlotkeeperError } from "slotkeeper";
import type { Book } from "../book/book.ts";
import { phaseFor } from "../book/breaker.ts";
import { chargedOf, missingBudgets } from "../book/budgets.ts";
import { roomOf } from "../book/classes.ts";
import { lineOfWaiter } from "../book/line.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { EndOfSession, Standing } from "../book/standing.ts";
import type { Impossible } from "../inputs.ts";
import type { Entry } from "./entry.ts";
import type { Host } from "./host.ts";

/** The answer to the client of a session, from its standing in the committed book. */
export function answerOf(standing: Standing, entry: Entry, now: number): PollAnswer {
  switch (standing.kind) {
    case "held": {
      const { key: slotToken, fence, endsAt, width, charge } = standing.lease;
      const { slots: limit } = entry.host.book.head;
      return {
        result: "granted",
        session: entry.claims,
        slotToken,
        limit,
        fence,
        leaseMs: endsAt - now,
        width,
        charged: chargedOf(charge),
      };
    }
    case "ended":
      return endAnswer(standing.record, now);
    case "waiting":
    case "unknown":
      return now < entry.claims.deadlineAt ? pendingAnswer(entry, now) : DEADLINE;
  }
}

export const DEADLINE: PollAnswer = { result: "timeout", reason: "deadline" };
/** The session has ended, and the book no longer has its end (END3). */
export const FORGOTTEN: PollAnswer = { result: "timeout", reason: "forgotten" };

/** Repeats the recorded end. A session that timed out before its deadline was idle. */
export function endAnswer({ end, keepUntil, endedAt, code, retryAt }: EndOfSession, now: number): PollAnswer {
  if (end === "throttled") return throttledAnswer(code ?? 0, Math.max(0, (retryAt ?? 0) - now));
  if (end !== "timeout") return { result: "timeout", reason: end };
  return endedAt !== undefined && endedAt < keepUntil ? { result: "timeout", reason: "idle" } : DEADLINE;
}

export function throttledAnswer(code: number, retryAfterMs: number): PollAnswer {
  const reason = code === 0 ? "an operator opened the circuit breaker" : `the host answered ${code} too often`;
  return { result: "throttled", throttleCode: code, retryAfterMs, reason };
}

/** `isStoreLate`: the store has not answered for so long that the client gets the answer of an outage. */
export function pendingAnswer(entry: Entry, now: number, isStoreLate = false): PollAnswer {
  const { host, id } = entry;
  if (!host.cache.isOpen && host.book.get("waiter", id) !== undefined) entry.wasPendingAt(host.cache.committedAt);
  const { position, waiters } = host.placeOf(id, now);
  return {
    result: "pending",
    session: entry.claims,
    position,
    waiters,
    estimatedWaitMs: estimatedWait(host, position, entry),
    blockedBy: isStoreLate ? "store" : blockedBy(host, id, now),
  };
}

/**
 * Estimates the wait from the recent rate of grants and the refill of its own budgets. Undefined: nothing is known yet, or
 * other requests with the same key decide.
 */
export function estimatedWait(
  { grantIntervalMs, book }: Host,
  position: number,
  { claims }: Entry,
): number | undefined {
  const held = book.limits === undefined ? undefined : book.index.heldAt(claims.id);
  if (held !== undefined && held.payableAt === undefined) return undefined;
  if (book.limits !== undefined && isHeldByClass(book, { ...claims, key: claims.id })) return undefined;
  const refillMs = book.limits === undefined ? 0 : refilledAt(book, claims) - book.now;
  if (grantIntervalMs === undefined) return refillMs > 0 ? Math.round(refillMs) : undefined;
  return Math.round(Math.max(position * grantIntervalMs, refillMs));
}

/** Whether the ceiling of its class has no room for it, or for one that is ahead of it. */
function isHeldByClass(book: Book, { key, demand }: Pick<WaiterRecord, "key" | "demand">): boolean {
  const one = book.head.classes === undefined ? undefined : book.index.ofClass(classOf(demand));
  if (one === undefined) return false;
  const isBehind = book.order
    .overCeiling(book)
    .some(({ waiter, isFirst }) => isFirst && classOf(waiter.demand) === one.name && waiter.key !== key);
  return isBehind || widthOf(demand) > roomOf(book, one);
}

/** When all budgets can pay for the session. */
function refilledAt(book: Book, claims: SessionClaims): number {
  return Math.max(book.now, ...missingBudgets(book, claims).map(({ at }) => at));
}

/** What a pending session waits for. */
export function blockedBy(host: Host, session: string, now: number): BlockedBy | undefined {
  if (host.isStoreDown) return "store";
  const { book } = host;
  const waiter = book.get("waiter", session);
  if (waiter === undefined || book.get("offer", session) !== undefined) return undefined;
  if (book.isPaused) return "paused";
  const held = book.index.heldAt(session);
  if (held !== undefined) return `key:${held.key}`;
  const line = book.index.line(lineOfWaiter(waiter));
  if (line?.obstacle !== undefined) return line.obstacle;
  if (isHeldByClass(book, waiter)) return "class";
  if (!waiter.isInside) return "waiter-pool";
  if (phaseFor(host.breaker(now), waiter.openMs) === "half-open") return "breaker";
  const { first } = book.head;
  if (first !== undefined && first !== session) return "behind-first";
  const [missing] = first === session ? missingBudgets(book, waiter).toSorted((a, b) => b.at - a.at) : [];
  if (missing !== undefined) return `budget:${missing.name}`;
  return book.free > 0 && widthOf(waiter.demand) > book.free ? "width" : "host-limit";
}

/** A refusal names no more than these; budgets can have any number of names, in the overrides of keys. */
const MOST_NAMES = 20;

/** The limits of the host can never allow the request, so it does not wait. */
export class ImpossibleRequestError extends SlotkeeperError {
  override readonly name = "ImpossibleRequestError";
  override readonly code = "IMPOSSIBLE";
  override readonly retryable = false;
  /** The field of the request. */
  readonly field: string;

  constructor({ field, value, most, limit, known = [] }: Impossible) {
    const expected = most === undefined ? (value === undefined ? "present" : "absent") : `at most ${most}`;
    super(`Expected \`${field}\` to be ${expected}, ${limit}${namesIn(known)}, got ${value ?? "none"}`);
    this.field = field;
  }
}

function namesIn(known: readonly string[]): string {
  if (known.length === 0) return "";
  const shown = known.slice(0, MOST_NAMES).map((name) => `\`${name}\``);
  const others = known.length > MOST_NAMES ? [`${known.length - MOST_NAMES} more`] : [];
  return ` (it has ${[...shown, ...others].join(", ")})`;
}

/** The session of this id exists with other demands. */
export class DemandMismatchError extends SlotkeeperError {
  override readonly name = "DemandMismatchError";
  override readonly code = "DEMAND_MISMATCH";
  override readonly retryable = false;

  /** The field of the request. */
  readonly field: string;

  constructor({ field, held, given }: DemandDifference) {
    const expected = held === undefined ? "absent" : held;
    super(`Expected \`${field}\` to be ${expected}, as in the session of this \`requestId\`, got ${given ?? "none"}`);
    this.field = field;
  }
}
