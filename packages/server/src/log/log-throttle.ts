/** Lets `burst` lines through at once, then one every `everyMs`; reports how many it dropped in between. */
export class LogThrottle {
  readonly #burst: number;
  readonly #everyMs: number;
  #left: number;
  #filledAt = performance.now();
  #keptBack = 0;

  constructor({ burst, everyMs }: { readonly burst: number; readonly everyMs: number }) {
    this.#burst = burst;
    this.#everyMs = everyMs;
    this.#left = burst;
  }

  /** Returns how many lines were dropped before this one, or `undefined` if this one is dropped, too. */
  take(): number | undefined {
    const earned = Math.floor((performance.now() - this.#filledAt) / this.#everyMs);
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
