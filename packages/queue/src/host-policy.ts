import {
  BREAKER_LIMITS,
  HOST_LIMITS,
  type HostConfig,
  type Resolved,
  resolveLimits,
  SEMAPHORE_PREFIX,
  SHARED_BUCKET,
} from "@slotkeeper/protocol";
import { defined, type QueueOptions } from "./options.ts";

/** The settings of a host's circuit breaker, times in milliseconds. */
export type BreakerPolicy = Resolved<typeof BREAKER_LIMITS>;

/**
 * The limits of one host, by the fields of the table of limits. They are kept in its book, so that a store needs no
 * configuration. Infinity means no limit.
 */
export type HostPolicy = Resolved<typeof HOST_LIMITS> & { readonly breaker: BreakerPolicy };

/** Limits, and the weights of its buckets. */
export interface ResolvedHost {
  readonly policy: HostPolicy;
  weightOf(bucket: string): number;
}

/** Hosts without anything of their own share one object: there may be a hundred thousand of them. */
const plainHosts = new WeakMap<QueueOptions, ResolvedHost>();

/** The limits of a host: the defaults of the options with the host's overrides. */
export function resolveHost(options: QueueOptions, hostname: string | undefined): ResolvedHost {
  const override = hostname === undefined ? undefined : overrideOf(options.hosts, hostname)?.config;
  if (override !== undefined || hostname?.startsWith(SEMAPHORE_PREFIX) === true) {
    return resolveOwn(options, override ?? {}, hostname);
  }
  let plain = plainHosts.get(options);
  if (plain === undefined) {
    plain = resolveOwn(options, {}, undefined);
    plainHosts.set(options, plain);
  }
  return plain;
}

function resolveOwn(options: QueueOptions, override: HostConfig, hostname: string | undefined): ResolvedHost {
  const host = { ...options.defaults, ...defined(override) };
  const policy = policyOf(host, { ...options.defaults.breaker, ...override.breaker });
  const weights = new Map(Object.entries(override.weights ?? {}));
  const weightOf = (bucket: string) => weights.get(bucket) ?? 1;
  if (hostname?.startsWith(SEMAPHORE_PREFIX) !== true) return { policy, weightOf };
  // Nothing is limited by bucket where the users themselves say how many may run.
  const { POSITIVE_INFINITY: none } = Number;
  return { policy: { ...policy, slotsPerBucket: none, waitersPerBucket: none, cooldownMs: 0 }, weightOf };
}

function policyOf(host: HostConfig, breaker: HostConfig["breaker"]): HostPolicy {
  const limits = resolveLimits(HOST_LIMITS, host);
  // The one limit whose default follows from others.
  const smoothMs = host.smoothReleaseIntervalMs ?? limits.minHoldMs / limits.slots;
  return { ...limits, smoothMs: Math.max(0, smoothMs), breaker: resolveLimits(BREAKER_LIMITS, breaker ?? {}) };
}

/** Of a host whose limits are not known. */
export const DEFAULT_BREAKER: BreakerPolicy = resolveLimits(BREAKER_LIMITS, {});

/** The shared bucket of callers without a name has neither limit nor cooldown of its own. */
export function bucketLimit(policy: HostPolicy, bucket: string): number {
  return bucket === SHARED_BUCKET ? Number.POSITIVE_INFINITY : policy.slotsPerBucket;
}

/** The entry of `hosts` for this host. An exact name beats any pattern; the longest pattern wins; `*` alone is the least. */
export function overrideOf(
  hosts: QueueOptions["hosts"],
  hostname: string,
): { readonly pattern: string; readonly config: HostConfig } | undefined {
  const name = hostname.toLowerCase();
  let best: { pattern: string; config: HostConfig } | undefined;
  for (const [pattern, config] of Object.entries(hosts)) {
    const key = pattern.toLowerCase();
    if (key === name) return { pattern, config };
    if (matches(key, name) && (best === undefined || key.length > best.pattern.length)) best = { pattern, config };
  }
  return best;
}

function matches(pattern: string, name: string): boolean {
  if (pattern === "*") return true;
  return pattern.startsWith("*.") && (name === pattern.slice(2) || name.endsWith(pattern.slice(1)));
}
