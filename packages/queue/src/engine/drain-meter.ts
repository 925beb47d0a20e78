/**
 * How fast a queue moves: the average time between two steps, as an EWMA. Only time during which a session waits
 * counts. The pause before a rush does not show how fast the queue moves.
 */
export class DrainMeter {
  #lastAt: number | undefined;
  #intervalMs: number | undefined;

  /** Undefined until two steps happened while a session waited. */
  get intervalMs(): number | undefined {
    return this.#intervalMs;
  }

  /** One waiter left the queue. */
  step(now: number): void {
    if (this.#lastAt !== undefined) {
      const sampleMs = now - this.#lastAt;
      this.#intervalMs =
        this.#intervalMs === undefined ? sampleMs : OLD_SHARE * this.#intervalMs + (1 - OLD_SHARE) * sampleMs;
    }
    this.#lastAt = now;
  }

  /** No session waits. The time until the next step does not count. */
  rest(): void {
    this.#lastAt = undefined;
  }
}

const OLD_SHARE = 0.8;
