/** `fairQueue` of `config.json`, as a caller writes it: names, units and meaning of the service's specification. */

export interface BreakerConfig {
  readonly windowSeconds?: number;
  readonly protectHttpCodes?: readonly number[];
  readonly errorRatioPercent?: number;
  readonly minSamples?: number;
  readonly fastErrorRatioPercent?: number;
  readonly fastMinSamples?: number;
  readonly consecutiveErrors?: number;
  readonly openSeconds?: number;
  readonly halfOpenProbes?: number;
}

export interface WeightedSchedulerConfig {
  readonly enabled?: boolean;
  readonly hotPendingFactor?: number;
  readonly hotPendingMin?: number;
  readonly coldAvgWaitMs?: number;
  readonly hotAvgWaitMs?: number;
  readonly maxProbesPerCycle?: number;
  readonly baseWeight?: number;
  readonly weightPerWait?: number;
}

/** How buckets are ranked when the weighted scheduler does not decide. */
export type OrderName = "slot-seconds" | "fifo";

/** The keys of `fairQueue` that may differ by host. */
export interface HostLimitsConfig {
  readonly minSlotHoldMs?: number;
  readonly smoothReleaseIntervalMs?: number;
  readonly maxSlotPerHost?: number;
  readonly maxSlotPerIp?: number;
  readonly maxWaitersPerIp?: number;
  readonly maxWaitersPerHost?: number;
  readonly zombieTimeoutSeconds?: number;
  readonly maxHoldSeconds?: number;
  readonly ipCooldownSeconds?: number;
  readonly order?: OrderName;
  readonly breaker?: BreakerConfig;
}

export interface HostConfig extends HostLimitsConfig {
  /** Shares of buckets, by bucket; 1 where none is given. */
  readonly weights?: Readonly<Record<string, number>>;
}

export interface CleanupConfig {
  readonly enabled?: boolean;
  readonly intervalSeconds?: number;
  readonly queueDepthZombieTtlSeconds?: number;
}

export interface FairQueueConfig extends HostLimitsConfig {
  readonly maxWaitMs?: number;
  readonly pollIntervalMs?: number;
  readonly pollWindowMs?: number;
  readonly sessionIdleSeconds?: number;
  readonly collectMs?: number;
  readonly globalMaxWaiters?: number;
  readonly defaultGrantedCleanupDelay?: number;
  readonly cleanup?: CleanupConfig;
  readonly weightedScheduler?: WeightedSchedulerConfig;
  /** By host name; `*.example.com` matches `example.com` too; the most specific pattern wins. */
  readonly hosts?: Readonly<Record<string, HostConfig>>;
}
