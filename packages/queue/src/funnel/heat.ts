import type { SchedulerOptions } from "../options.ts";

/**
 * Layer 4: is the host crowded?
 *
 * | pending, average wait                          | verdict      |
 * |------------------------------------------------|--------------|
 * | none pending, or average ≤ cold                | cold         |
 * | ≥ max(factor × slots, least), average ≥ hot    | hot          |
 * | anything between                               | what it was  |
 *
 * The average is an EWMA of the waits of sessions that were granted or timed out, and decays while nobody waits: a rush
 * of an hour ago says nothing about the next caller.
 */
export class Heat {
  #avgWaitMs = 0;
  #isHot = false;
  #idleSince: number | undefined;

  get avgWaitMs(): number {
    return this.#avgWaitMs;
  }

  addWait(waitMs: number): void {
    this.#avgWaitMs = OLD_SHARE * this.#avgWaitMs + (1 - OLD_SHARE) * waitMs;
  }

  isHot(pending: number, slots: number, settings: HeatSettings): boolean {
    this.#isHot = this.wouldBeHot(pending, slots, settings);
    return this.#isHot;
  }

  /** The same verdict, for whoever only looks: nothing is remembered. */
  wouldBeHot(pending: number, slots: number, settings: HeatSettings): boolean {
    const { scheduler, pollIntervalMs, minHoldMs } = settings;
    const coldMs = scheduler.coldAvgWaitMs ?? pollIntervalMs;
    const hotMs = scheduler.hotAvgWaitMs ?? 3 * pollIntervalMs + minHoldMs;
    const crowd = Math.max(scheduler.hotPendingFactor * slots, scheduler.hotPendingMin);
    if (pending === 0 || this.#avgWaitMs <= coldMs) return false;
    return this.#isHot || (pending >= crowd && this.#avgWaitMs >= hotMs);
  }

  becameIdle(now: number): void {
    this.#idleSince = now;
  }

  /** One share for each poll interval without a waiter. */
  becameBusy(now: number, pollIntervalMs: number): void {
    if (this.#idleSince === undefined) return;
    this.#avgWaitMs *= OLD_SHARE ** ((now - this.#idleSince) / pollIntervalMs);
    this.#idleSince = undefined;
  }
}

export interface HeatSettings {
  readonly scheduler: SchedulerOptions;
  readonly pollIntervalMs: number;
  readonly minHoldMs: number;
}

const OLD_SHARE = 0.8;
