import type { BUDGET_SETTINGS } from "./budget-settings.ts";
import type { CLASS_SETTINGS } from "./class-settings.ts";
import type { BREAKER_LIMITS, HOST_LIMITS } from "./host-limits.ts";
import type { KEY_SETTINGS } from "./key-settings.ts";
import type { CLEANUP_SETTINGS, QUEUE_SETTINGS, SCHEDULER_SETTINGS } from "./queue-settings.ts";

/**
 * What each key of the tables means, for the pages and the `$schema` file. The texts are not in the tables, because a Worker
 * contains those and shows no texts. A row without a text does not compile.
 */
type About<T> = { readonly [K in keyof T]: string };

export const ABOUT_QUEUE_SETTINGS: About<typeof QUEUE_SETTINGS> = {
  maxWaitMs: "longest wait of a session",
  pollIntervalMs:
    "time between two tries when the store fails, how long an instance trusts its copy of a breaker's state, and the interval of `maxProbesPerCycle`",
  pollWindowMs: "how long the service holds one poll open",
  sessionIdleSeconds: "a session ends if its client does not poll for this time",
  collectMs: "how long a granted slot waits until its client fetches it",
  globalMaxWaiters: "most waiting sessions of one instance; a new one gets `overloaded`; negative: no limit",
  maxSessionsPerBucketPercent: "most of `globalMaxWaiters` that one bucket may use while other buckets wait too",
  defaultGrantedCleanupDelay:
    "seconds after its grant in which `cancel` gives a slot back; later the slot is in use, and only `release` ends it",
};

export const ABOUT_HOST_LIMITS: About<typeof HOST_LIMITS> = {
  minSlotHoldMs: "shortest time from `hitUpstreamAtMs` until a released slot is free again",
  smoothReleaseIntervalMs:
    "shortest time between two released slots of a host becoming free; absent: `minSlotHoldMs / maxSlotPerHost`; ≤ 0: off",
  maxSlotPerHost: "number of slots of a host",
  maxSlotPerIp: "most slots that one bucket may hold at a host; negative: no limit",
  maxWaitersPerIp: "most places of one bucket in the waiter pool of a host; ≤ 0: no limit",
  maxWaitersPerHost: "places in the waiter pool of a host: only waiters in the pool compete for slots; ≤ 0: no limit",
  zombieTimeoutSeconds:
    "length of a lease: the service takes a slot back if it is neither renewed nor released for this time; also `leaseSeconds`",
  maxHoldSeconds: "longest time that one slot can be held, however often it is renewed",
  ipCooldownSeconds: "cooldown: after a release, the bucket gets no new slot of this host for this time",
  order:
    "which eligible bucket gets the next slot, unless the weighted scheduler decides: by slot time, the oldest waiter, or by what was charged to a budget",
};

export const ABOUT_BREAKER_LIMITS: About<typeof BREAKER_LIMITS> = {
  windowSeconds: "length of the observation window in which answers are counted",
  protectHttpCodes: "status codes that count as errors; 200–399 count as successes; all others are ignored",
  errorRatioPercent: "the breaker opens at this percentage of errors",
  minSamples: "fewest answers for `errorRatioPercent`; ≤ 0: that rule is off",
  fastErrorRatioPercent: "the breaker also opens at this higher percentage, after fewer answers",
  fastMinSamples: "fewest answers for `fastErrorRatioPercent`; ≤ 0: that rule is off",
  consecutiveErrors: "the breaker opens after this number of errors in a row; ≤ 0: that rule is off",
  openSeconds: "how long the breaker stays open; after that it is half open, and an hour after it opened it is closed",
  halfOpenProbes: "trial requests that a half-open breaker lets through at a time",
};

export const ABOUT_BUDGET_SETTINGS: About<typeof BUDGET_SETTINGS> = {
  limit: "units that flow in per `perSeconds`",
  perSeconds: "time in which `limit` units flow in",
  burst: "most units that the budget holds, and so the largest cost; absent: `limit`",
  default: "cost of a request that does not name it",
  shadow: "`true`: charged and counted, but no request waits for it or is refused",
};

const ABOUT_KEY_LIMITS = {
  slots: "most slots of all requests with the same value together; absent: no limit",
  budgets: ABOUT_BUDGET_SETTINGS,
};

export const ABOUT_KEY_SETTINGS = {
  ...ABOUT_KEY_LIMITS,
  required: "`true`: a request without the key is refused",
  shadow: "`true`: counted, but no request waits for it or is refused; also for its budgets, unless they say otherwise",
  for: ABOUT_KEY_LIMITS,
} satisfies About<typeof KEY_SETTINGS> & { readonly [key: string]: unknown };

export const ABOUT_CLASS_SETTINGS: About<typeof CLASS_SETTINGS> = {
  weight: "share of the class compared with other classes",
  floor: "share that the class has at least while slots are short",
  ceiling: "most slots of the class; absent: no limit",
};

export const ABOUT_CLEANUP_SETTINGS: About<typeof CLEANUP_SETTINGS> = {
  enabled: "whether the service regularly deletes expired state from the store",
  intervalSeconds: "time between two cleanups; 0: off",
  queueDepthZombieTtlSeconds: "no effect any more: waiters of a dead instance are deleted within 5 s",
};

export const ABOUT_SCHEDULER_SETTINGS: About<typeof SCHEDULER_SETTINGS> = {
  enabled: "whether weighted round robin chooses the next bucket on hot (crowded) hosts",
  hotPendingFactor: "a host becomes hot when at least `hotPendingFactor × maxSlotPerHost` sessions wait",
  hotPendingMin: "… and at least this number of sessions wait",
  coldAvgWaitMs: "a hot host becomes cold at this average wait; absent: `pollIntervalMs`",
  hotAvgWaitMs: "… and the average wait is at least this; absent: `3 × pollIntervalMs + minSlotHoldMs`",
  maxProbesPerCycle:
    "most buckets that a hot host tries without success per `pollIntervalMs`; absent: `maxSlotPerHost`",
  baseWeight: "weight of a bucket in the round robin: `baseWeight + weightPerWait × waits`",
  weightPerWait: "see `baseWeight`",
};
