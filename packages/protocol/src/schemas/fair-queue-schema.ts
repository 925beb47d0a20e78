import { Type } from "typebox";

/** `fairQueue` of `config.json`. Each `default` here is what `--print-config` shows; a test holds the engine's to it. */

const count = (minimum: number, fallback: number, description: string) =>
  Type.Integer({ minimum, default: fallback, description });
const limit = (fallback: number, description: string) => Type.Integer({ default: fallback, description });
const atLeast = (minimum: number, fallback: number | undefined, description: string) =>
  Type.Number({ minimum, ...(fallback === undefined ? {} : { default: fallback }), description });
const above0 = (fallback: number, description: string) =>
  Type.Number({ exclusiveMinimum: 0, default: fallback, description });

export const BreakerSchema = Type.Object(
  {
    windowSeconds: Type.Optional(above0(60, "how far back answers are counted")),
    protectHttpCodes: Type.Optional(
      Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
        default: [429, 500, 502, 503, 504],
        description: "the codes that are errors; 200–399 is success; others are not counted",
      }),
    ),
    errorRatioPercent: Type.Optional(Type.Number({ default: 20, description: "opens at this share of errors" })),
    minSamples: Type.Optional(limit(8, "… of at least so many answers")),
    fastErrorRatioPercent: Type.Optional(Type.Number({ default: 50, description: "opens sooner at this share" })),
    fastMinSamples: Type.Optional(limit(4, "… of at least so many answers")),
    consecutiveErrors: Type.Optional(limit(4, "opens after so many errors in a row")),
    openSeconds: Type.Optional(above0(60, "how long it stays open")),
    halfOpenProbes: Type.Optional(count(1, 1, "trial requests at a time once that is over")),
  },
  { additionalProperties: false, description: "when to stop sending to a host that fails" },
);

const limits = {
  minSlotHoldMs: Type.Optional(atLeast(0, 0, "a slot is held at least so long after `hitUpstreamAtMs`")),
  smoothReleaseIntervalMs: Type.Optional(
    Type.Number({ description: "spacing of releases per host; absent: `minSlotHoldMs / maxSlotPerHost`; ≤ 0 off" }),
  ),
  maxSlotPerHost: Type.Optional(count(1, 5, "slots of a host")),
  maxSlotPerIp: Type.Optional(limit(1, "slots of one bucket at a host; ≤ 0 unlimited")),
  maxWaitersPerIp: Type.Optional(limit(0, "places of one bucket in a host's waiter pool; ≤ 0 off")),
  maxWaitersPerHost: Type.Optional(limit(50, "places in a host's waiter pool; ≤ 0 off")),
  zombieTimeoutSeconds: Type.Optional(
    above0(30, "the lease: a slot not renewed or released for so long is taken back"),
  ),
  maxHoldSeconds: Type.Optional(above0(3600, "the end of all renewing")),
  ipCooldownSeconds: Type.Optional(atLeast(0, 0, "after a release its bucket waits so long, whatever its limit")),
  order: Type.Optional(
    Type.Enum(["slot-seconds", "fifo"], {
      default: "slot-seconds",
      description: "who is next among eligible buckets when the weighted scheduler does not decide",
    }),
  ),
  breaker: Type.Optional(BreakerSchema),
};

export const HostLimitsSchema = Type.Object(limits, { additionalProperties: false });

export const HostSchema = Type.Object(
  {
    ...limits,
    weights: Type.Optional(
      Type.Record(Type.String(), Type.Number({ exclusiveMinimum: 0 }), {
        description: "shares of buckets, by bucket; 1 where none is given",
      }),
    ),
  },
  { additionalProperties: false, description: "what differs for this host" },
);

export const CleanupSchema = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean({ default: true, description: "whether leftovers are swept at intervals" })),
    intervalSeconds: Type.Optional(above0(1800, "between two sweeps")),
    queueDepthZombieTtlSeconds: Type.Optional(above0(20, "age at which waiter rows of dead instances are deleted")),
  },
  { additionalProperties: false },
);

export const WeightedSchedulerSchema = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean({ default: false, description: "weighted round robin on hot hosts" })),
    hotPendingFactor: Type.Optional(above0(4, "hot from `factor × maxSlotPerHost` waiting")),
    hotPendingMin: Type.Optional(atLeast(0, 16, "… and at least so many")),
    coldAvgWaitMs: Type.Optional(atLeast(0, undefined, "cold at this average wait; absent: `pollIntervalMs`")),
    hotAvgWaitMs: Type.Optional(
      atLeast(0, undefined, "hot from this average wait; absent: `3 × pollIntervalMs + minSlotHoldMs`"),
    ),
    maxProbesPerCycle: Type.Optional(
      Type.Integer({ minimum: 1, description: "failed tries per interval on a hot host; absent: `maxSlotPerHost`" }),
    ),
    baseWeight: Type.Optional(atLeast(0, 1, "`weight = baseWeight + weightPerWait × waits`")),
    weightPerWait: Type.Optional(atLeast(0, 1, "see `baseWeight`")),
  },
  { additionalProperties: false },
);

export const FairQueueSchema = Type.Object(
  {
    maxWaitMs: Type.Optional(above0(20_000, "a session's whole wait")),
    pollIntervalMs: Type.Optional(atLeast(1, 500, "fallback cycle when no push comes")),
    pollWindowMs: Type.Optional(atLeast(0, 6_000, "how long one HTTP poll is held")),
    sessionIdleSeconds: Type.Optional(above0(90, "no poll for this long: the session is gone")),
    collectMs: Type.Optional(above0(1_000, "how long a grant waits to be fetched")),
    globalMaxWaiters: Type.Optional(limit(500, "sessions per process; ≤ 0 off")),
    maxSessionsPerBucketPercent: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 100,
        default: 50,
        description: "the part of `globalMaxWaiters` that one bucket may take while others ask",
      }),
    ),
    defaultGrantedCleanupDelay: Type.Optional(
      atLeast(0, 5, "seconds a fetched grant stays repeatable and cancellable"),
    ),
    ...limits,
    cleanup: Type.Optional(CleanupSchema),
    weightedScheduler: Type.Optional(WeightedSchedulerSchema),
    hosts: Type.Optional(
      Type.Record(Type.String(), HostSchema, {
        description: "overrides by host; `*.example.com` matches `example.com` too; the most specific wins",
      }),
    ),
  },
  { additionalProperties: false },
);
