/** Lets `burst` lines through at once, then one every `everyMs`; reports how many it dropped in between. */
export class LogThrottle {
  readonly #burst: number;
  readonly #everyMs: number;
  readonly #now: () => number;
  #left: number;
  #filledAt: number;
  #keptBack = 0;

  constructor({
    burst,
    everyMs,
    now = () => performance.now(),
  }: { burst: number; everyMs: number; now?: () => number }) {
    this.#burst = burst;
    this.#everyMs = everyMs;
    this.#now = now;
    this.#left = burst;
    this.#filledAt = now();
  }

  /** Returns how many lines were dropped before this one, or `undefined` if this one is dropped, too. */
  take(): number | undefined {
    const now = this.#now();
    const earned = Math.floor((now - this.#filledAt) / this.#everyMs);
    if (earned > 0) {
      this.#left = Math.min(this.#burst, this.#left + earned);
      this.#filledAt += earned * this.#everyMs;
    }
    if (this.#left <= 0) {
      this.#keptBack++;
      return undefined;
    }
    this.#left--;
    const keptBack = this.#keptBack;
    this.#keptBack = 0;
    return keptBack;
  }
}
