import type { Clock } from "slotkeeper";

/**
 * The time of a journaled store across restarts. A lease must neither end early nor last longer because the clock of the
 * machine was changed between two processes, and the tokens of clients name times of the store.
 *
 * RESUME1 The time of the store never goes back: it is at least the time of the last frame of the journal.
 * RESUME2 If the machine was not started again since, its uptime shows how much time has passed, and the time of the
 *     store continues by that much, whatever the clock shows.
 * RESUME3 Otherwise the clock decides. If it was set ahead meanwhile, leases end early by as much.
 * Within a process the clock is monotonic.
 */
export class ResumedClock implements Clock {
  readonly #clock: Clock;
  /** How far the time of the store is ahead of the clock. */
  readonly aheadMs: number;

  constructor(clock: Clock, aheadMs: number) {
    this.#clock = clock;
    this.aheadMs = aheadMs;
  }

  now(): number {
    return this.#clock.now() + this.aheadMs;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(callback, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }
}

/** How long the machine has been running, and since which start. */
export interface Uptime {
  readonly boot: string;
  readonly ms: number;
}

/** What a journal has about the time of its store. */
export interface KeptTime {
  /** The time of the last frame. */
  readonly lastAt: number;
  /** The start of the machine, and the time of the store at that start. */
  readonly start: { readonly boot: string; readonly at: number } | undefined;
}

/** `now`: the clock of this process. */
export function aheadOf({ lastAt, start }: KeptTime, uptime: Uptime | undefined, now: number): number {
  const isSameStart = start !== undefined && start.boot === uptime?.boot;
  const elapsed = isSameStart ? start.at + uptime.ms : now;
  const aheadMs = elapsed >= lastAt && Math.abs(elapsed - now) > TOLERANCE_MS ? elapsed - now : 0;
  return Math.max(aheadMs, lastAt - now);
}

/** The uptime has steps of 10 ms, and reading it takes time. */
const TOLERANCE_MS = 1_000;
