import type { Clock } from "slotkeeper";

/**
 * The store's time, as well as this instance knows it. The engine reckons in it throughout: arrivals, deadlines and leases mean
 * the same at every instance, however wrong its own clock is.
 *
 * CLOCK1 never ahead of the store's clock, as far as answers show: an answer's `now` is already past when it arrives
 * CLOCK2 never goes back
 * Where the store has no clock but ours, the two are one.
 */
export class StoreTime implements Clock {
  readonly #clock: Clock;
  readonly #isShared: boolean;
  #offsetMs = 0;
  #isKnown = false;
  #last = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, isShared: boolean) {
    this.#clock = clock;
    this.#isShared = isShared;
  }

  /** How far the store's clock is ahead of this instance's. */
  get skewMs(): number {
    return this.#offsetMs;
  }

  now(): number {
    this.#last = Math.max(this.#last, this.#clock.now() + this.#offsetMs);
    return this.#last;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(callback, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }

  /** An answer has just come. `isRefused`: the store found our time out of bounds. */
  learn(storeNow: number, isRefused = false): void {
    if (!this.#isShared) return;
    const offsetMs = storeNow - this.#clock.now();
    if (!this.#isKnown || isRefused) {
      this.#offsetMs = offsetMs;
      this.#last = isRefused ? storeNow : this.#last;
    } else if (offsetMs > this.#offsetMs) this.#offsetMs = offsetMs;
    // The quickest answer is the truest; slower ones only count as the clocks drift apart.
    else this.#offsetMs += DRIFT_SHARE * (offsetMs - this.#offsetMs);
    this.#isKnown = true;
  }
}

const DRIFT_SHARE = 0.01;
