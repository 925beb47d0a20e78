const TICK_MS = 50;

/**
 * Measures for how long this process could not run. The fleet runs on the same machine: when the clients stand still,
 * the instances do, too, and that is not their fault.
 */
export class LagMeter {
  #totalMs = 0;
  #lastAt = performance.now();
  readonly #timer = setInterval(() => this.#tick(), TICK_MS);

  get totalMs(): number {
    return this.#totalMs;
  }

  restart(): void {
    this.#totalMs = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    const lateMs = now - this.#lastAt - TICK_MS;
    this.#lastAt = now;
    if (lateMs > TICK_MS) this.#totalMs += lateMs;
  }
}
