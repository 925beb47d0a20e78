import type { Gate } from "./gate.ts";
import type { Counters } from "./gate-context.ts";

/** What `Semaphore.stats()` gives. */
export interface SemaphoreStats extends Counters {
  readonly name: string | undefined;
  readonly capacity: number;
  readonly inUse: number;
  readonly waiting: number;
  /** In use of the capacity, 0…100; 0 if unlimited. */
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
