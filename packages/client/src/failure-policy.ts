/**
 * Decides whether work may run without a slot while the service is unreachable.
 *
 * FALLBACK1  Work passes only if the service fails to answer. A busy service is reachable.
 * FALLBACK2  With a share, at most `floor(share × last known limit)` pass at a time per host, for `forMs` after the
 *     first failure.
 * FALLBACK3  Every pass is counted, and given back once.
 *
 * State      enters when                                    acquires
 * reachable  any acquire is answered                        call the service
 * away       an acquire failed `FAILURES_TO_LEAVE` times    pass at once; one per `PROBE_EVERY_MS` calls the service
 */
import type { OnFailure } from "./options.ts";
import { now } from "./timing.ts";

const FAILURES_TO_LEAVE = 3;
const PROBE_EVERY_MS = 1_000;
const DEFAULT_SHARE_MS = 60_000;
/** The number of hosts whose limit is kept. Beyond it, all limits are dropped and learned again. */
const MOST_HOSTS = 1_000;

/** Gives a pass back. */
export type Pass = () => void;

export interface FailurePolicy {
  /** Stores the limit of the host, as the service reports it. */
  learn(hostname: string, limit: number): void;
  answered(): void;
  /** `failures` is the number of failures of this acquire in a row. */
  failed(failures: number): void;
  /**
   * Returns `undefined` if no pass is available. With `probeMs`, before the first call, one caller at a time calls the
   * service for this time.
   */
  pass(hostname: string, probeMs?: number): Pass | undefined;
}

export function failurePolicy(policy: OnFailure, stats: { unguarded: number }): FailurePolicy {
  const limits = new Map<string, number>();
  const passed = new Map<string, number>();
  let failingSince = 0;
  let isAway = false;
  let probeAt = 0;
  const allowed = (hostname: string) => {
    if (policy === "open") return Infinity;
    if (policy === "closed" || now() - failingSince >= (policy.forMs ?? DEFAULT_SHARE_MS)) return 0;
    // 0.29 × 100 is slightly below 29 in binary.
    return Math.floor(policy.share * (limits.get(hostname) ?? 0) + 1e-9);
  };
  return {
    learn(hostname, limit) {
      if (limits.size > MOST_HOSTS) limits.clear();
      limits.set(hostname, limit);
    },
    answered() {
      failingSince = 0;
      isAway = false;
    },
    failed(failures) {
      failingSince ||= now();
      isAway ||= failures >= FAILURES_TO_LEAVE;
      probeAt = now() + PROBE_EVERY_MS;
    },
    pass(hostname, probeMs) {
      const count = () => passed.get(hostname) ?? 0;
      if (!isAway || count() >= allowed(hostname)) return undefined;
      if (probeMs && now() >= probeAt) {
        probeAt = now() + probeMs;
        return undefined;
      }
      passed.set(hostname, count() + 1);
      stats.unguarded++;
      return () => void (count() > 1 ? passed.set(hostname, count() - 1) : passed.delete(hostname));
    },
  };
}
