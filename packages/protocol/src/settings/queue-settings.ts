import type { Settings } from "./setting.ts";

/** The keys of `fairQueue` that hold for a whole instance. Those that hosts may override are in `host-limits.ts`. */
export const QUEUE_SETTINGS = {
  maxWaitMs: { type: "number", unit: "milliseconds", above: 0, default: 20_000, about: "a session's whole wait" },
  pollIntervalMs: {
    type: "number",
    unit: "milliseconds",
    min: 1,
    default: 500,
    about: "fallback cycle when no push comes",
  },
  pollWindowMs: {
    type: "number",
    unit: "milliseconds",
    min: 0,
    default: 6_000,
    about: "how long one HTTP poll is held",
  },
  sessionIdleSeconds: {
    type: "number",
    unit: "seconds",
    above: 0,
    default: 90,
    about: "no poll for this long: the session is gone",
  },
  collectMs: {
    type: "number",
    unit: "milliseconds",
    above: 0,
    default: 1_000,
    about: "how long a grant waits to be fetched",
  },
  globalMaxWaiters: {
    type: "integer",
    unit: "count",
    default: 500,
    isOffAt0: true,
    about: "sessions per process; ≤ 0 off",
  },
  maxSessionsPerBucketPercent: {
    type: "number",
    unit: "percent",
    above: 0,
    max: 100,
    default: 50,
    about: "the part of `globalMaxWaiters` that one bucket may take while others ask",
  },
  defaultGrantedCleanupDelay: {
    type: "number",
    unit: "seconds",
    min: 0,
    default: 5,
    about: "seconds a fetched grant stays repeatable and cancellable",
  },
} as const satisfies Settings;

/** The keys of `fairQueue.cleanup`. */
export const CLEANUP_SETTINGS = {
  enabled: { type: "flag", default: true, about: "whether leftovers are swept at intervals" },
  intervalSeconds: { type: "number", unit: "seconds", above: 0, default: 1800, about: "between two sweeps" },
  queueDepthZombieTtlSeconds: {
    type: "number",
    unit: "seconds",
    above: 0,
    default: 20,
    about: "not used any more: waiters of a dead instance are deleted within 5 s",
  },
} as const satisfies Settings;

/** The keys of `fairQueue.weightedScheduler`. */
export const SCHEDULER_SETTINGS = {
  enabled: { type: "flag", default: false, about: "weighted round robin on hot hosts" },
  hotPendingFactor: {
    type: "number",
    unit: "factor",
    above: 0,
    default: 4,
    about: "hot from `factor × maxSlotPerHost` waiting",
  },
  hotPendingMin: { type: "number", unit: "count", min: 0, default: 16, about: "… and at least this number" },
  coldAvgWaitMs: {
    type: "number",
    unit: "milliseconds",
    min: 0,
    about: "cold at this average wait; absent: `pollIntervalMs`",
  },
  hotAvgWaitMs: {
    type: "number",
    unit: "milliseconds",
    min: 0,
    about: "hot from this average wait; absent: `3 × pollIntervalMs + minSlotHoldMs`",
  },
  maxProbesPerCycle: {
    type: "integer",
    unit: "count",
    min: 1,
    about: "failed tries per interval on a hot host; absent: `maxSlotPerHost`",
  },
  baseWeight: {
    type: "number",
    unit: "factor",
    min: 0,
    default: 1,
    about: "`weight = baseWeight + weightPerWait × waits`",
  },
  weightPerWait: { type: "number", unit: "factor", min: 0, default: 1, about: "see `baseWeight`" },
} as const satisfies Settings;
