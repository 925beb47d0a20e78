import { type BreakerPolicy, DEFAULT_BREAKER } from "../host-policy.ts";
import { isPristine, viewBreaker } from "./breaker.ts";
import { isPausedBy } from "./head.ts";
import type { Head, LimitsRecord, RecordKind, RecordOf } from "./records.ts";
import { endKeptUntil, endNeededUntil, isStart } from "./standing.ts";

/** A host as its records show it: a book, or a host in a store. */
export interface HostState {
  readonly head: Head;
  all<K extends RecordKind>(kind: K): Iterable<RecordOf<K>>;
}

function limitsOf(host: HostState): LimitsRecord | undefined {
  for (const record of host.all("limits")) return record;
  return undefined;
}

/** Before the first commit with limits, the defaults apply. */
function breakerPolicyOf(host: HostState): BreakerPolicy {
  return limitsOf(host)?.policy.breaker ?? DEFAULT_BREAKER;
}

export function isPaused(host: HostState): boolean {
  return isPausedBy(limitsOf(host));
}

/** Half open counts as open. */
export function isBreakerOpen({ head }: HostState, now: number): boolean {
  return viewBreaker(head.breaker, now).phase !== "closed";
}

/** Spacing would delay the next release. */
export function isSpaced(host: HostState, now: number): boolean {
  const smoothMs = limitsOf(host)?.policy.smoothMs ?? 0;
  return smoothMs > 0 && (host.head.lastEndAt ?? 0) + smoothMs > now;
}

/**
 * Whether the host can be forgotten without a change of any answer or count. Only fairness is affected: a line that was
 * ahead of the meter starts again at the meter. This is the only rule: decisions and stores read it. SQL has the same one
 * (`slotkeeper_is_unused`), and the conformance suite of stores compares them.
 *
 * Sessions are kept for some time after their deadline (`standing.ts`). Their instance may have lost the store, and
 * ends them when it is back. If the book did not know them then, it would count them as begun a second time.
 */
export function mayForget(host: HostState, now: number): boolean {
  const { breaker, forgottenAt, fullAt = 0 } = host.head;
  if (fullAt > now || limitsOf(host)?.live !== undefined || isSpaced(host, now) || !isStart(forgottenAt, now))
    return false;
  for (const { lapsesAt } of host.all("offer")) if (lapsesAt > now) return false;
  for (const { deadlineAt } of host.all("waiter")) if (endNeededUntil(deadlineAt) > now) return false;
  for (const { until } of host.all("cooldown")) if (until > now) return false;
  for (const end of host.all("ending")) if (endKeptUntil(end) > now) return false;
  // A session must not get a second slot after its lease expired, even if no commit has ended the lease yet.
  for (const { keepUntil, endsAt } of host.all("lease"))
    if (Math.max(endsAt, endKeptUntil({ keepUntil, endedAt: endsAt })) > now) return false;
  return isPristine(breaker, now, breakerPolicyOf(host));
}
