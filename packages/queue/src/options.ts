import {
  defaultsOf,
  type FairQueueConfig,
  HOST_LIMITS,
  type HostConfig,
  QUEUE_SETTINGS,
  SCHEDULER_SETTINGS,
} from "@slotkeeper/protocol";
import { checkConfig } from "./options-check.ts";

/**
 * The engine's settings with all defaults, durations in milliseconds. `resolveOptions` is pure: the same configuration
 * gives the same options. For a configuration with problems it throws an error that lists all of them.
 */

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

/** The settings of one instance with every default filled in. `docs/reference/config.md` explains each. */
export interface QueueOptions {
  /** How long a session may wait in total. */
  readonly maxWaitMs: number;
  /** How old the cached state of a host may be if no notice arrives. */
  readonly pollIntervalMs: number;
  /** How long a poll is held open at most. */
  readonly pollWindowMs: number;
  /** A session without a poll for this long ends; a host without users for this long is forgotten. */
  readonly idleMs: number;
  /** How long a granted slot waits for its client's poll. */
  readonly collectMs: number;
  /** How many sessions may wait at this instance; Infinity: no limit. */
  readonly maxSessions: number;
  /** How many of them one bucket may have while others wait. */
  readonly maxSessionsPerBucket: number;
  /** How long after its grant `cancel` gives a slot back. An ended session is kept in memory for the same time. */
  readonly cancelMs: number;
  /** The weighted scheduler of hot hosts. */
  readonly scheduler: SchedulerOptions;
  /** The settings of every host, before overrides. */
  readonly defaults: HostConfig;
  /** Overrides by host name or pattern. */
  readonly hosts: Readonly<Record<string, HostConfig>>;
}

/** Fills in the defaults. Throws an error that lists all problems of the configuration. */
export function resolveOptions(config: FairQueueConfig = {}): QueueOptions {
  checkConfig(config);
  const { weightedScheduler, hosts, cleanup: _, ...flat } = config;
  const own = { ...defaultsOf(QUEUE_SETTINGS), ...defined(flat) };
  const maxSessions = own.globalMaxWaiters > 0 ? own.globalMaxWaiters : Number.POSITIVE_INFINITY;
  return {
    maxWaitMs: own.maxWaitMs,
    pollIntervalMs: own.pollIntervalMs,
    pollWindowMs: own.pollWindowMs,
    idleMs: own.sessionIdleSeconds * 1000,
    collectMs: own.collectMs,
    maxSessions,
    maxSessionsPerBucket: Math.max(1, Math.floor((maxSessions * own.maxSessionsPerBucketPercent) / 100)),
    cancelMs: own.defaultGrantedCleanupDelay * 1000,
    scheduler: schedulerOf(weightedScheduler),
    defaults: defined(hostKeysOf(flat)),
    hosts: hosts ?? {},
  };
}

function schedulerOf(config: FairQueueConfig["weightedScheduler"]): SchedulerOptions {
  const { enabled, ...numbers } = { ...defaultsOf(SCHEDULER_SETTINGS), ...defined(config ?? {}) };
  const { coldAvgWaitMs, hotAvgWaitMs, maxProbesPerCycle } = config ?? {};
  return {
    ...numbers,
    isEnabled: enabled,
    coldAvgWaitMs: coldAvgWaitMs ?? undefined,
    hotAvgWaitMs: hotAvgWaitMs ?? undefined,
    maxProbesPerCycle: maxProbesPerCycle ?? undefined,
  };
}

/** Removes `null` and `undefined`, so that they never replace a default. */
export function defined<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  const kept = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(kept) as { [K in keyof T]: NonNullable<T[K]> };
}

function hostKeysOf(flat: FairQueueConfig): HostConfig {
  return Object.fromEntries(Object.entries(flat).filter(([key]) => isOfHosts(key)));
}

/** The limits of a host that are no single value. */
const TABLES: ReadonlySet<string> = new Set(["breaker", "budgets", "keys", "classes"]);

function isOfHosts(key: string): boolean {
  return TABLES.has(key) || Object.hasOwn(HOST_LIMITS, key);
}
