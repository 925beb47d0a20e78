import type { Settings } from "./setting.ts";

/** The keys of `fairQueue` that hold for a whole instance. Those that hosts may override are in `host-limits.ts`. */
export const QUEUE_SETTINGS = {
  maxWaitMs: {
    type: "number",
    unit: "milliseconds",
    above: 0,
    default: 20_000,
    defaultAt: "zero or less",
    about: "longest wait of a session",
  },
  pollIntervalMs: {
    type: "number",
    unit: "milliseconds",
    min: 1,
    default: 500,
    defaultAt: "zero or less",
    about:
      "time between two tries when the store fails, how long an instance trusts its copy of a breaker's state, and the interval of `maxProbesPerCycle`",
  },
  pollWindowMs: {
    type: "number",
    unit: "milliseconds",
    min: 0,
    default: 6_000,
    defaultAt: "zero or less",
    about: "how long the service holds one poll open",
  },
  sessionIdleSeconds: {
    type: "number",
    unit: "seconds",
    above: 0,
    default: 90,
    defaultAt: "zero or less",
    about: "a session ends if its client does not poll for this time",
  },
  collectMs: {
    type: "number",
    unit: "milliseconds",
    above: 0,
    default: 1_000,
    about: "how long a granted slot waits until its client fetches it",
  },
  globalMaxWaiters: {
    type: "integer",
    unit: "count",
    default: 500,
    isOffAt0: true,
    defaultAt: "zero",
    about: "most waiting sessions of one instance; a new one gets `overloaded`; negative: no limit",
  },
  maxSessionsPerBucketPercent: {
    type: "number",
    unit: "percent",
    above: 0,
    max: 100,
    default: 50,
    about: "most of `globalMaxWaiters` that one bucket may use while other buckets wait too",
  },
  defaultGrantedCleanupDelay: {
    type: "number",
    unit: "seconds",
    min: 0,
    default: 5,
    about:
      "seconds after its grant in which `cancel` gives a slot back; later the slot is in use, and only `release` ends it",
  },
} as const satisfies Settings;

/** The keys of `fairQueue.cleanup`. */
export const CLEANUP_SETTINGS = {
  enabled: { type: "flag", default: true, about: "whether the service regularly deletes expired state from the store" },
  intervalSeconds: {
    type: "number",
    unit: "seconds",
    min: 0,
    default: 1800,
    about: "time between two cleanups; 0: off",
  },
  queueDepthZombieTtlSeconds: {
    type: "number",
    unit: "seconds",
    above: 0,
    default: 20,
    defaultAt: "zero or less",
    about: "no effect any more: waiters of a dead instance are deleted within 5 s",
  },
} as const satisfies Settings;

/** The keys of `fairQueue.weightedScheduler`. */
export const SCHEDULER_SETTINGS = {
  enabled: {
    type: "flag",
    default: false,
    about: "whether weighted round robin chooses the next bucket on hot (crowded) hosts",
  },
  hotPendingFactor: {
    type: "number",
    unit: "factor",
    defaultAt: "zero or less",
    above: 0,
    default: 4,
    about: "a host becomes hot when at least `hotPendingFactor × maxSlotPerHost` sessions wait",
  },
  hotPendingMin: {
    type: "number",
    unit: "count",
    defaultAt: "zero or less",
    min: 0,
    default: 16,
    about: "… and at least this number of sessions wait",
  },
  coldAvgWaitMs: {
    type: "number",
    unit: "milliseconds",
    defaultAt: "zero or less",
    min: 0,
    about: "a hot host becomes cold at this average wait; absent: `pollIntervalMs`",
  },
  hotAvgWaitMs: {
    type: "number",
    unit: "milliseconds",
    defaultAt: "zero or less",
    min: 0,
    about: "… and the average wait is at least this; absent: `3 × pollIntervalMs + minSlotHoldMs`",
  },
  maxProbesPerCycle: {
    type: "integer",
    unit: "count",
    defaultAt: "zero or less",
    min: 1,
    about: "most buckets that a hot host tries without success per `pollIntervalMs`; absent: `maxSlotPerHost`",
  },
  baseWeight: {
    type: "number",
    unit: "factor",
    defaultAt: "zero or less",
    min: 0,
    default: 1,
    about: "weight of a bucket in the round robin: `baseWeight + weightPerWait × waits`",
  },
  weightPerWait: {
    type: "number",
    unit: "factor",
    defaultAt: "zero or less",
    min: 0,
    default: 1,
    about: "see `baseWeight`",
  },
} as const satisfies Settings;
