import type { Clock } from "slotkeeper";

/**
 * The store's time, as far as this instance knows it. The engine uses it everywhere, so that arrivals, deadlines and
 * leases mean the same at every instance, even if its own clock is wrong.
 *
 * CLOCK1 It is never ahead of the store's clock, as far as answers show: the `now` of an answer is already in the past
 *   when it arrives.
 * CLOCK2 It never goes back, with two exceptions: the first answer of the store, before which nothing is known, and a
 *   commit that the store refused because of its time.
 * If the store uses the clock of this process, both are the same.
 */
export class StoreTime implements Clock {
  readonly #clock: Clock;
  readonly #isShared: boolean;
  readonly #onSet: () => void;
  #offsetMs = 0;
  #isKnown = false;
  #last = Number.NEGATIVE_INFINITY;

  /** `onSet`: the time was set, and may have gone back (CLOCK2). */
  constructor(clock: Clock, isShared: boolean, onSet: () => void) {
    this.#clock = clock;
    this.#isShared = isShared;
    this.#onSet = onSet;
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

  /** An answer of the store has just arrived. `isRefused`: the store refused a commit because of its time. */
  learn(storeNow: number, isRefused = false): void {
    if (!this.#isShared) return;
    const offsetMs = storeNow - this.#clock.now();
    const isSet = !this.#isKnown || isRefused;
    this.#isKnown = true;
    if (isSet) {
      this.#offsetMs = offsetMs;
      this.#last = storeNow;
      this.#onSet();
    } else if (offsetMs > this.#offsetMs) this.#offsetMs = offsetMs;
    // The fastest answer is the most exact. Slower ones only correct for drift.
    else this.#offsetMs += DRIFT_SHARE * (offsetMs - this.#offsetMs);
  }
}

const DRIFT_SHARE = 0.01;
