/** How fast something goes up: the average time between two steps, an EWMA. */
export class DrainMeter {
  #lastAt: number | undefined;
  #lastCount = 0;
  #intervalMs: number | undefined;

  /** Undefined until there were two. */
  get intervalMs(): number | undefined {
    return this.#intervalMs;
  }

  /** One more. */
  step(now: number): void {
    this.reached(this.#lastCount + 1, now);
  }

  /** `count` only grows. */
  reached(count: number, now: number): void {
    const steps = count - this.#lastCount;
    if (steps <= 0) return;
    if (this.#lastAt !== undefined) {
      const sampleMs = (now - this.#lastAt) / steps;
      const old = OLD_SHARE ** steps;
      this.#intervalMs = this.#intervalMs === undefined ? sampleMs : old * this.#intervalMs + (1 - old) * sampleMs;
    }
    this.#lastAt = now;
    this.#lastCount = count;
  }
}

const OLD_SHARE = 0.8;
