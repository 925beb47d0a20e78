/**
 * How fast waiters go: the average time between two steps, an EWMA. Only time in which a session waited is sampled: the pause
 * before a rush says nothing about how fast a queue moves.
 */
export class DrainMeter {
  #lastAt: number | undefined;
  #intervalMs: number | undefined;

  /** Undefined until there were two steps with a session waiting in between. */
  get intervalMs(): number | undefined {
    return this.#intervalMs;
  }

  /** One waiter less. */
  step(now: number): void {
    if (this.#lastAt !== undefined) {
      const sampleMs = now - this.#lastAt;
      this.#intervalMs =
        this.#intervalMs === undefined ? sampleMs : OLD_SHARE * this.#intervalMs + (1 - OLD_SHARE) * sampleMs;
    }
    this.#lastAt = now;
  }

  /** No session waits: the time until the next step is not counted. */
  rest(): void {
    this.#lastAt = undefined;
  }
}

const OLD_SHARE = 0.8;
