/**
 * Gates by name or key, made when first asked for and dropped when idle for long.
 *
 * I1  At any time a key has at most one gate: a gate leaves the map only when nothing of it is held (so nobody waits,
 *     no timer runs for it and no grant is in flight: a hand-over counts as held from the moment of the release), in
 *     one step with the check. So looking up and dropping can never split a key in two.
 * I2  The idle list has those with nothing held, longest idle first, so a sweep looks at what it drops and one more.
 */
import type { Clock } from "./clock.ts";
import type { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { LinkedList } from "./linked-list.ts";
import { check } from "./policy.ts";

export class GateMap<K> {
  readonly gates = new Map<K, Gate>();
  readonly #idle = new LinkedList<Gate>();
  readonly #idleMs: number;
  readonly context: GateContext;

  constructor(idleMs: number, clock: Clock | undefined) {
    this.#idleMs = idleMs;
    this.context = new GateContext(clock, this);
  }

  add(gate: Gate): Gate {
    this.gates.set(gate.key as K, gate);
    this.becameIdle(gate);
    return gate;
  }

  /** A closed gate is forgotten at once. */
  becameIdle(gate: Gate): void {
    if (gate.inUse > 0) return;
    gate.idleSinceAt = this.context.clock.now();
    this.#idle.add(gate);
    if (gate.closed !== undefined) this.#drop(gate);
  }

  becameBusy(gate: Gate): void {
    this.#idle.remove(gate);
  }

  /** Drops those that have been idle for so long; says how many. */
  sweep(idleMs: number = this.#idleMs): number {
    check("idleMs", idleMs);
    const sizeBefore = this.gates.size;
    const sinceAt = this.context.clock.now() - idleMs;
    for (let gate = this.#idle.first; gate !== undefined && gate.idleSinceAt <= sinceAt; gate = this.#idle.first) {
      this.#drop(gate);
    }
    return sizeBefore - this.gates.size;
  }

  #drop(gate: Gate): void {
    this.#idle.remove(gate);
    this.gates.delete(gate.key as K);
  }
}
