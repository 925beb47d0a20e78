/**
 * Named semaphores: who asks for one name gets the same slots. Instances look the name up each time, so that after a
 * drop an old instance and a new one share. A closed gate keeps its name until its last holder releases.
 */
import type { Clock } from "./clock.ts";
import { CapacityMismatchError } from "./errors.ts";
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { GateMap } from "./gate-map.ts";
import { check, checkOptions } from "./policy.ts";
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
    checkOptions(options, "idleMs", "clock");
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

  /** For `Semaphore`: the gate of that name, made or, if nothing is held, fitted to what is asked. @internal */
  open(semaphore: string, requested: number, clock: Clock | undefined): Gate {
    const known = this.#map.gates.get(semaphore);
    if (known !== undefined && known.inUse > 0) {
      const { capacity } = known;
      if (capacity !== requested) throw new CapacityMismatchError({ semaphore, capacity, requested });
      if (known.closed === undefined) return known;
      // Behind a closed one a new one has to wait until the name is free: see `current`.
      return this.#make(semaphore, requested, clock);
    }
    const isOnClock = clock === undefined || clock === known?.context.clock;
    const gate = known !== undefined && isOnClock ? known : this.#make(semaphore, requested, clock);
    gate.capacity = requested;
    if (gate !== known) this.sweep();
    return this.#map.add(gate);
  }

  /** For `Semaphore`: the gate that has the name of this one now; this one again if none has. @internal */
  current(gate: Gate): Gate {
    const known = this.#map.gates.get(gate.key as string);
    if (known !== undefined) return known;
    this.sweep();
    return this.#map.add(gate);
  }

  #make(name: string, capacity: number, clock: Clock = this.#map.context.clock): Gate {
    return new Gate(capacity, new GateContext(clock, this.#map), name);
  }
}

/** Where names live unless a registry is given. */
export const defaultRegistry: SemaphoreRegistry = new SemaphoreRegistry();
