/** `slotkeeper`: slots for everything that must not run all at once, in one process. */
export { type Clock, realClock } from "./clock.ts";
export {
  AcquireTimeoutError,
  type AnySlotkeeperError,
  CapacityMismatchError,
  ClosedError,
  isSlotkeeperError,
  QueueFullError,
  SlotExpiredError,
  SlotkeeperError,
} from "./errors.ts";
export { type EventLogger, logEvents, type SemaphoreEvent, type SemaphoreEventType } from "./events.ts";
export type { Counters } from "./gate-context.ts";
export { KeyedSemaphore } from "./keyed-semaphore.ts";
export type { KeyedOptions, SlotPoolStats } from "./keyed-slots.ts";
export type { MapOptions } from "./map-items.ts";
export type { AcquireOptions, PolicyOptions, TryAcquireOptions } from "./policy.ts";
export { defaultRegistry, type RegistryOptions, type RegistryStatsOptions, SemaphoreRegistry } from "./registry.ts";
export type { Work } from "./run-with-slot.ts";
export { Mutex, Semaphore, type SemaphoreOptions } from "./semaphore.ts";
export type { Slot } from "./slot.ts";
export { SlotPool, type SlotPoolLimits, type SlotPoolOptions } from "./slot-pool.ts";
export type { SemaphoreStats } from "./stats.ts";
