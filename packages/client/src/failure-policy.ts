/**
 * Whether work may go on without a slot while the service is unreachable.
 *
 * FALLBACK1  Nothing passes unless the service failed to answer: a busy service is reachable.
 * FALLBACK2  With a share, at most `floor(share × last known limit)` pass at once per host, for `forMs` after the first failure.
 * FALLBACK3  Every pass is counted; it is given back once.
 *
 * State      enters when                                    acquires
 * reachable  any acquire is answered                        ask the service
 * away       an acquire failed `FAILURES_TO_LEAVE` times    pass at once; one per `PROBE_EVERY_MS` asks the service
 */
import type { OnFailure } from "./options.ts";

const FAILURES_TO_LEAVE = 3;
const PROBE_EVERY_MS = 1_000;
const DEFAULT_SHARE_MS = 60_000;
/** Of hosts whose limit is remembered; beyond it all are learnt anew. */
const MOST_HOSTS = 1_000;

/** Gives a pass back. */
export type Pass = () => void;

export interface FailurePolicy {
  /** The host's limit, as the service reports it. */
  learn(hostname: string, limit: number): void;
  answered(): void;
  /** `failures`: of this acquire, in a row. */
  failed(failures: number): void;
  /** Undefined: none to be had. With `probeMs`, before the first call: one caller at a time asks the service, for so long. */
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
    if (policy === "closed" || Date.now() - failingSince >= (policy.forMs ?? DEFAULT_SHARE_MS)) return 0;
    // 0.29 × 100 is a hair below 29 in binary.
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
      failingSince ||= Date.now();
      isAway ||= failures >= FAILURES_TO_LEAVE;
      probeAt = Date.now() + PROBE_EVERY_MS;
    },
    pass(hostname, probeMs) {
      const count = () => passed.get(hostname) ?? 0;
      if (!isAway || count() >= allowed(hostname)) return undefined;
      if (probeMs && Date.now() >= probeAt) {
        probeAt = Date.now() + probeMs;
        return undefined;
      }
      passed.set(hostname, count() + 1);
      stats.unguarded++;
      return () => void (count() > 1 ? passed.set(hostname, count() - 1) : passed.delete(hostname));
    },
  };
}
