/** Reports what a test left behind: slots, waiters, timers, and listeners on signals. */
import { watchedSignals } from "../signals.ts";
import type { FakeClock } from "./fake-clock.ts";

/** What `LeakGuard` can track: every kind of semaphore. */
export interface LeakTracked {
  /** The number of slots that are held. */
  readonly inUse: number;
  /** The number of waiters. */
  readonly waiting: number;
  /** The name in the report. */
  readonly name?: string | undefined;
}

/**
 * Call `track` with every object that a test creates, and `check` after the test. `check` reports each leak once, so
 * one leaking test does not fail those that follow.
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { LeakGuard } from "slotkeeper/testing";
 *
 * const guard = new LeakGuard();
 * const db = guard.track(new Semaphore(1, { name: "db" }));
 * const slot = await db.acquire();
 * slot.release();
 * guard.check(); // throws if a slot is still held or a caller waits
 * ```
 */
export class LeakGuard {
  readonly #clock: FakeClock | undefined;
  readonly #tracked = new Set<LeakTracked>();
  /** Signals that had listeners before; these belong to other code. */
  #signalsBefore = watchedSignals();

  /** With a clock, timers that are still set on it count as leaks, too. */
  constructor(clock?: FakeClock) {
    this.#clock = clock;
  }

  /** Tracks the object from now on, and returns it. */
  track<T extends LeakTracked>(tracked: T): T {
    this.#tracked.add(tracked);
    return tracked;
  }

  /** Throws one error that lists everything that is left. */
  check(): void {
    const leaks = [...this.#semaphores(), ...this.#timers(), ...this.#signals()];
    this.#tracked.clear();
    this.#signalsBefore = watchedSignals();
    if (leaks.length > 0) throw new Error(`Expected nothing to be left, got ${leaks.join("; ")}`);
  }

  #semaphores(): string[] {
    return [...this.#tracked]
      .filter(({ inUse, waiting }) => inUse > 0 || waiting > 0)
      .map((left) => {
        const name = left.name === undefined ? "" : ` "${left.name}"`;
        return `${left.constructor.name}${name} with ${left.inUse} in use and ${left.waiting} waiting`;
      });
  }

  #timers(): string[] {
    const pending = this.#clock?.pending ?? 0;
    return pending > 0 ? [`${pending} timers set`] : [];
  }

  #signals(): string[] {
    const left = watchedSignals() - this.#signalsBefore;
    return left > 0 ? [`${left} signals listened to`] : [];
  }
}
