import { type Clock, realClock } from "slotkeeper";
import { LONGEST_DELAY_MS } from "slotkeeper/parts";

/** Real time until it is stopped. After that, no timer fires and none is set. */
export class ServiceClock implements Clock {
  readonly #timers = new Set<unknown>();
  #isStopped = false;

  now(): number {
    return realClock.now();
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    if (this.#isStopped) return undefined;
    const fire = () => {
      this.#timers.delete(timer);
      callback();
    };
    const timer = realClock.setTimer(fire, Math.min(delayMs, LONGEST_DELAY_MS));
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer);
    realClock.clearTimer(timer);
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#timers) realClock.clearTimer(timer);
    this.#timers.clear();
  }
}
