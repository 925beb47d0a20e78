import type { Rank } from "./contract.ts";

/**
 * The order: which bucket is next when a slot of a host is free.
 *
 * ## What is shared
 * A host has S slots. Bucket i has weight w_i, holds n_i slots now, and has used u_i(t) slot-milliseconds, where
 * du_i/dt = n_i. A count of grants would treat two buckets with ten grants each as equal, even if one holds each slot
 * for a second and the other for fifty milliseconds. The load on the upstream and the delay of waiters depend on u. So
 * the aim is weighted max-min fairness of u: no bucket can get more without taking from a bucket that has the same or
 * less per weight.
 *
 * ## From the ideal to the rule
 * In the ideal with divisible slots, each backlogged bucket always holds exactly its share s_i = L·w_i slots, with the
 * level L = (S − slots held by buckets that want no more) / (sum of w over buckets that want more). Slots are whole and
 * a hold cannot be cut short. So the rule stays as close to the ideal as whole slots allow, in two steps:
 *   - in space: a bucket never gets n_i ≥ s_i + 1 slots while another with fewer per weight waits;
 *   - in time: a slot that belongs to no share as a whole goes round, always to the bucket with the least use per weight.
 * With the grant, bucket i would hold n_i + 1 slots. This puts it into one of three zones, and the lowest zone goes
 * first:
 *   0  n_i + 1 ≤ s_i        within its share: smallest (n_i + 1)/w_i, then smallest u_i/w_i, then the oldest head;
 *   1  n_i < s_i < n_i + 1  it owns a part of the slot: smallest u_i/w_i, then the oldest head;
 *   2  n_i ≥ s_i            above its share, granted only because no better waiter exists: same order as zone 0.
 * With equal weights the zones follow from (n_i + 1)/w_i, and the rule becomes: smallest (n + 1)/w, then smallest u/w,
 * then the oldest head. With unequal weights this shorter rule starves a bucket: with one slot and the weights 3 and 1,
 * (0 + 1)/3 is always before (0 + 1)/1. Zone 1 prevents that (decision 0031).
 *
 * ## Coming back from idle
 * A bucket that was idle has used little. It must not claim the difference, because it would shut out all others until
 * it caught up. So the host keeps a meter R: what a bucket of weight 1 would have used if it had always been active.
 * dR/dt = min(S, demand) / (sum of w over active buckets), where the demand of a bucket is what it holds and waits for,
 * up to its own limit. A bucket that becomes active starts at max(u_i, R·w_i). So an idle time costs it nothing, and
 * does not cancel a debt: u_i is deleted only while the bucket is idle and below R·w_i, where that changes nothing.
 *
 * ## What is guaranteed
 * ORDER1 Work conservation: a free slot is never withheld from a bucket with an eligible waiter. The order ranks
 *   buckets, it does not refuse any.
 * ORDER2 A bucket with an eligible waiter gets the next free slot if every other bucket holds more than its share.
 * ORDER3 The bound: while a set of buckets stays backlogged with unchanged weights, slots and limits, and no hold is
 *   longer than H, any two of them stay within |u_i/w_i − u_j/w_j| ≤ H/w_i + H/w_j, plus their difference at the start.
 *   Reason: in zone 1 the bucket ahead gets no slot while the one behind waits in the zone. So it gets further ahead
 *   only through holds that were running when it passed the other: one more of its own, at most H, and one that the
 *   other bucket lost, at most H. Over a time T the slot-seconds of a bucket thus differ from the oracle's by at most
 *   2H/w per bucket, for any T: the relative error falls as 1/T. A FIFO or a count of grants has no such bound; the
 *   simulations show both failing.
 * ORDER4 No starvation: by ORDER3 the use of each backlogged bucket grows with R.
 * ORDER5 Within a bucket, waiters are served in the order of their arrival.
 * ORDER6 The state advances with each grant of a batch: k grants at once are the same as k grants one by one.
 *
 * ## What is not promised
 * Holds are not cut short. A bucket that took all slots of an idle host keeps them until it releases them. New buckets
 * are then served first until they have caught up with R (at most S·H of one bucket's holds).
 * Buckets that are at their own limit or in cooldown are skipped. Their share goes to the others and is not paid back
 * later.
 * A client that uses a new name for each request gets the share of one bucket for each name.
 *
 * Cost: O(1) to compare two buckets. `bucket-order.ts` finds the best of n in O(log n).
 * Source: weighted fair queuing over start tags (Demers, Keshav, Shenker 1989; Kubernetes' fair queuing for requests),
 * with use instead of virtual finish times, because the length of a hold is not known when it starts.
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
