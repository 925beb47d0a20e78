/**
 * Gates by name, made when first asked for and dropped when idle for long.
 *
 * I1  At any time a name has at most one gate: a gate leaves the map only when nothing of it is held (so nobody waits,
 *     no timer runs for it and no grant is in flight: a hand-over counts as held from the moment of the release), in
 *     one step with the check. So looking up and dropping can never split a name in two.
 * I2  The idle list has those with nothing held, longest idle first, so a sweep looks at what it drops and one more.
 */
import type { Clock } from "./clock.ts";
import type { Gate } from "./gate.ts";
import { LinkedList } from "./linked-list.ts";
import { check, numberFrom } from "./options.ts";

/** When an idle gate is dropped, and by which clock. */
interface MapPolicy {
  readonly idleMs: number;
  readonly clock: Clock;
}

export abstract class GateMap {
  /** @internal */
  readonly gates: Map<string, Gate> = new Map();
  /** Names have nothing above them. @internal */
  readonly parent = undefined;
  readonly #idle = new LinkedList<Gate>();
  protected readonly policy: MapPolicy;

  constructor(policy: MapPolicy) {
    this.policy = policy;
  }

  /** How many names are kept, idle ones included. */
  get size(): number {
    return this.gates.size;
  }

  /** Drops the names that have been idle for `idleMs` (default: that of the options); returns how many. */
  sweep(idleMs: number = this.policy.idleMs): number {
    check("idleMs", numberFrom(0), idleMs);
    const { size } = this;
    const sinceAt = this.policy.clock.now() - idleMs;
    for (let gate = this.#idle.first; gate && gate.idleSinceAt <= sinceAt; gate = this.#idle.first) {
      this.#drop(gate);
    }
    return size - this.size;
  }

  /** @internal */
  add(gate: Gate): Gate {
    this.gates.set(gate.name as string, gate);
    this.becameIdle(gate);
    return gate;
  }

  /** A closed gate is forgotten at once. @internal */
  becameIdle(gate: Gate): void {
    gate.idleSinceAt = this.policy.clock.now();
    this.#idle.add(gate);
    if (gate.context.closed) this.#drop(gate);
  }

  #drop(gate: Gate): void {
    this.#idle.remove(gate);
    // A closed gate may have a successor by now.
    if (this.gates.get(gate.name as string) === gate) this.gates.delete(gate.name as string);
  }
}
