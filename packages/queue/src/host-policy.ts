import {
  BREAKER_LIMITS,
  type BudgetPolicies,
  budgetOfOrder,
  type ClassPolicies,
  HOST_LIMITS,
  type HostConfig,
  hasEnforced,
  isEnforced,
  type KeyPolicy,
  type Resolved,
  resolveBudgets,
  resolveClasses,
  resolveKeys,
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
export type HostPolicy = Resolved<typeof HOST_LIMITS> & {
  readonly breaker: BreakerPolicy;
  /** Absent: the host has no budgets. */
  readonly budgets?: BudgetPolicies | undefined;
  /** From narrow to wide. Absent: the host has no keys. */
  readonly keys?: readonly KeyPolicy[] | undefined;
  /** With the class of requests that name none. Absent: the host has no classes. */
  readonly classes?: ClassPolicies | undefined;
};

type Constraints = Pick<HostPolicy, "budgets" | "keys" | "classes">;

/** Whether the weighted scheduler is off, because requests wait for budgets or keys, or have classes. */
export function isConstrained(policy: Constraints): boolean {
  return policy.keys?.some(isEnforced) === true || policy.classes !== undefined || hasBudgets(policy);
}

/** Whether requests wait for budgets. Those in shadow mode hold back no request. */
export function hasBudgets({ budgets }: Pick<HostPolicy, "budgets">): boolean {
  return hasEnforced(budgets);
}

/** The limits of a host, and the weights of its buckets. */
export interface ResolvedHost {
  readonly policy: HostPolicy;
  weightOf(bucket: string): number;
}

/** Hosts without overrides share one object: there may be a hundred thousand of them. */
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
  const constraints = constraintsOf(host);
  const weights = new Map(Object.entries(override.weights ?? {}));
  const weightOf = (bucket: string) => weights.get(bucket) ?? 1;
  if (hostname?.startsWith(SEMAPHORE_PREFIX) !== true) {
    return { policy: { ...policy, ...constraints }, weightOf };
  }
  // The users of a named semaphore choose its capacity, so no limit per bucket, no budget, key or class applies.
  const { POSITIVE_INFINITY: none } = Number;
  const order = budgetOfOrder(policy.order) === undefined ? policy.order : HOST_LIMITS.order.default;
  return { policy: { ...policy, order, slotsPerBucket: none, waitersPerBucket: none, cooldownMs: 0 }, weightOf };
}

/** What requests of a host may have to wait for besides its slots. */
export function constraintsOf(host: HostConfig): Constraints {
  const [budgets, keys, classes] = [resolveBudgets(host.budgets), resolveKeys(host.keys), resolveClasses(host.classes)];
  return {
    ...(budgets === undefined ? {} : { budgets }),
    ...(keys === undefined ? {} : { keys }),
    ...(classes === undefined ? {} : { classes }),
  };
}

function policyOf(host: HostConfig, breaker: HostConfig["breaker"]): HostPolicy {
  const limits = resolveLimits(HOST_LIMITS, host);
  // The only limit whose default depends on other limits.
  const smoothMs = host.smoothReleaseIntervalMs ?? limits.minHoldMs / limits.slots;
  return { ...limits, smoothMs: Math.max(0, smoothMs), breaker: resolveLimits(BREAKER_LIMITS, breaker ?? {}) };
}

/** The breaker of a host whose limits are not known. */
export const DEFAULT_BREAKER: BreakerPolicy = resolveLimits(BREAKER_LIMITS, {});

/** The shared bucket of callers without a name has no limit and no cooldown of its own. */
export function bucketLimit(policy: HostPolicy, bucket: string): number {
  return bucket === SHARED_BUCKET ? Number.POSITIVE_INFINITY : policy.slotsPerBucket;
}

/**
 * The entry of `hosts` for this host. An exact name has priority over patterns, and a longer pattern over a shorter
 * one; `*` is last.
 */
export function overrideOf(hosts: QueueOptions["hosts"], hostname: string): HostEntry | undefined {
  const entries = entriesOf(hosts);
  if (entries.size === 0) return undefined;
  const name = hostname.toLowerCase();
  const exact = entries.get(name);
  if (exact !== undefined) return exact;
  // `*.a.b`, `*.b`, … : the longest pattern first.
  for (let rest = name; ; rest = rest.slice(rest.indexOf(".") + 1)) {
    const found = entries.get(`*.${rest}`);
    if (found !== undefined) return found;
    if (!rest.includes(".")) return entries.get("*");
  }
}

interface HostEntry {
  readonly pattern: string;
  readonly config: HostConfig;
}

const entriesByHosts = new WeakMap<QueueOptions["hosts"], ReadonlyMap<string, HostEntry>>();

/** The entries by their patterns in lower case, made once: a refresh looks up every host. */
function entriesOf(hosts: QueueOptions["hosts"]): ReadonlyMap<string, HostEntry> {
  let entries = entriesByHosts.get(hosts);
  if (entries === undefined) {
    entries = new Map(
      Object.entries(hosts).map(([pattern, config]) => [pattern.toLowerCase(), { pattern, config }] as const),
    );
    entriesByHosts.set(hosts, entries);
  }
  return entries;
}
