/**
 * Named semaphores: who asks for one name gets the same slots. Instances look the name up each time, so that after a
 * drop an old instance and a new one share. A closed gate keeps its name until its last holder releases.
 */
import { type Clock, realClock } from "./clock.ts";
import { CapacityMismatchError } from "./errors.ts";
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { GateMap } from "./gate-map.ts";
import { clockRule, countFrom, numberFrom, objectWith, type Rules, resolveOptions } from "./options.ts";
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

const STATS: { names: readonly string[] | undefined; limit: number } = { names: undefined, limit: 100 };
const STATS_RULES: Rules<RegistryStatsOptions> = { names: objectWith("includes"), limit: countFrom(0) };

/**
 * Where names live: semaphores of one name in one registry share their slots. `defaultRegistry` is used unless another is
 * given, as tests do.
 *
 * @example
 * const registry = new SemaphoreRegistry();
 * const db = new Semaphore(5, { name: "db", registry });
 * registry.stats(); // [{ name: "db", capacity: 5, inUse: …, … }]
 */
export class SemaphoreRegistry extends GateMap {
  constructor(options: RegistryOptions = {}) {
    super(resolveOptions({ idleMs: 60_000, clock: realClock }, { idleMs: numberFrom(0), clock: clockRule }, options));
  }

  /** The busiest first: by `names` those asked for, else those in use. */
  stats(options: RegistryStatsOptions = {}): SemaphoreStats[] {
    const { names, limit } = resolveOptions(STATS, STATS_RULES, options);
    return [...this.gates.values()]
      .filter(({ name, inUse }) => names?.includes(name as string) ?? inUse > 0)
      .map(statsOf)
      .sort((a, b) => b.percent - a.percent)
      .slice(0, limit);
  }

  /** For `Semaphore`: the gate of that name, made or, if nothing is held, fitted to what is asked. @internal */
  open(semaphore: string, requested: number, clock: Clock = this.policy.clock): Gate {
    this.sweep();
    const made = new Gate(requested, new GateContext(clock), this, semaphore);
    const known = this.current(made);
    const { capacity, inUse, context } = known;
    if (inUse === 0) {
      known.capacity = requested;
      context.clock = clock;
    } else if (capacity !== requested) throw new CapacityMismatchError({ semaphore, capacity, requested });
    // Behind a closed one a new one has to wait until the name is free: see `current`.
    return context.closed ? made : known;
  }

  /** For `Semaphore`: the gate that has the name of this one now; this one again if none has. @internal */
  current(gate: Gate): Gate {
    return this.gates.get(gate.name as string) ?? this.add(gate);
  }
}

/** Where names live unless a registry is given. */
export const defaultRegistry: SemaphoreRegistry = new SemaphoreRegistry();
