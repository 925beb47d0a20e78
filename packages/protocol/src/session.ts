import type { Costs, Demand } from "./demand.ts";

/** The answer to a caller. The wire adds `queryToken` and rounds durations to seconds; the meaning is the same. */

/** The identity of a session: the content of a signed `queryToken`, with which any instance can continue the session. */
export interface SessionClaims {
  readonly id: string;
  /** The host's key: `hostnameHash`, else the hash of `hostname`. */
  readonly host: string;
  readonly bucket: string;
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  /** The plain name, where the caller gave one: it selects the host's overrides. */
  readonly hostname?: string;
  /** `throttleTimeWindowSeconds` of the first call: how long an open breaker counts as open for this session. */
  readonly throttleWindowMs?: number;
  /** Slots of a named semaphore, as the first call asked: an instance that takes the session over must not make it wider. */
  readonly limit?: number;
  /** A later time than `arrivedAt` at which the session had not ended. Absent in the first token. */
  readonly pendingAt?: number;
  /** What the session asks for. Absent: one slot, and nothing special. */
  readonly demand?: Demand;
}

const BLOCKED_BY = {
  "host-limit": "all slots in use",
  "ip-limit": "bucket at its limit",
  cooldown: "bucket must wait",
  class: "class at its ceiling",
  width: "too few slots free",
  "behind-first": "behind a larger request",
  "waiter-pool": "waiter pool full",
  breaker: "breaker open",
  paused: "host paused",
  store: "store does not answer",
} as const;

/** What stands between a pending session and its slot. */
export type BlockedBy = keyof typeof BLOCKED_BY | `budget:${string}` | `key:${string}`;
/** All of them. */
export const BLOCKED_BY_NAMES = Object.keys(BLOCKED_BY);

/**
 * `blockedBy` in a few words, as `slotkeeper top` and the dashboard show it. Undefined: not one that this version knows.
 *
 * @example
 * ```ts
 * import { blockedByWords } from "@slotkeeper/protocol";
 *
 * console.log(blockedByWords("host-limit")); // all slots in use
 * ```
 */
export function blockedByWords(blockedBy: string | undefined): string | undefined {
  if (blockedBy?.startsWith("budget:") === true) return `${blockedBy.slice("budget:".length)} used up`;
  if (blockedBy?.startsWith("key:") === true) return `${blockedBy.slice("key:".length)} at its limit`;
  return (BLOCKED_BY as { readonly [cause: string]: string })[blockedBy ?? ""];
}

/** The session waits: poll again. */
export interface PendingAnswer {
  readonly result: "pending";
  readonly session: SessionClaims;
  /** 1 is next: the pool in its order, then those outside it. */
  readonly position: number;
  /** Sessions waiting for this host at this instance. */
  readonly waiters: number;
  readonly estimatedWaitMs: number | undefined;
  readonly blockedBy: BlockedBy | undefined;
}

/** The session has a slot. */
export interface GrantedAnswer {
  readonly result: "granted";
  readonly session: SessionClaims;
  readonly slotToken: string;
  /** The host's slots. */
  readonly limit: number;
  /** Only grows, per host: what a guarded resource compares to refuse the holder of a lost lease. */
  readonly fence: number;
  readonly leaseMs: number;
  /** How many slots it has. */
  readonly width: number;
  /** What was charged to budgets. Absent: the host has none. */
  readonly charged?: Costs | undefined;
}

/** The host's circuit breaker is open: the session has ended. */
export interface ThrottledAnswer {
  readonly result: "throttled";
  /** The status code that opened the breaker; 0 when an operator did. */
  readonly throttleCode: number;
  readonly retryAfterMs: number;
  readonly reason: string;
}

/** The session has ended without a slot. */
export interface TimeoutAnswer {
  readonly result: "timeout";
  /** `deadline`, `idle`, `canceled`, `released` (the slot was granted and is over), `impossible` (limits changed, and can never allow the request), `forgotten` (it ended, and how is not known any more). */
  readonly reason: string;
}

/** Too many sessions wait: the call was refused, and there is no session. */
export interface OverloadedAnswer {
  readonly result: "overloaded";
  readonly retryAfterMs: number;
}

/** Any answer to a poll. */
export type PollAnswer = PendingAnswer | GrantedAnswer | ThrottledAnswer | TimeoutAnswer;
/** Any answer to a first call. */
export type BeginAnswer = PollAnswer | OverloadedAnswer;

/**
 * `gone`: this instance does not have the session, and sends the cancellation to the store; `noop`: it had already
 * ended, or its slot was granted too long ago.
 */
export type CancelResult = "canceled" | "gone" | "noop";
