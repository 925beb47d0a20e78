import type { Book } from "../../book/book.ts";
import type { WeightedSettings } from "./settings.ts";

/**
 * Layer 4 of the funnel: is the host crowded?
 *
 * | pending, average wait                          | result       |
 * |------------------------------------------------|--------------|
 * | none pending, or average ≤ cold                | cold         |
 * | ≥ max(factor × slots, least), average ≥ hot    | hot          |
 * | anything between                               | unchanged    |
 */
export function measureHeat(book: Book, { scheduler, pollIntervalMs }: WeightedSettings): boolean {
  const { avgWaitMs, weighted, slots } = book.head;
  const pending = book.size("waiter");
  const coldMs = scheduler.coldAvgWaitMs ?? pollIntervalMs;
  const hotMs = scheduler.hotAvgWaitMs ?? 3 * pollIntervalMs + book.policy.minHoldMs;
  const crowd = Math.max(scheduler.hotPendingFactor * slots, scheduler.hotPendingMin);
  if (pending === 0 || avgWaitMs <= coldMs) return false;
  return weighted?.isHot === true || (pending >= crowd && avgWaitMs >= hotMs);
}
