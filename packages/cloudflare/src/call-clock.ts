import type { Clock } from "slotkeeper";
import { LONGEST_DELAY_MS } from "slotkeeper/parts";

/**
 * A clock whose timers run only while a call is in progress. A pending timer keeps an object in memory, and its owner pays
 * for that.
 *
 * CALLS1  While no call is in progress, no timer of the runtime is pending, so the object may be evicted.
 * CALLS2  A timer that became due meanwhile fires at the beginning of the next call. Nothing depends on it before: each
 *     decision first brings the book up to its own time.
 */
export class CallClock implements Clock {
  readonly #timers = new Set<Timer>();
  #calls = 0;

  get calls(): number {
    return this.#calls;
  }

  now(): number {
    return Date.now();
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    const timer: Timer = { callback, dueAt: this.now() + delayMs, running: undefined };
    this.#timers.add(timer);
    if (this.#calls > 0) this.#start(timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    if (!this.#timers.delete(timer as Timer)) return;
    clearTimeout((timer as Timer).running);
  }

  /** A call begins. Follow it with `end`. */
  begin(): void {
    if (this.#calls++ === 0) for (const timer of this.#timers) this.#start(timer);
  }

  end(): void {
    if (--this.#calls > 0) return;
    for (const timer of this.#timers) clearTimeout(timer.running);
  }

  #start(timer: Timer): void {
    const fire = () => {
      if (this.#timers.delete(timer)) timer.callback();
    };
    timer.running = setTimeout(fire, Math.min(Math.max(0, timer.dueAt - this.now()), LONGEST_DELAY_MS));
  }
}

interface Timer {
  readonly callback: () => void;
  readonly dueAt: number;
  running: ReturnType<typeof setTimeout> | undefined;
}
