/** How fast a queue empties: the average time between two leaving it, an EWMA. */
export class DrainMeter {
  #lastAt: number | undefined;
  #intervalMs: number | undefined;

  /** Undefined until two have left. */
  get intervalMs(): number | undefined {
    return this.#intervalMs;
  }

  left(now: number): void {
    if (this.#lastAt !== undefined) {
      const sampleMs = now - this.#lastAt;
      this.#intervalMs = this.#intervalMs === undefined ? sampleMs : 0.8 * this.#intervalMs + 0.2 * sampleMs;
    }
    this.#lastAt = now;
  }
}
