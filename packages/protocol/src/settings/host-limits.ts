import type { Setting, ValueOf } from "./setting.ts";

/**
 * The limits of a host: every key of `fairQueue` that `fairQueue.hosts` may override. This table is the one place that
 * declares them. A new limit is a row here, its meaning in `about.ts`, and the rule that reads it from the host's policy; made from
 * the row are
 *   - the schema, its defaults and bounds, `--print-config` and environment variables (`schemas/fair-queue-schema.ts`)
 *   - what operators may set live, over HTTP and in the state view (`schemas/request-schemas.ts`, `state-schema.ts`)
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
  minSlotHoldMs: { field: "minHoldMs", type: "number", unit: "milliseconds", min: 0, default: 0 },
  smoothReleaseIntervalMs: { field: "smoothMs", type: "number", unit: "milliseconds" },
  maxSlotPerHost: {
    field: "slots",
    type: "integer",
    unit: "count",
    min: 1,
    default: 5,
    defaultAt: "zero or less",
    isLive: true,
  },
  maxSlotPerIp: {
    field: "slotsPerBucket",
    type: "integer",
    unit: "count",
    default: 1,
    isOffAt0: true,
    defaultAt: "zero",
    isLive: true,
  },
  maxWaitersPerIp: { field: "waitersPerBucket", type: "integer", unit: "count", default: 0, isOffAt0: true },
  maxWaitersPerHost: { field: "waiters", type: "integer", unit: "count", default: 50, isOffAt0: true },
  zombieTimeoutSeconds: {
    field: "leaseMs",
    type: "number",
    unit: "seconds",
    above: 0,
    default: 30,
    defaultAt: "zero or less",
    alias: "leaseSeconds",
  },
  maxHoldSeconds: { field: "maxHoldMs", type: "number", unit: "seconds", above: 0, default: 3600 },
  ipCooldownSeconds: { field: "cooldownMs", type: "number", unit: "seconds", min: 0, default: 0 },
  order: { field: "order", type: "choice", choices: ["slot-seconds", "fifo"], orBudget: true, default: "slot-seconds" },
} as const satisfies HostLimits;

/** `breaker` of a host. In stores: `limits -> 'policy' -> 'breaker' -> field`. */
export const BREAKER_LIMITS = {
  windowSeconds: { field: "windowMs", type: "number", unit: "seconds", above: 0, default: 60 },
  protectHttpCodes: { field: "protectHttpCodes", type: "codes", default: [429, 500, 502, 503, 504] },
  errorRatioPercent: { field: "errorRatioPercent", type: "number", unit: "percent", default: 20 },
  minSamples: { field: "minSamples", type: "integer", unit: "count", default: 8 },
  fastErrorRatioPercent: { field: "fastErrorRatioPercent", type: "number", unit: "percent", default: 50 },
  fastMinSamples: { field: "fastMinSamples", type: "integer", unit: "count", default: 4 },
  consecutiveErrors: { field: "consecutiveErrors", type: "integer", unit: "count", default: 4 },
  openSeconds: { field: "openMs", type: "number", unit: "seconds", above: 0, max: 3600, default: 60 },
  halfOpenProbes: { field: "halfOpenProbes", type: "integer", unit: "count", min: 1, default: 1 },
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
