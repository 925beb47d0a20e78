import { BUDGET_SETTINGS } from "../settings/budget-settings.ts";
import { CLASS_SETTINGS, WEIGHT } from "../settings/class-settings.ts";
import { BREAKER_LIMITS, HOST_LIMITS } from "../settings/host-limits.ts";
import { KEY_SETTINGS } from "../settings/key-settings.ts";
import { CLEANUP_SETTINGS, QUEUE_SETTINGS, SCHEDULER_SETTINGS } from "../settings/queue-settings.ts";
import { aliasesOf, propertiesOf } from "./settings-schema.ts";
import * as Type from "./type.ts";

/** `fairQueue` of `config.json`. Keys, defaults and bounds are in the tables of `settings/`; `config-schema.ts` adds what they mean. */

export const BreakerSchema = Type.section(propertiesOf(BREAKER_LIMITS), {
  description: "circuit breaker: when to keep requests from a host that fails",
});

const required = (key: "limit" | "perSeconds") =>
  Type.Number({ minimum: BUDGET_SETTINGS[key].min, maximum: BUDGET_SETTINGS[key].max });

const { burst, default: cost, shadow } = propertiesOf(BUDGET_SETTINGS);

const BudgetSchema = Type.Object(
  {
    limit: required("limit"),
    perSeconds: required("perSeconds"),
    burst: Type.Optional(burst),
    default: Type.Optional(cost),
    shadow: Type.Optional(shadow),
  },
  { additionalProperties: false },
);

const budgets = Type.recordOf(BudgetSchema, {
  description: "budgets by name, for example tokens per minute: see below",
});
const keySettings = propertiesOf(KEY_SETTINGS);
const keyLimits = { slots: keySettings.slots, budgets };

const limits = {
  ...propertiesOf(HOST_LIMITS),
  budgets,
  keys: Type.recordOf(Type.section({ ...keyLimits, ...keySettings, for: Type.recordOf(Type.section(keyLimits), {}) }), {
    description: "limits of requests with the same value of a key: see below",
  }),
  classes: Type.recordOf(Type.section(propertiesOf(CLASS_SETTINGS)), {
    description: "classes of requests, each with its own share of the slots: see below",
  }),
  breaker: BreakerSchema,
};

export const HostLimitsSchema = Type.section(limits);

export const HostSchema = Type.section(
  {
    ...limits,
    weights: Type.recordOf(Type.Number({ minimum: WEIGHT.min, maximum: WEIGHT.max }), {
      description: "weight of each bucket; a bucket that is not listed has weight 1",
    }),
  },
  { description: "overrides for this host" },
);

export const CleanupSchema = Type.section(propertiesOf(CLEANUP_SETTINGS));

export const WeightedSchedulerSchema = Type.section(propertiesOf(SCHEDULER_SETTINGS));

const aboutHosts = { description: "overrides by host name: see below" };

export const FairQueueSchema = Type.section({
  ...propertiesOf(QUEUE_SETTINGS),
  ...limits,
  cleanup: CleanupSchema,
  weightedScheduler: WeightedSchedulerSchema,
  hosts: Type.recordOf(HostSchema, aboutHosts),
});

const unused = { description: "no effect any more: the store calls its own functions" };
const functionName = Type.String(unused);

/** Names of the original's SQL functions. Accepted, so that a configuration of the original service still loads. */
export const RpcSchema = Type.section(
  {
    throttleCheckFunc: functionName,
    registerWaiterFunc: functionName,
    releaseWaiterFunc: functionName,
    tryAcquireFunc: functionName,
    releaseFunc: functionName,
  },
  unused,
);

const aliases = aliasesOf(HOST_LIMITS);

/** The section `fairQueue` as it may be written: with the other names of its keys. */
export const FairQueueSectionSchema = Type.section({
  ...FairQueueSchema.properties,
  ...aliases,
  hosts: Type.recordOf(Type.section({ ...HostSchema.properties, ...aliases }), aboutHosts),
  rpc: RpcSchema,
});
