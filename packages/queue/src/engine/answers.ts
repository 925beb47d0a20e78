import type { BlockedBy, PollAnswer } from "@slotkeeper/protocol";
import { phaseFor } from "../book/breaker.ts";
import type { Host } from "./host.ts";
import type { Session } from "./session.ts";

/** The answer to a session's client, from the session's state and the host's book. */
export function answerOf(session: Session, now: number): PollAnswer {
  const { state, claims } = session;
  switch (state.kind) {
    case "pending":
    // Another instance has the session. The client polls again and then gets the current state from the book.
    case "moved":
      return pendingAnswer(session, now);
    case "granted": {
      const leaseMs = state.leaseUntil - now;
      if (leaseMs <= 0) return { result: "timeout", reason: "released" };
      const { slotToken, fence } = state;
      const { slots: limit } = session.host.book.head;
      return { result: "granted", session: claims, slotToken, limit, fence, leaseMs };
    }
    case "throttled":
      return throttledAnswer(state.code, Math.max(0, state.retryAt - now));
    case "timeout":
      return { result: "timeout", reason: state.reason };
    case "canceled":
      return { result: "timeout", reason: "canceled" };
  }
}

export function throttledAnswer(code: number, retryAfterMs: number): PollAnswer {
  const reason = code === 0 ? "an operator opened the circuit breaker" : `the host answered ${code} too often`;
  return { result: "throttled", throttleCode: code, retryAfterMs, reason };
}

function pendingAnswer(session: Session, now: number): PollAnswer {
  const { host } = session;
  const { id } = session.claims;
  const isKnown = host.book.limits !== undefined;
  if (host.book.get("waiter", id) !== undefined) session.wasPendingAt(host.cache.committedAt);
  const position = isKnown ? host.positionOf(id, now) : 1;
  return {
    result: "pending",
    session: session.claims,
    position,
    waiters: Math.max(1, host.book.size("waiter")),
    estimatedWaitMs: estimatedWait(host, position),
    blockedBy: blockedBy(session, now),
  };
}

/** Estimates the wait from the recent rate of grants. Undefined: the host has no rate yet. */
export function estimatedWait({ grantIntervalMs }: Host, position: number): number | undefined {
  return grantIntervalMs === undefined ? undefined : Math.round(position * grantIntervalMs);
}

/** What a pending session waits for. */
export function blockedBy({ host, claims, openMs }: Session, now: number): BlockedBy | undefined {
  if (host.isStoreDown) return "store";
  const { book } = host;
  const waiter = book.get("waiter", claims.id);
  if (waiter === undefined || book.get("offer", claims.id) !== undefined) return undefined;
  const bucket = book.index.bucket(waiter.bucket);
  if (bucket?.obstacle !== undefined) return bucket.obstacle;
  if (!waiter.isInside) return "waiter-pool";
  if (phaseFor(host.breaker(now), openMs) === "half-open") return "breaker";
  return "host-limit";
}
