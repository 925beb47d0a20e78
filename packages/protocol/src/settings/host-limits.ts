import type { Setting, ValueOf } from "./setting.ts";

/**
 * The limits of a host: every key of `fairQueue` that `fairQueue.hosts` may override. This table is the one place that
 * declares them. A new limit is a row here and the rule that reads it from the host's policy; made from the row are
 *   - the schema, its defaults and bounds, `--print-config` and environment variables (`schemas/fair-queue-schema.ts`)
 *   - what operators may set live, over HTTP and in the state view (`schemas/live-limits.ts`)
 *   - the checks, defaults and policy of the engine (`queue/src/options-check.ts`, `queue/src/host-policy.ts`)
 *   - the rows of `docs/reference/config.md`
 */
interface HostLimit {
  /** Its name in the engine and in stores, in milliseconds where it is a time: SQL reads `limits -> 'policy' -> field`. */
  readonly field: string;
  /** Operators may change it at a running host (`POST /hosts/{host}`). */
  readonly isLive?: true;
}

type HostLimits = { readonly [key: string]: Setting & HostLimit };

/** The keys of `fairQueue` that hosts may override. In stores: `limits -> 'policy' -> field`. */
export const HOST_LIMITS = {
  minSlotHoldMs: {
    field: "minHoldMs",
    type: "number",
    unit: "milliseconds",
    min: 0,
    default: 0,
    about: "shortest time from `hitUpstreamAtMs` until a released slot is free again",
  },
  smoothReleaseIntervalMs: {
    field: "smoothMs",
    type: "number",
    unit: "milliseconds",
    about:
      "shortest time between two released slots of a host becoming free; absent: `minSlotHoldMs / maxSlotPerHost`; ≤ 0: off",
  },
  maxSlotPerHost: {
    field: "slots",
    type: "integer",
    unit: "count",
    min: 1,
    default: 5,
    defaultAt: "zero or less",
    isLive: true,
    about: "number of slots of a host",
  },
  maxSlotPerIp: {
    field: "slotsPerBucket",
    type: "integer",
    unit: "count",
    default: 1,
    isOffAt0: true,
    defaultAt: "zero",
    isLive: true,
    about: "most slots that one bucket may hold at a host; negative: no limit",
  },
  maxWaitersPerIp: {
    field: "waitersPerBucket",
    type: "integer",
    unit: "count",
    default: 0,
    isOffAt0: true,
    about: "most places of one bucket in the waiter pool of a host; ≤ 0: no limit",
  },
  maxWaitersPerHost: {
    field: "waiters",
    type: "integer",
    unit: "count",
    default: 50,
    isOffAt0: true,
    about: "places in the waiter pool of a host: only waiters in the pool compete for slots; ≤ 0: no limit",
  },
  zombieTimeoutSeconds: {
    field: "leaseMs",
    type: "number",
    unit: "seconds",
    above: 0,
    default: 30,
    defaultAt: "zero or less",
    alias: "leaseSeconds",
    about:
      "length of a lease: the service takes a slot back if it is neither renewed nor released for this time; also `leaseSeconds`",
  },
  maxHoldSeconds: {
    field: "maxHoldMs",
    type: "number",
    unit: "seconds",
    above: 0,
    default: 3600,
    about: "longest time that one slot can be held, however often it is renewed",
  },
  ipCooldownSeconds: {
    field: "cooldownMs",
    type: "number",
    unit: "seconds",
    min: 0,
    default: 0,
    about: "cooldown: after a release, the bucket gets no new slot of this host for this time",
  },
  order: {
    field: "order",
    type: "choice",
    choices: ["slot-seconds", "fifo"],
    default: "slot-seconds",
    about: "which eligible bucket gets the next slot, unless the weighted scheduler decides",
  },
} as const satisfies HostLimits;

/** `breaker` of a host. In stores: `limits -> 'policy' -> 'breaker' -> field`. */
export const BREAKER_LIMITS = {
  windowSeconds: {
    field: "windowMs",
    type: "number",
    unit: "seconds",
    above: 0,
    default: 60,
    about: "length of the observation window in which answers are counted",
  },
  protectHttpCodes: {
    field: "protectHttpCodes",
    type: "codes",
    default: [429, 500, 502, 503, 504],
    about: "status codes that count as errors; 200–399 count as successes; all others are ignored",
  },
  errorRatioPercent: {
    field: "errorRatioPercent",
    type: "number",
    unit: "percent",
    default: 20,
    about: "the breaker opens at this percentage of errors",
  },
  minSamples: {
    field: "minSamples",
    type: "integer",
    unit: "count",
    default: 8,
    about: "fewest answers for `errorRatioPercent`; ≤ 0: that rule is off",
  },
  fastErrorRatioPercent: {
    field: "fastErrorRatioPercent",
    type: "number",
    unit: "percent",
    default: 50,
    about: "the breaker also opens at this higher percentage, after fewer answers",
  },
  fastMinSamples: {
    field: "fastMinSamples",
    type: "integer",
    unit: "count",
    default: 4,
    about: "fewest answers for `fastErrorRatioPercent`; ≤ 0: that rule is off",
  },
  consecutiveErrors: {
    field: "consecutiveErrors",
    type: "integer",
    unit: "count",
    default: 4,
    about: "the breaker opens after this number of errors in a row; ≤ 0: that rule is off",
  },
  openSeconds: {
    field: "openMs",
    type: "number",
    unit: "seconds",
    above: 0,
    max: 3600,
    default: 60,
    about: "how long the breaker stays open; after that it is half open, and an hour after it opened it is closed",
  },
  halfOpenProbes: {
    field: "halfOpenProbes",
    type: "integer",
    unit: "count",
    min: 1,
    default: 1,
    about: "trial requests that a half-open breaker lets through at a time",
  },
} as const satisfies HostLimits;

/** A table's limits as the engine and stores have them: by field, times in milliseconds, Infinity for "no limit". */
export type Resolved<T extends HostLimits> = {
  readonly [K in keyof T as T[K]["field"]]: ValueOf<T[K]>;
};

type HostLimitTable = typeof HOST_LIMITS;

/** The keys that operators may set live. */
export type LiveLimitKey = {
  [K in keyof HostLimitTable]: HostLimitTable[K] extends { readonly isLive: true } ? K : never;
}[keyof HostLimitTable];

/** The field of such a key, as stores have it. */
export type LiveLimitField = HostLimitTable[LiveLimitKey]["field"];

/** The keys that operators may set live, with their fields. */
export const LIVE_LIMITS: readonly { readonly key: LiveLimitKey; readonly field: LiveLimitField }[] = Object.entries(
  HOST_LIMITS,
).flatMap(([key, limit]) => ("isLive" in limit ? [{ key: key as LiveLimitKey, field: limit.field }] : []));

/** The values of a configuration in the engine's units. Keys that the configuration does not name get their defaults. */
export function resolveLimits<T extends HostLimits>(
  table: T,
  config: { readonly [key: string]: unknown },
): Resolved<T> {
  const resolved = Object.entries(table).map(([key, limit]) => [
    limit.field,
    inEngineUnits(limit, config[key] ?? limit.default),
  ]);
  return Object.fromEntries(resolved) as Resolved<T>;
}

function inEngineUnits(limit: Setting, value: unknown): unknown {
  if (typeof value !== "number" || !("unit" in limit)) return value;
  if (limit.isOffAt0 === true && value <= 0) return Number.POSITIVE_INFINITY;
  return limit.unit === "seconds" ? value * 1000 : value;
}
