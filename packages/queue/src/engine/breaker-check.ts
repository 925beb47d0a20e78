import type { BreakerView } from "../store/slot-store.ts";
import type { HostQueue } from "./host-queue.ts";

/**
 * Layer 1 of the funnel, for a caller who is not a session yet: what the store said of the breaker within a poll interval
 * is believed. Older news is no news: the caller becomes a session, and its first try at the store asks. Undefined:
 * nothing is known against it.
 */
export function knownThrottle(
  host: HostQueue,
  openMs: number,
  now: number,
  believedMs: number,
): { readonly code: number; readonly retryInMs: number } | undefined {
  if (host.breaker.phase === "closed" || now - host.breakerAt >= believedMs) return undefined;
  const openForMs = host.breaker.openForMs + now - host.breakerAt;
  return openForMs < openMs ? { code: host.breaker.code, retryInMs: openMs - openForMs } : undefined;
}

/** What was heard of the breaker, moved on to now. */
export function breakerNow({ breaker, breakerAt }: HostQueue, now: number): BreakerView {
  return breaker.phase === "closed" ? breaker : { ...breaker, openForMs: breaker.openForMs + now - breakerAt };
}
