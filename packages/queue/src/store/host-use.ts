import { isPristine, viewBreaker } from "../book/breaker.ts";
import { isPausedBy } from "../book/head.ts";
import type { LimitsRecord } from "../book/records.ts";
import { endKeptUntil, isStart } from "../book/session-ends.ts";
import { type BreakerPolicy, DEFAULT_BREAKER } from "../host-policy.ts";
import type { StoredHost } from "./stored-host.ts";

function limitsOf(stored: StoredHost): LimitsRecord | undefined {
  for (const record of stored.values("limits")) return record;
  return undefined;
}

/** Before the first commit with limits, the defaults apply. */
function breakerPolicyOf(stored: StoredHost): BreakerPolicy {
  return limitsOf(stored)?.policy.breaker ?? DEFAULT_BREAKER;
}

export function isPaused(stored: StoredHost): boolean {
  return isPausedBy(limitsOf(stored));
}

/** Half open counts as open. */
export function isBreakerOpen(stored: StoredHost, now: number): boolean {
  return viewBreaker(stored.head.breaker, now).phase !== "closed";
}

/** Spacing would delay the next release. */
export function isSpaced(stored: StoredHost, now: number): boolean {
  const smoothMs = limitsOf(stored)?.policy.smoothMs ?? 0;
  return smoothMs > 0 && (stored.head.lastEndAt ?? 0) + smoothMs > now;
}

/** The host holds nothing that matters, and had no commit for `idleMs`. */
export function isLeftOver(stored: StoredHost, now: number, idleMs: number): boolean {
  const { now: usedAt, breaker, forgottenAt, fullAt = 0 } = stored.head;
  if (usedAt + idleMs > now || fullAt > now || stored.inFlight(now) > 0 || stored.waiting(now) > 0) return false;
  for (const { until } of stored.values("cooldown")) if (until > now) return false;
  for (const end of stored.values("ending")) if (endKeptUntil(end) > now) return false;
  // A session must not get a second slot after its lease expired, even if no commit has ended the lease yet.
  for (const { keepUntil, endsAt } of stored.values("lease"))
    if (endKeptUntil({ keepUntil, endedAt: endsAt }) > now) return false;
  if (limitsOf(stored)?.live !== undefined || isSpaced(stored, now) || !isStart(forgottenAt, now)) return false;
  return isPristine(breaker, now, breakerPolicyOf(stored));
}
