/**
 * Named semaphores: instances with the same name share their slots. An instance looks up its name in every call. So an old
 * instance and a new one share slots even if the name was removed in between. A closed gate keeps its name until its last
 * holder releases.
 *
 * REGISTRY1  At any time a name has at most one gate. A gate is removed from the map only when nothing of it is held, in
 *     one step with that check. Then no caller waits, no timer runs for it and no grant is in progress, because a
 *     hand-over counts as held from the moment of the release. So a lookup and a removal can never give one name two
 *     gates.
 * REGISTRY2  The idle list contains every gate without holders, the longest idle first. A gate that is in use again stays
 *     in the list until a sweep finds it or it becomes idle again. So taking a slot does not touch the list, and a sweep
 *     takes O(1) time, amortised.
 */
import { type Clock, realClock } from "./clock.ts";
import { CapacityMismatchError } from "./errors.ts";
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { LinkedList } from "./linked-list.ts";
import { check, clockRule, countFrom, objectWith, type Rules, readOptions } from "./options.ts";
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

  constructor(options?: RegistryOptions) {
    const { idleMs = 60_000, clock = realClock } = readOptions(options, RULES);
    this.#idleMs = idleMs;
    this.#clock = clock;
  }

  /** Number of names, including idle names that are not removed yet. */
  get size(): number {
    return this.#gates.size;
  }

  /** Removes the names that have been idle for `idleMs` milliseconds (default: the option). Returns how many. */
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
  stats(options?: RegistryStatsOptions): SemaphoreStats[] {
    const { names, limit = 100 } = readOptions(options, STATS_RULES);
    return [...this.#gates.values()]
      .filter(({ name, inUse }) => names?.includes(name as string) ?? inUse > 0)
      .map(statsOf)
      .sort((a, b) => b.percent - a.percent)
      .slice(0, limit);
  }

  /**
   * For `Semaphore`: returns the gate of the name, and creates it if needed. If nothing of it is held, the gate gets the
   * requested capacity and clock.
   * @internal
   */
  open(semaphore: string, requested: number, clock: Clock = this.#clock): Gate {
    this.sweep();
    const made = new Gate(requested, new GateContext(clock), this.#becameIdle, semaphore);
    const known = this.current(made);
    const { capacity, inUse, context } = known;
    if (inUse === 0) {
      known.capacity = requested;
      context.clock = clock;
    } else if (capacity !== requested) throw new CapacityMismatchError({ semaphore, capacity, requested });
    // If the name belongs to a closed gate, the new gate gets the name when that gate is removed: see `current`.
    return context.closed ? made : known;
  }

  /** For `Semaphore`: returns the gate that has the name of `gate` now. If none has it, `gate` gets it. @internal */
  current(gate: Gate): Gate {
    const name = gate.name as string;
    const known = this.#gates.get(name);
    if (known) return known;
    this.#gates.set(name, gate);
    this.#becameIdle(gate);
    return gate;
  }

  /** Called by a gate when it becomes idle. A closed gate is removed at once. */
  readonly #becameIdle = (gate: Gate): void => {
    gate.sinceAt = this.#clock.now();
    this.#idle.add(gate);
    if (gate.context.closed) this.#drop(gate);
  };

  #drop(gate: Gate): void {
    const name = gate.name as string;
    this.#idle.remove(gate);
    // The name of a closed gate may already belong to another gate.
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
