const TICK_MS = 50;

/**
 * For how long this process was kept from running. The fleet runs on the same machine: where the clients stand still, so do the
 * instances, and that is no fault of theirs.
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
