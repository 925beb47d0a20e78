import type { Gate } from "./gate.ts";
import type { Counters } from "./gate-context.ts";

export interface SemaphoreStats extends Counters {
  readonly name: string | undefined;
  readonly capacity: number;
  readonly inUse: number;
  readonly waiting: number;
  /** In use of the capacity, 0…100; 0 if unlimited. */
  readonly percent: number;
}

export function statsOf(gate: Gate, name: string | undefined): SemaphoreStats {
  const { capacity, inUse, waiting } = gate;
  return { name, capacity, inUse, waiting, percent: (inUse / capacity) * 100, ...gate.context.counters };
}
