/**
 * A limit that follows the memory pressure: it decreases by a factor and increases by steps, as in the congestion
 * control of TCP. The fast decrease ends the pressure in a few steps. The slow increase finds the level that the memory
 * allows.
 *
 * GOVLIMIT1  least ≤ current ≤ most at all times.
 * GOVLIMIT2  High pressure halves the limit, rounded down. Low pressure adds one step. Otherwise the limit stays the
 *     same.
 */

/** Whether memory is short: `high` lowers limits, `low` raises them again. */
export type Pressure =
  /** Above the high water mark. */
  | "high"
  /** Between the marks: limits stay as they are, so that the last change can take effect. */
  | "steady"
  /** Below the low water mark. */
  | "low"
  /** Not sampled yet, or the host does not report its memory. */
  | "unknown";

export class GovernedLimit {
  readonly least: number;
  readonly most: number;
  readonly #step: number;
  #current: number;

  /** Starts at `most`. If `most` is below `least`, the limit is always `most`. */
  constructor(least: number, most: number, step: number) {
    this.least = Math.min(least, most);
    this.most = most;
    this.#step = step;
    this.#current = most;
  }

  get current(): number {
    return this.#current;
  }

  /** Returns whether the limit changed. */
  adapt(pressure: Pressure): boolean {
    const before = this.#current;
    if (pressure === "high") this.#current = Math.max(this.least, Math.floor(before / 2));
    if (pressure === "low") this.#current = Math.min(this.most, before + this.#step);
    return this.#current !== before;
  }
}
