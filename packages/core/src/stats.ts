import type { Gate } from "./gate.ts";
import type { Counters } from "./gate-context.ts";

/** The result of `Semaphore.stats()`. */
export interface SemaphoreStats extends Counters {
  readonly name: string | undefined;
  readonly capacity: number;
  readonly inUse: number;
  readonly waiting: number;
  /** `inUse` in percent of the capacity; 0 if unlimited. */
  readonly percent: number;
}

export function statsOf({ name, capacity, inUse, waiting, context }: Gate): SemaphoreStats {
  return {
    name,
    capacity,
    inUse,
    waiting,
    percent: (inUse / capacity) * 100,
    ...context.counters,
  };
}
