import type { Static } from "typebox";
import type { ConfigSchema } from "./schemas/config-schema.ts";
import type {
  BreakerSchema,
  CleanupSchema,
  FairQueueSchema,
  HostLimitsSchema,
  HostSchema,
  WeightedSchedulerSchema,
} from "./schemas/fair-queue-schema.ts";

/** `config.json` as a caller writes it: names, units and meaning of the service's specification, from its schema. */

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

export type ServiceConfig = DeepReadonly<Static<typeof ConfigSchema>>;
export type FairQueueConfig = DeepReadonly<Static<typeof FairQueueSchema>>;
export type BreakerConfig = DeepReadonly<Static<typeof BreakerSchema>>;
export type WeightedSchedulerConfig = DeepReadonly<Static<typeof WeightedSchedulerSchema>>;
export type CleanupConfig = DeepReadonly<Static<typeof CleanupSchema>>;
/** The keys of `fairQueue` that may differ by host. */
export type HostLimitsConfig = DeepReadonly<Static<typeof HostLimitsSchema>>;
export type HostConfig = DeepReadonly<Static<typeof HostSchema>>;
/** How buckets are ranked when the weighted scheduler does not decide. */
export type OrderName = NonNullable<HostLimitsConfig["order"]>;
