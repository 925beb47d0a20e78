import { Type } from "typebox";
import { BREAKER_LIMITS, HOST_LIMITS } from "../settings/host-limits.ts";
import { CLEANUP_SETTINGS, QUEUE_SETTINGS, SCHEDULER_SETTINGS } from "../settings/queue-settings.ts";
import { propertiesOf } from "./settings-schema.ts";

/** `fairQueue` of `config.json`. Keys, defaults, bounds and descriptions are in the tables of `settings/`. */

const closed = { additionalProperties: false } as const;

export const BreakerSchema = Type.Object(propertiesOf(BREAKER_LIMITS), {
  ...closed,
  description: "when to stop sending to a host that fails",
});

const limits = { ...propertiesOf(HOST_LIMITS), breaker: Type.Optional(BreakerSchema) };

export const HostLimitsSchema = Type.Object(limits, closed);

export const HostSchema = Type.Object(
  {
    ...limits,
    weights: Type.Optional(
      Type.Record(Type.String(), Type.Number({ exclusiveMinimum: 0 }), {
        description: "shares of buckets, by bucket; 1 where none is given",
      }),
    ),
  },
  { ...closed, description: "what differs for this host" },
);

export const CleanupSchema = Type.Object(propertiesOf(CLEANUP_SETTINGS), closed);

export const WeightedSchedulerSchema = Type.Object(propertiesOf(SCHEDULER_SETTINGS), closed);

export const FairQueueSchema = Type.Object(
  {
    ...propertiesOf(QUEUE_SETTINGS),
    ...limits,
    cleanup: Type.Optional(CleanupSchema),
    weightedScheduler: Type.Optional(WeightedSchedulerSchema),
    hosts: Type.Optional(
      Type.Record(Type.String(), HostSchema, {
        description: "overrides by host; `*.example.com` matches `example.com` too; the most specific wins",
      }),
    ),
  },
  closed,
);
