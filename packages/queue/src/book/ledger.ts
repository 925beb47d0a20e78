import { levelOf } from "../order/order.ts";
import type { Line } from "./line.ts";

/**
 * The sums over the lines of a class that the order needs. `recount` keeps each of them correct:
 *   LEDGER1 demand = the slots that active lines could hold, each up to the limit of its bucket;
 *     activeWeight = the sum of their weights
 *   LEDGER2 contendingWeight, contendingHeld = sums over the lines that wait and whose bucket is below its limit
 * The sums are derived and never stored. Two instances may differ in the last bits of a sum of fractions; that changes
 * no record.
 */
export class Ledger {
  activeWeight = 0;
  demand = 0;
  contendingWeight = 0;
  contendingHeld = 0;
  #active = 0;

  /** Whether a line holds slots or waits. */
  get isActive(): boolean {
    return this.#active > 0;
  }

  /** Call after any change of the line. */
  recount(line: Line): void {
    const { inFlight, limit, waiting, weight, isActive, contends } = line;
    const activeWeight = isActive ? weight : 0;
    const demand = Math.min(limit, waiting + inFlight);
    const contendingWeight = contends ? weight : 0;
    const contendingHeld = contends ? inFlight : 0;
    if (line.addsWeight > 0 !== isActive) this.#active += isActive ? 1 : -1;
    this.activeWeight += activeWeight - line.addsWeight;
    this.demand += demand - line.addsDemand;
    this.contendingWeight += contendingWeight - line.addsContendingWeight;
    this.contendingHeld += contendingHeld - line.addsContendingHeld;
    line.addsWeight = activeWeight;
    line.addsDemand = demand;
    line.addsContendingWeight = contendingWeight;
    line.addsContendingHeld = contendingHeld;
    // Sums of fractions drift. While no line is active, their exact values are known.
    if (this.#active === 0) this.activeWeight = this.contendingWeight = 0;
  }

  /** How fast the meter of a host with this number of slots advances. */
  rate(slots: number): number {
    return this.activeWeight > 0 ? Math.min(slots, this.demand) / this.activeWeight : 0;
  }

  /** Fair slots per weight, as `order.ts` defines it. */
  level(slots: number, inFlight: number): number {
    return levelOf(slots, inFlight - this.contendingHeld, this.contendingWeight);
  }
}

/** The widths above 1 of the waiters in the pool, and of leases and offers, with their numbers. Most hosts have none. */
export class Widths {
  #wide: Map<number, number> | undefined;

  /** The greatest of them. */
  get widest(): number {
    let widest = 1;
    if (this.#wide !== undefined) for (const width of this.#wide.keys()) widest = Math.max(widest, width);
    return widest;
  }

  add(width: number, by: 1 | -1): void {
    if (width === 1) return;
    this.#wide ??= new Map();
    const count = (this.#wide.get(width) ?? 0) + by;
    if (count === 0) this.#wide.delete(width);
    else this.#wide.set(width, count);
  }
}
