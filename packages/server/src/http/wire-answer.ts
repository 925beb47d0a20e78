import {
  type AcquireReply,
  type BeginAnswer,
  PROBLEMS,
  type ProblemCode,
  type SessionClaims,
} from "@slotkeeper/protocol";
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
