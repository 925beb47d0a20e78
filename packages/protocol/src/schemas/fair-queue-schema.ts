import { BUDGET_SETTINGS } from "../settings/budget-settings.ts";
import { CLASS_SETTINGS, WEIGHT } from "../settings/class-settings.ts";
import { BREAKER_LIMITS, HOST_LIMITS } from "../settings/host-limits.ts";
import { KEY_SETTINGS } from "../settings/key-settings.ts";
import { CLEANUP_SETTINGS, QUEUE_SETTINGS, SCHEDULER_SETTINGS } from "../settings/queue-settings.ts";
import { propertiesOf } from "./settings-schema.ts";
import * as Type from "./type.ts";

/** `fairQueue` of `config.json`. Keys, defaults and bounds are in the tables of `settings/`; `config-schema.ts` adds what they mean. */

const closed = { additionalProperties: false } as const;

export const BreakerSchema = Type.Object(propertiesOf(BREAKER_LIMITS), {
  ...closed,
  description: "circuit breaker: when to keep requests from a host that fails",
});

const { burst, default: cost, shadow } = propertiesOf(BUDGET_SETTINGS);
const required = (key: "limit" | "perSeconds") =>
  Type.Number({ minimum: BUDGET_SETTINGS[key].min, maximum: BUDGET_SETTINGS[key].max });

const BudgetSchema = Type.Object(
  { limit: required("limit"), perSeconds: required("perSeconds"), burst, default: cost, shadow },
  closed,
);

const budgets = Type.Optional(
  Type.recordOf(BudgetSchema, { description: "budgets by name, for example tokens per minute: see below" }),
);
const { slots, required: isRequired, shadow: isShadow } = propertiesOf(KEY_SETTINGS);
const keyLimits = { slots, budgets };

const KeySchema = Type.Object(
  {
    ...keyLimits,
    required: isRequired,
    shadow: isShadow,
    for: Type.Optional(Type.recordOf(Type.Object(keyLimits, closed), {})),
  },
  closed,
);

const limits = {
  ...propertiesOf(HOST_LIMITS),
  budgets,
  keys: Type.Optional(
    Type.recordOf(KeySchema, {
      description: "limits of requests with the same value of a key: see below",
    }),
  ),
  classes: Type.Optional(
    Type.recordOf(Type.Object(propertiesOf(CLASS_SETTINGS), closed), {
      description: "classes of requests, each with its own share of the slots: see below",
    }),
  ),
  breaker: Type.Optional(BreakerSchema),
};

export const HostLimitsSchema = Type.Object(limits, closed);

export const HostSchema = Type.Object(
  {
    ...limits,
    weights: Type.Optional(
      Type.recordOf(Type.Number({ minimum: WEIGHT.min, maximum: WEIGHT.max }), {
        description: "weight of each bucket; a bucket that is not listed has weight 1",
      }),
    ),
  },
  { ...closed, description: "overrides for this host" },
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
      Type.recordOf(HostSchema, {
        description: "overrides by host name: see below",
      }),
    ),
  },
  closed,
);
