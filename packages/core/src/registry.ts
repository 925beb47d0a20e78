/**
 * Named semaphores: who asks for one name gets the same slots. Instances look the name up each time, so that after a
 * drop an old instance and a new one share. A closed gate keeps its name until its last holder releases.
 *
 * REGISTRY1  At any time a name has at most one gate: a gate leaves the map only when nothing of it is held (so none waits,
 *     no timer runs for it and no grant is in flight: a hand-over counts as held from the moment of the release), in
 *     one step with the check. So looking up and dropping can never split a name in two.
 * REGISTRY2  The idle list has all with nothing held, longest idle first. One that is in use again stays in it until a sweep
 *     comes across it, or it is idle anew. So taking a slot need not touch the list, and a sweep is O(1), amortised.
 */
import { type Clock, realClock } from "./clock.ts";
import { CapacityMismatchError } from "./errors.ts";
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { LinkedList } from "./linked-list.ts";
import { check, checkOptions, clockRule, countFrom, objectWith, type Rules } from "./options.ts";
import { PERIOD } from "./policy.ts";
import { type SemaphoreStats, statsOf } from "./stats.ts";

/** Options of `SemaphoreRegistry`. */
export interface RegistryOptions {
  /** A name without holders and waiters is removed after this time, in milliseconds. @defaultValue one minute */
  idleMs?: number | undefined;
  /** The clock that measures how long a name has been idle. @defaultValue real time */
  clock?: Clock | undefined;
}

/** Options of `SemaphoreRegistry.stats`. */
export interface RegistryStatsOptions {
  /** Returns only these names, in use or not. @defaultValue all names in use */
  names?: readonly string[] | undefined;
  /** The largest number of names to return. @defaultValue 100 */
  limit?: number | undefined;
}

const RULES: Rules<RegistryOptions> = { idleMs: PERIOD, clock: clockRule };
const STATS_RULES: Rules<RegistryStatsOptions> = { names: objectWith("includes"), limit: countFrom(0) };

/**
 * A namespace: semaphores with the same name in the same registry share their slots. Without the option `registry`, a
 * semaphore uses `defaultRegistry`.
 *
 * @example
 * ```ts
 * import { Semaphore, SemaphoreRegistry } from "slotkeeper";
 *
 * const registry = new SemaphoreRegistry();
 * const db = new Semaphore(5, { name: "db", registry });
 * const slot = await db.acquire();
 * console.log(registry.stats()); // [{ name: "db", capacity: 5, inUse: 1, … }]
 * slot.release();
 * ```
 */
export class SemaphoreRegistry {
  readonly #gates = new Map<string, Gate>();
  readonly #idle = new LinkedList<Gate>();
  readonly #idleMs: number;
  readonly #clock: Clock;

  constructor(options: RegistryOptions = {}) {
    checkOptions(options, RULES);
    this.#idleMs = options.idleMs ?? 60_000;
    this.#clock = options.clock ?? realClock;
  }

  /** How many names are kept, idle ones included. */
  get size(): number {
    return this.#gates.size;
  }

  /** Drops the names that have been idle for `idleMs` (default: that of the options); returns how many. */
  sweep(idleMs: number = this.#idleMs): number {
    check("idleMs", PERIOD, idleMs);
    const { size } = this;
    const sinceAt = this.#clock.now() - idleMs;
    for (let gate = this.#idle.first; gate && gate.sinceAt <= sinceAt; gate = this.#idle.first) {
      if (gate.inUse > 0) this.#idle.remove(gate);
      else this.#drop(gate);
    }
    return size - this.size;
  }

  /** Statistics of the given `names`, or of all names in use, the busiest first. */
  stats(options: RegistryStatsOptions = {}): SemaphoreStats[] {
    checkOptions(options, STATS_RULES);
    const { names, limit = 100 } = options;
    return [...this.#gates.values()]
      .filter(({ name, inUse }) => names?.includes(name as string) ?? inUse > 0)
      .map(statsOf)
      .sort((a, b) => b.percent - a.percent)
      .slice(0, limit);
  }

  /** For `Semaphore`: the gate of that name, made or, if nothing is held, fitted to what is asked. @internal */
  open(semaphore: string, requested: number, clock: Clock = this.#clock): Gate {
    this.sweep();
    const made = new Gate(requested, new GateContext(clock), this.#becameIdle, semaphore);
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
    const name = gate.name as string;
    const known = this.#gates.get(name);
    if (known) return known;
    this.#gates.set(name, gate);
    this.#becameIdle(gate);
    return gate;
  }

  /** A closed one is forgotten at once. */
  readonly #becameIdle = (gate: Gate): void => {
    gate.sinceAt = this.#clock.now();
    this.#idle.add(gate);
    if (gate.context.closed) this.#drop(gate);
  };

  #drop(gate: Gate): void {
    const name = gate.name as string;
    this.#idle.remove(gate);
    // A closed gate may have a successor by now.
    if (this.#gates.get(name) === gate) this.#gates.delete(name);
  }
}

/**
 * The registry of semaphores that are created without the option `registry`.
 *
 * @example
 * ```ts
 * import { defaultRegistry, Semaphore } from "slotkeeper";
 *
 * const slot = await new Semaphore(5, { name: "db" }).acquire();
 * console.log(defaultRegistry.stats().map(({ name, percent }) => `${name}: ${percent} %`)); // ["db: 20 %"]
 * slot.release();
 * ```
 */
export const defaultRegistry: SemaphoreRegistry = new SemaphoreRegistry();
