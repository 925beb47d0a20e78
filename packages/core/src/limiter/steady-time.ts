/**
 * Time that never runs backwards. If the clock is set back by an hour, time stands still for that moment and then
 * continues with the clock. Budgets do not stall for the hour, and they do not fill twice.
 */
import type { Clock } from "../clock.ts";

export class SteadyTime implements Clock {
  readonly #clock: Clock;
  /** By how much the clock was set back, in total, in milliseconds. */
  behind = 0;
  #last = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    const now = this.#clock.now();
    if (now < this.#last) this.behind += this.#last - now;
    this.#last = now;
    return now + this.behind;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(callback, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }
}
