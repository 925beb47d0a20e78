import type { Settings } from "./setting.ts";

/** The keys of `fairQueue` that hold for a whole instance. Those that hosts may override are in `host-limits.ts`. */
export const QUEUE_SETTINGS = {
  maxWaitMs: { type: "number", unit: "milliseconds", above: 0, default: 20_000, defaultAt: "zero or less" },
  pollIntervalMs: { type: "number", unit: "milliseconds", min: 1, default: 500, defaultAt: "zero or less" },
  pollWindowMs: { type: "number", unit: "milliseconds", min: 0, default: 6_000, defaultAt: "zero or less" },
  sessionIdleSeconds: { type: "number", unit: "seconds", above: 0, default: 90, defaultAt: "zero or less" },
  collectMs: { type: "number", unit: "milliseconds", above: 0, default: 1_000 },
  globalMaxWaiters: { type: "integer", unit: "count", default: 500, isOffAt0: true, defaultAt: "zero" },
  maxSessionsPerBucketPercent: { type: "number", unit: "percent", above: 0, max: 100, default: 50 },
  defaultGrantedCleanupDelay: { type: "number", unit: "seconds", min: 0, default: 5 },
} as const satisfies Settings;

/** The keys of `fairQueue.cleanup`. */
export const CLEANUP_SETTINGS = {
  enabled: { type: "flag", default: true },
  intervalSeconds: { type: "number", unit: "seconds", min: 0, default: 1800 },
  queueDepthZombieTtlSeconds: { type: "number", unit: "seconds", above: 0, default: 20, defaultAt: "zero or less" },
} as const satisfies Settings;

/** The keys of `fairQueue.weightedScheduler`. */
export const SCHEDULER_SETTINGS = {
  enabled: { type: "flag", default: false },
  hotPendingFactor: { type: "number", unit: "factor", defaultAt: "zero or less", above: 0, default: 4 },
  hotPendingMin: { type: "number", unit: "count", defaultAt: "zero or less", min: 0, default: 16 },
  coldAvgWaitMs: { type: "number", unit: "milliseconds", defaultAt: "zero or less", min: 0 },
  hotAvgWaitMs: { type: "number", unit: "milliseconds", defaultAt: "zero or less", min: 0 },
  maxProbesPerCycle: { type: "integer", unit: "count", defaultAt: "zero or less", min: 1 },
  baseWeight: { type: "number", unit: "factor", defaultAt: "zero or less", min: 0, default: 1 },
  weightPerWait: { type: "number", unit: "factor", defaultAt: "zero or less", min: 0, default: 1 },
} as const satisfies Settings;
