import type { Rank } from "./contract.ts";

/**
 * The order `slot-seconds`: weighted max-min fairness of the time for which buckets hold slots.
 * `docs/explanation/fairness.md` derives the rule and its bound.
 *
 * With the grant, bucket i would hold n_i + 1 slots. Its share is s_i = level · w_i, and it has used u_i slot-milliseconds.
 * The lowest zone goes first:
 *   0  n_i + 1 ≤ s_i        within its share: smallest (n_i + 1)/w_i, then smallest u_i/w_i, then the oldest head;
 *   1  n_i < s_i < n_i + 1  it owns a part of the slot: smallest u_i/w_i, then the oldest head;
 *   2  n_i ≥ s_i            above its share: as zone 0.
 *
 * ORDER1 Work conservation: the order ranks lines, it does not refuse any.
 * ORDER2 A bucket with an eligible waiter gets the next free slot if every other bucket holds more than its share.
 * ORDER3 The bound: buckets that stay backlogged, with holds of at most H, stay within
 *   |u_i/w_i − u_j/w_j| ≤ H/w_i + H/w_j of each other, plus their difference at the start.
 * ORDER4 No starvation: by ORDER3 the use of each backlogged bucket grows with the meter.
 * ORDER5 Within a bucket, waiters are served in the order of their arrival.
 * ORDER6 The state advances with each grant of a batch: k grants at once are the same as k grants one by one.
 * Cost: O(1) to compare two lines. `slot-seconds.ts` finds the best of n in O(log n).
 */
export function ranksBefore(a: Rank, b: Rank, level: number, now: number): boolean {
  const zoneA = zoneOf(a, level);
  const zoneB = zoneOf(b, level);
  if (zoneA !== zoneB) return zoneA < zoneB;
  const held = zoneA === 1 ? 0 : (a.inFlight + 1) / a.weight - (b.inFlight + 1) / b.weight;
  if (Math.abs(held) > ROUNDING) return held < 0;
  const used = usedPerWeight(a, now) - usedPerWeight(b, now);
  if (!isSameUse(used)) return used < 0;
  return a.headAt < b.headAt;
}

/** Sums of use have rounding errors. Without them, buckets that used the same would be ranked by the last bits of their sums. */
export function isSameUse(differenceMs: number): boolean {
  return Math.abs(differenceMs) <= ROUNDING_MS;
}

/** The use of the bucket per weight, including running holds up to `now`. */
export function usedPerWeight(rank: Rank, now: number): number {
  return (rank.usedMs + rank.inFlight * (now - rank.asOf)) / rank.weight;
}

/** The fair number of slots per weight among the buckets that want more. */
export function levelOf(slots: number, heldByOthers: number, contendingWeight: number): number {
  return contendingWeight > 0 ? Math.max(0, slots - heldByOthers) / contendingWeight : 0;
}

/** Use is added up in store time, and a double has a resolution of about 0.0002 ms there. */
export const ROUNDING_MS = 1e-3;
/** Shares are quotients of sums of weights, so 0.9999999 of a slot counts as a whole slot. */
const ROUNDING = 1e-9;

function zoneOf(rank: Rank, level: number): 0 | 1 | 2 {
  const share = level * rank.weight;
  if (rank.inFlight + 1 <= share + ROUNDING) return 0;
  return rank.inFlight < share - ROUNDING ? 1 : 2;
}
