import type { SchedulerOptions } from "../options.ts";
import type { Book } from "./book.ts";

/**
 * Layer 4 of the funnel: is the host crowded?
 *
 * | pending, average wait                          | result       |
 * |------------------------------------------------|--------------|
 * | none pending, or average ≤ cold                | cold         |
 * | ≥ max(factor × slots, least), average ≥ hot    | hot          |
 * | anything between                               | unchanged    |
 *
 * The average is an EWMA of the waits of sessions that were granted or timed out. It decays while no session waits: a
 * crowd an hour ago does not make the host hot for the next caller.
 */

export interface HeatSettings {
  readonly scheduler: SchedulerOptions;
  readonly pollIntervalMs: number;
}

const OLD_SHARE = 0.8;
/** Not `1 - OLD_SHARE`, which is a little less: a wait that meets a threshold exactly must reach it. */
const NEW_SHARE = 0.2;

export function addWait(book: Book, waitedMs: number): void {
  book.draft.avgWaitMs = OLD_SHARE * book.head.avgWaitMs + NEW_SHARE * Math.max(0, waitedMs);
}

/** A session waits again. The average decays once for each poll interval in which no session waited. */
export function becomeBusy(book: Book, pollIntervalMs: number): void {
  const { idleSince, avgWaitMs } = book.head;
  if (idleSince === undefined) return;
  book.draft.avgWaitMs = avgWaitMs * OLD_SHARE ** ((book.now - idleSince) / pollIntervalMs);
  book.draft.idleSince = undefined;
}

export function becomeIdle(book: Book): void {
  if (book.head.idleSince === undefined && book.head.avgWaitMs > 0) book.draft.idleSince = book.now;
}

export function isHot(book: Book, { scheduler, pollIntervalMs }: HeatSettings): boolean {
  const { avgWaitMs, isHot: wasHot, slots } = book.head;
  const pending = book.size("waiter");
  const coldMs = scheduler.coldAvgWaitMs ?? pollIntervalMs;
  const hotMs = scheduler.hotAvgWaitMs ?? 3 * pollIntervalMs + book.policy.minHoldMs;
  const crowd = Math.max(scheduler.hotPendingFactor * slots, scheduler.hotPendingMin);
  if (pending === 0 || avgWaitMs <= coldMs) return false;
  return wasHot || (pending >= crowd && avgWaitMs >= hotMs);
}
