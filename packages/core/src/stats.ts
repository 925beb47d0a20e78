import type { Gate } from "./gate.ts";
import type { Counters } from "./gate-context.ts";

/** The result of `Semaphore.stats()`, and a part of `Limiter.stats()`. */
export interface SemaphoreStats extends Counters {
  /** The name from the options. */
  readonly name: string | undefined;
  /** Number of slots; with `adaptive`, the current number. `Infinity` if unlimited. */
  readonly capacity: number;
  /** Slots held: the sum of their widths. */
  readonly inUse: number;
  /** Number of waiters. */
  readonly waiting: number;
  /** `inUse` as a percentage of the capacity: 0 if unlimited, above 100 while more slots are held than there are. */
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
