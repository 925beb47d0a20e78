/**
 * Named semaphores: who asks for one name gets the same slots. Instances look the name up each time, so that after a
 * drop an old instance and a new one share. A closed gate keeps its name until its last holder releases.
 */
import type { Clock } from "./clock.ts";
import { CapacityMismatchError } from "./errors.ts";
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { GateMap } from "./gate-map.ts";
import { check, resolvePolicy } from "./policy.ts";
import { type SemaphoreStats, statsOf } from "./stats.ts";

export interface RegistryOptions {
  /** A name with nothing held or waiting for this long is dropped. Default one minute. */
  idleMs?: number | undefined;
  clock?: Clock | undefined;
}

export interface RegistryStatsOptions {
  /** Only these, whether in use or not. */
  names?: readonly string[] | undefined;
  /** The busiest so many. Default 100. */
  limit?: number | undefined;
}

export class SemaphoreRegistry {
  readonly #map: GateMap<string>;

  constructor(options: RegistryOptions = {}) {
    resolvePolicy(options);
    this.#map = new GateMap(options.idleMs ?? 60_000, options.clock);
  }

  /** How many names are known. */
  get size(): number {
    return this.#map.gates.size;
  }

  /** The busiest first: by `names` those asked for, else those in use. */
  stats({ names, limit = 100 }: RegistryStatsOptions = {}): SemaphoreStats[] {
    check("limit", limit);
    return [...this.#map.gates.values()]
      .filter((gate) => names?.includes(gate.key as string) ?? gate.inUse > 0)
      .map((gate) => statsOf(gate, gate.key as string))
      .sort((a, b) => b.percent - a.percent)
      .slice(0, limit);
  }

  /** Drops the names that have been idle for long enough; says how many. Happens by itself when a new name is made. */
  sweep(): number {
    return this.#map.sweep();
  }

  /** For `Semaphore`: the gate of that name, made or, if nothing is held, resized to fit. @internal */
  open(name: string, capacity: number, clock: Clock | undefined): Gate {
    const known = this.#map.gates.get(name);
    if (known === undefined || known.closed !== undefined) {
      const gate = new Gate(capacity, new GateContext(clock ?? this.#map.context.clock, this.#map), name);
      // Behind a closed one it has to wait until the name is free: see `current`.
      return known === undefined ? this.current(gate) : gate;
    }
    if (known.inUse > 0 && known.capacity !== capacity) throw new CapacityMismatchError(name, known.capacity, capacity);
    known.capacity = capacity;
    this.#map.becameIdle(known);
    return known;
  }

  /** For `Semaphore`: the gate that has the name of this one now; this one again if none has. @internal */
  current(gate: Gate): Gate {
    return this.#map.gates.get(gate.key as string) ?? this.#map.add(gate);
  }
}

/** Where names live unless a registry is given. */
export const defaultRegistry: SemaphoreRegistry = new SemaphoreRegistry();
