import type { Rank, Shares } from "./contract.ts";

/**
 * The order `slot-seconds`: weighted max-min fairness of the time for which lines hold slots, as
 * `docs/explanation/fairness.md` derives it for buckets: zone, slots per weight, use per weight, oldest head.
 *
 * ORDER1 Work conservation: the order ranks lines, it does not refuse any.
 * ORDER2 A line with an eligible waiter gets the next free slot if every other line holds more than its share.
 * ORDER3 The use per weight of lines that stay backlogged differs by no more than the bounds on that page.
 * ORDER4 No starvation: by ORDER3 the use of each backlogged line grows with the meter.
 * ORDER5 Within a line, waiters are served in the order of their arrival.
 * ORDER6 The state advances with each grant of a batch: k grants at once are the same as k grants one by one.
 * Cost: O(1) to compare two lines. `slot-seconds.ts` finds the best of n in O(log n).
 */
export function ranksBefore(a: Rank, b: Rank, { level, widest }: Shares, now: number): boolean {
  return ranksByShare(a, level * a.weight, b, level * b.weight, widest, now);
}

/** The same for shares that are not level × weight, as those of classes. */
export function ranksByShare(a: Rank, shareA: number, b: Rank, shareB: number, widest: number, now: number): boolean {
  const zoneA = zoneOf(a, shareA, widest);
  const zoneB = zoneOf(b, shareB, widest);
  if (zoneA !== zoneB) return zoneA < zoneB;
  const held = zoneA === 1 ? 0 : (a.inFlight + widest) / a.weight - (b.inFlight + widest) / b.weight;
  if (Math.abs(held) > ROUNDING) return held < 0;
  const used = usedPerWeight(a, now) - usedPerWeight(b, now);
  if (!isSameUse(used)) return used < 0;
  return hasOlderHead(a, b);
}

export function hasOlderHead(a: Rank, b: Rank): boolean {
  return a.headAt === b.headAt ? a.headKey < b.headKey : a.headAt < b.headAt;
}

/** Sums of use have rounding errors. Without them, lines that used the same would be ranked by the last bits of their sums. */
export function isSameUse(differenceMs: number): boolean {
  return Math.abs(differenceMs) <= ROUNDING_MS;
}

/** The use of the line per weight, including running holds up to `now`. */
export function usedPerWeight(rank: Rank, now: number): number {
  return (rank.usedMs + rank.inFlight * (now - rank.asOf)) / rank.weight;
}

/**
 * The use after a change of the weight. It keeps how far the use is ahead of the meter or behind it, in slot time. If it kept the
 * use per weight, one hold at a tiny weight would put a line far ahead, and it would starve after its weight was raised.
 */
export function reweighed(usedMs: number, before: number, after: number, meter: number): number {
  return before === after ? usedMs : Math.max(0, usedMs + meter * (after - before));
}

/** The fair number of slots per weight among the lines that want more. */
export function levelOf(slots: number, heldByOthers: number, contendingWeight: number): number {
  return contendingWeight > 0 ? Math.max(0, slots - heldByOthers) / contendingWeight : 0;
}

/** Use is added up in store time, and a double has a resolution of about 0.0002 ms there. */
export const ROUNDING_MS = 1e-3;
/** Shares are quotients of sums of weights, so 0.9999999 of a slot counts as a whole slot. */
export const ROUNDING = 1e-9;

/**
 * 0: the next slot is within its share. 1: a part of it is; if some requests need several slots, up to `widest` − 1 slots
 * more. 2: it is above its share.
 */
function zoneOf({ inFlight }: Rank, share: number, widest: number): 0 | 1 | 2 {
  if (widest === 1 && inFlight + 1 <= share + ROUNDING) return 0;
  return ownsShare(inFlight, share, widest) ? 1 : 2;
}

/** Whether a line or a class with this share is in zone 0 or 1. */
export function ownsShare(inFlight: number, share: number, widest: number): boolean {
  return inFlight < share + widest - 1 - ROUNDING;
}

export function ownsPart({ inFlight, weight }: Rank, { level, widest }: Shares): boolean {
  return ownsShare(inFlight, level * weight, widest);
}
