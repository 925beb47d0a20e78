/**
 * Time that never runs backwards. When the clock is set back, the time that had already passed stays passed, and the
 * clock's later progress counts as usual: no budget stalls for the hour that was set back, and none is paid twice.
 */
import type { Clock } from "../clock.ts";

export class SteadyTime {
  readonly clock: Clock;
  /** What the clock was set back by, in all. */
  behind = 0;
  #last = -Infinity;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  now(): number {
    const now = this.clock.now();
    if (now < this.#last) this.behind += this.#last - now;
    this.#last = now;
    return now + this.behind;
  }
}
