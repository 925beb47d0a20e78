import type { FairQueueConfig, HostConfig, OrderName } from "@slotkeeper/protocol";
import { checkConfig } from "./options-check.ts";

/**
 * The engine's settings with every default filled in, durations in milliseconds. `resolveOptions` is pure: the same
 * configuration gives the same options, and a configuration with a problem gives none, but lists all of them.
 */

export interface BreakerPolicy {
  readonly windowMs: number;
  readonly protectHttpCodes: readonly number[];
  readonly errorRatioPercent: number;
  readonly minSamples: number;
  readonly fastErrorRatioPercent: number;
  readonly fastMinSamples: number;
  readonly consecutiveErrors: number;
  readonly openMs: number;
  readonly halfOpenProbes: number;
}

export interface SchedulerOptions {
  readonly isEnabled: boolean;
  readonly hotPendingFactor: number;
  readonly hotPendingMin: number;
  readonly coldAvgWaitMs: number | undefined;
  readonly hotAvgWaitMs: number | undefined;
  readonly maxProbesPerCycle: number | undefined;
  readonly baseWeight: number;
  readonly weightPerWait: number;
}

export interface QueueOptions {
  readonly maxWaitMs: number;
  readonly pollIntervalMs: number;
  readonly pollWindowMs: number;
  readonly idleMs: number;
  readonly collectMs: number;
  readonly maxSessions: number;
  readonly maxSessionsPerBucket: number;
  readonly grantedKeepMs: number;
  readonly waiterRowTtlMs: number;
  readonly scheduler: SchedulerOptions;
  /** What every host has, before its overrides. */
  readonly defaults: HostConfig;
  readonly hosts: Readonly<Record<string, HostConfig>>;
}

const DEFAULTS = {
  maxWaitMs: 20_000,
  pollIntervalMs: 500,
  pollWindowMs: 6_000,
  sessionIdleSeconds: 90,
  collectMs: 1_000,
  globalMaxWaiters: 500,
  maxSessionsPerBucketPercent: 50,
  defaultGrantedCleanupDelay: 5,
} as const satisfies FairQueueConfig;

export const HOST_DEFAULTS = {
  minSlotHoldMs: 0,
  maxSlotPerHost: 5,
  maxSlotPerIp: 1,
  maxWaitersPerIp: 0,
  maxWaitersPerHost: 50,
  zombieTimeoutSeconds: 30,
  maxHoldSeconds: 3600,
  ipCooldownSeconds: 0,
  order: "slot-seconds" as OrderName,
} as const satisfies HostConfig;

export const BREAKER_DEFAULTS = {
  windowSeconds: 60,
  protectHttpCodes: [429, 500, 502, 503, 504],
  errorRatioPercent: 20,
  minSamples: 8,
  fastErrorRatioPercent: 50,
  fastMinSamples: 4,
  consecutiveErrors: 4,
  openSeconds: 60,
  halfOpenProbes: 1,
} as const;

const SCHEDULER_DEFAULTS = {
  enabled: false,
  hotPendingFactor: 4,
  hotPendingMin: 16,
  baseWeight: 1,
  weightPerWait: 1,
} as const;

/** A limit of zero or less means none. */
export function orUnlimited(limit: number): number {
  return limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

export function resolveOptions(config: FairQueueConfig = {}): QueueOptions {
  checkConfig(config);
  const { weightedScheduler, hosts, cleanup, ...flat } = config;
  const own = { ...DEFAULTS, ...defined(flat) };
  const scheduler = { ...SCHEDULER_DEFAULTS, ...defined(weightedScheduler ?? {}) };
  return {
    maxWaitMs: own.maxWaitMs,
    pollIntervalMs: own.pollIntervalMs,
    pollWindowMs: own.pollWindowMs,
    idleMs: own.sessionIdleSeconds * 1000,
    collectMs: own.collectMs,
    maxSessions: orUnlimited(own.globalMaxWaiters),
    maxSessionsPerBucket: Math.max(
      1,
      Math.floor((orUnlimited(own.globalMaxWaiters) * own.maxSessionsPerBucketPercent) / 100),
    ),
    grantedKeepMs: own.defaultGrantedCleanupDelay * 1000,
    waiterRowTtlMs: (cleanup?.queueDepthZombieTtlSeconds ?? 20) * 1000,
    scheduler: {
      isEnabled: scheduler.enabled,
      hotPendingFactor: scheduler.hotPendingFactor,
      hotPendingMin: scheduler.hotPendingMin,
      coldAvgWaitMs: weightedScheduler?.coldAvgWaitMs ?? undefined,
      hotAvgWaitMs: weightedScheduler?.hotAvgWaitMs ?? undefined,
      maxProbesPerCycle: weightedScheduler?.maxProbesPerCycle ?? undefined,
      baseWeight: scheduler.baseWeight,
      weightPerWait: scheduler.weightPerWait,
    },
    defaults: { ...HOST_DEFAULTS, ...defined(hostKeysOf(flat)) },
    hosts: hosts ?? {},
  };
}

/** `null` and `undefined` are absent: they never hide a default. */
export function defined<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  const kept = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(kept) as { [K in keyof T]: NonNullable<T[K]> };
}

function hostKeysOf(flat: FairQueueConfig): HostConfig {
  const keys = new Set([...Object.keys(HOST_DEFAULTS), "smoothReleaseIntervalMs", "breaker"]);
  return Object.fromEntries(Object.entries(flat).filter(([key]) => keys.has(key)));
}
