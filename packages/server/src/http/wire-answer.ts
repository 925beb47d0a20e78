import {
  type AcquireReply,
  type BeginAnswer,
  PROBLEMS,
  type ProblemCode,
  type SessionClaims,
  SLOTS_QUOTA,
} from "@slotkeeper/protocol";
import type { BudgetView, HostQuotas } from "@slotkeeper/queue";
import { isSlotkeeperError } from "slotkeeper";
import type { Headers } from "./exchange.ts";

/**
 * Turns answers of the engine into HTTP answers: sessions become tokens, retry times become whole seconds and a header.
 */
export function wireAnswer(
  answer: BeginAnswer,
  tokenOf: (session: SessionClaims) => string,
): { body: AcquireReply; headers?: Headers } {
  switch (answer.result) {
    case "pending": {
      const { position, waiters, estimatedWaitMs, blockedBy } = answer;
      return {
        body: {
          result: "pending",
          queryToken: tokenOf(answer.session),
          position,
          waiters,
          ...(estimatedWaitMs === undefined ? {} : { estimatedWaitMs }),
          ...(blockedBy === undefined ? {} : { blockedBy }),
        },
      };
    }
    case "granted": {
      const { slotToken, limit, fence, width, charged } = answer;
      // Rounded down: a holder must never assume that it has more time than it has.
      const leaseMs = Math.max(1, Math.floor(answer.leaseMs));
      const body = {
        result: "granted",
        queryToken: tokenOf(answer.session),
        slotToken,
        limit,
        fence,
        leaseMs,
      } as const;
      const more = { ...(width === 1 ? {} : { width }), ...(charged === undefined ? {} : { charged }) };
      return { body: { ...body, ...more } };
    }
    case "throttled": {
      const throttleRetryAfter = wholeSeconds(answer.retryAfterMs);
      const { throttleCode, reason } = answer;
      return {
        body: { result: "throttled", throttleCode, throttleRetryAfter, reason },
        headers: { "Retry-After": throttleRetryAfter },
      };
    }
    case "timeout":
      return { body: { result: "timeout", reason: answer.reason } };
    case "overloaded": {
      const retryAfter = Math.min(30, wholeSeconds(answer.retryAfterMs));
      return { body: { result: "overloaded", retryAfter }, headers: { "Retry-After": retryAfter } };
    }
  }
}

function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** A refused acquire as a problem document. Its code is the code of the error. */
export interface AcquireRefusal {
  readonly code: ProblemCode;
  readonly message: string;
  /** The field of the request that is refused. */
  readonly field?: string;
}

/** Undefined: the error is no refusal. */
export function refusalOf(error: unknown): AcquireRefusal | undefined {
  return isSlotkeeperError(error) && Object.hasOwn(PROBLEMS, error.code) ? (error as AcquireRefusal) : undefined;
}

/** The largest integer of a structured field (RFC 9651). */
const MOST = 999_999_999_999_999;

/**
 * What is left of the limits of a host, as `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11).
 * A budget in shadow mode is no limit. Both take whole numbers, so that quotas are rounded down and times up. `t` is the time until a budget is full again.
 */
export function rateLimitHeaders({ slots, free, budgets }: HostQuotas): Headers {
  let policy = `"${SLOTS_QUOTA}";q=${slots};qu="concurrent-requests"`;
  let left = `"${SLOTS_QUOTA}";r=${free}`;
  for (const budget of budgets) {
    if (budget.isShadow) continue;
    policy += `, "${budget.name}";${quotaOf(budget)}`;
    left += `, "${budget.name}";r=${whole(budget.available)};t=${whole(Math.ceil(budget.fullInMs / 1000))}`;
  }
  return { "RateLimit-Policy": policy, RateLimit: left };
}

/** Rounding down a quota of this many units changes the rate by at most 1 %. So does a window longer by as many seconds. */
const FINE = 100;

/**
 * Both are whole numbers: 5 units per half a second are 10 per second, and 1.5 per second are 3 per 2 seconds. The window
 * is the budget's own if its units are whole, else the next one whose units are; if none is near, the rate is at most 1 %
 * too low. Takes at most `FINE` steps.
 */
function quotaOf({ limit, perMs }: BudgetView): string {
  const unitsIn = (seconds: number) => (limit * seconds * 1000) / perMs;
  const first = Math.ceil(perMs / 1000);
  let seconds = first;
  while (!isWhole(unitsIn(seconds)) && unitsIn(seconds) < FINE && seconds < first + FINE) {
    const next = Math.floor(unitsIn(seconds)) + 1;
    seconds = Math.max(seconds + 1, Math.ceil((next * perMs) / (limit * 1000) - EXACT));
  }
  const units = unitsIn(seconds);
  return `q=${whole(isWhole(units) ? Math.round(units) : units)};w=${whole(seconds)}`;
}

/** The part of a number that rounding may have changed. */
const EXACT = 1e-9;

function isWhole(units: number): boolean {
  return Math.abs(units - Math.round(units)) <= EXACT * units;
}

function whole(value: number): number {
  return Math.min(MOST, Math.max(0, Math.floor(value)));
}
