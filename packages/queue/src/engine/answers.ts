import type { BlockedBy, PollAnswer } from "@slotkeeper/protocol";
import { phaseFor } from "../store/breaker.ts";
import { breakerNow } from "./breaker-check.ts";
import type { EngineContext } from "./context.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Session } from "./session.ts";

/** What a session's client is told, by the session's state. */
export function answerOf(session: Session, engine: EngineContext): PollAnswer {
  const now = engine.clock.now();
  const { state, claims } = session;
  switch (state.kind) {
    case "pending":
      return pendingAnswer(session, engine, now);
    case "granted": {
      const leaseMs = state.leaseUntil - now;
      if (leaseMs <= 0) return { result: "timeout", reason: "released" };
      return { result: "granted", session: claims, slotToken: state.slot.slotToken, fence: state.slot.fence, leaseMs };
    }
    case "throttled":
      return throttledAnswer(state.code, Math.max(0, state.retryAt - now));
    case "timeout":
    case "canceled":
    default:
      return { result: "timeout", reason: state.kind === "timeout" ? state.reason : "canceled" };
  }
}

export function throttledAnswer(code: number, retryAfterMs: number): PollAnswer {
  const reason = code === 0 ? "an operator opened the breaker" : `the host answered ${code} too often`;
  return { result: "throttled", throttleCode: code, retryAfterMs, reason };
}

function pendingAnswer(session: Session, engine: EngineContext, now: number): PollAnswer {
  const { host, claims } = session;
  const position = host.positions.of(session, now, engine.options().pollIntervalMs);
  return {
    result: "pending",
    session: claims,
    position,
    waiters: host.pending,
    estimatedWaitMs: estimatedWait(host, position),
    blockedBy: blockedBy(session, now),
  };
}

/** By how fast sessions of this host stopped waiting lately; undefined: none has yet. */
export function estimatedWait({ drain: { intervalMs } }: HostQueue, position: number): number | undefined {
  return intervalMs === undefined ? undefined : Math.round(position * intervalMs);
}

/** What stands between a pending session and its slot, as far as is known here. */
export function blockedBy(session: Session, now: number): BlockedBy | undefined {
  const { host, bucket } = session;
  if (host.isStoreDown) return "store";
  if (session.place === "outside") return "waiter-pool";
  if (bucket.isDenied) return bucket.denyReason;
  const isHalfOpen = phaseFor(breakerNow(host, now), session.openMs) === "half-open";
  if (session.blockedBy === "breaker") return isHalfOpen ? "breaker" : "host-limit";
  return session.blockedBy === "ip-limit" || session.blockedBy === "cooldown" ? "host-limit" : session.blockedBy;
}
