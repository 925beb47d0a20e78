/**
 * A limit that gives way to pressure: multiplicative down, additive up, as in TCP's congestion avoidance. Going down
 * fast ends the pressure in a few steps; coming up slowly finds the level that holds without running into it again.
 *
 * GOVLIMIT1  least ≤ current ≤ most, always.
 * GOVLIMIT2  High pressure halves what is there, rounded down; low pressure adds one step; anything else changes nothing.
 */

/** Whether memory is short: `high` lowers limits, `low` raises them again. */
export type Pressure =
  /** Above the high water mark. */
  | "high"
  /** Between the marks: what was done is given time to work. */
  | "steady"
  /** Below the low water mark. */
  | "low"
  /** Nothing sampled yet, or the host did not say. */
  | "unknown";

export class GovernedLimit {
  readonly least: number;
  readonly most: number;
  readonly #step: number;
  #current: number;

  /** Starts at the most. Where that is below the least, the most holds. */
  constructor(least: number, most: number, step: number) {
    this.least = Math.min(least, most);
    this.most = most;
    this.#step = step;
    this.#current = most;
  }

  get current(): number {
    return this.#current;
  }

  /** Says whether it changed. */
  adapt(pressure: Pressure): boolean {
    const before = this.#current;
    if (pressure === "high") this.#current = Math.max(this.least, Math.floor(before / 2));
    if (pressure === "low") this.#current = Math.min(this.most, before + this.#step);
    return this.#current !== before;
  }
}
