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

/** A whole `config.json`. */
export type ServiceConfig = DeepReadonly<Static<typeof ConfigSchema>>;
/** The section `fairQueue`: the queue of an instance and the limits of its hosts. */
export type FairQueueConfig = DeepReadonly<Static<typeof FairQueueSchema>>;
/** The section `breaker`: the circuit breaker of a host. */
export type BreakerConfig = DeepReadonly<Static<typeof BreakerSchema>>;
/** The section `weightedScheduler`: the order of buckets at hot hosts. */
export type WeightedSchedulerConfig = DeepReadonly<Static<typeof WeightedSchedulerSchema>>;
/** The section `cleanup`: how often leftovers are deleted. */
export type CleanupConfig = DeepReadonly<Static<typeof CleanupSchema>>;
/** The keys of `fairQueue` that may differ by host. */
export type HostLimitsConfig = DeepReadonly<Static<typeof HostLimitsSchema>>;
/** The settings of one host, in `fairQueue.hosts`. */
export type HostConfig = DeepReadonly<Static<typeof HostSchema>>;
/** How buckets are ranked when the weighted scheduler does not decide. */
export type OrderName = NonNullable<HostLimitsConfig["order"]>;
