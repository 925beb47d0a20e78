import type { Rank } from "./contract.ts";

/**
 * The order: whose turn it is when a slot of a host is free.
 *
 * ## What is shared
 * A host has S slots. Bucket i has weight w_i, n_i slots in its hands now, and has used u_i(t) slot-milliseconds, where
 * du_i/dt = n_i. Counting grants would call two buckets equal that got ten grants each, though one holds for a second
 * and the other for fifty milliseconds; what the upstream feels, and what a waiter is kept waiting by, is u. The aim is
 * weighted max-min fairness of u: no bucket can be given more without taking from one that has no more per weight.
 *
 * ## From the ideal to the rule
 * In the fluid ideal each of the backlogged buckets holds exactly its share s_i = L·w_i slots at every moment, with the
 * level L = (S − slots held by buckets that want no more) / (sum of w over buckets that do). Slots are whole and a hold
 * cannot be cut short, so the rule keeps as near to the ideal as whole slots allow, in two steps:
 *   - in space: never let a bucket hold n_i ≥ s_i + 1 while another, with fewer per weight, waits;
 *   - in time: the slot that no share fills wholly goes round, always to the bucket that has used least per weight.
 * With the grant, bucket i would hold n_i + 1. That lands it in one of three zones, and the lower zone goes first:
 *   0  n_i + 1 ≤ s_i        its own share: smallest (n_i + 1)/w_i, then smallest u_i/w_i, then the oldest head;
 *   1  n_i < s_i < n_i + 1  the part of a slot that is its own: smallest u_i/w_i, then the oldest head;
 *   2  n_i ≥ s_i            more than its share, granted only because no better waiter exists: as zone 0.
 * With equal weights the zones follow from (n_i + 1)/w_i, and the rule reads: smallest (n + 1)/w, then smallest u/w,
 * then the oldest head. With unequal weights that shorter rule starves: one slot, weights 3 and 1, and (0 + 1)/3 is
 * before (0 + 1)/1 for ever. Zone 1 is what prevents it (decision 0031).
 *
 * ## Coming back from idle
 * A bucket that was idle has used little, and must not claim that: it would shut out all others until it caught up. So
 * the host keeps a meter R, what a bucket of weight 1 that never slept would have used: dR/dt = min(S, demand) / (sum of
 * w over active buckets), a bucket's demand being what it waits for and holds, up to its own limit. A bucket that
 * becomes active starts at max(u_i, R·w_i). It is not made to pay for its sleep, and not forgiven a debt either: u_i is
 * forgotten only while idle and below R·w_i, where forgetting changes nothing.
 *
 * ## What is guaranteed
 * ORDER1 Work conservation: a free slot is never withheld from a bucket with an eligible waiter. The order ranks, it does not refuse.
 * ORDER2 A bucket with an eligible waiter is granted the next free slot if every other holds more than its share.
 * ORDER3 The bound. While a set of buckets stays backlogged with unchanged weights, slots and limits, and no hold is longer
 *    than H, any two of them stay within |u_i/w_i − u_j/w_j| ≤ H/w_i + H/w_j, plus what they were apart at the start.
 *    Why: in zone 1 the bucket ahead is not granted while the one behind waits in the zone, so it gets further ahead only
 *    through holds that were running when it passed: one more of its own, at worst H, and one the other lost, at worst H.
 *    Over time T a bucket's slot-seconds thus differ from the oracle's by at most 2H/w per bucket, whatever T: the
 *    relative error falls as 1/T. A FIFO or a count of grants has no such bound; the simulations show both failing.
 * ORDER4 No starvation: by ORDER3 each backlogged bucket's use grows with R.
 * ORDER5 FIFO inside a bucket, by arrival.
 * ORDER6 The state advances with each grant inside a batch: k grants at once are the k grants one by one.
 *
 * ## What is not promised
 * Holds are not cut short: a bucket that took all slots of an idle host keeps them until it gives them back, and
 * newcomers are served first until they have caught up with R (at most S·H of one bucket's holds). Buckets with a limit
 * of their own or in cooldown are skipped and never waited for, so their share goes to the others and is not owed later.
 * Nothing is promised to a bucket that makes a new name for each request: each name is a bucket, and has the share of one.
 *
 * Cost: O(1) to compare two buckets. `bucket-order.ts` finds the best of n in O(log n).
 * Source: weighted fair queuing over start tags (Demers, Keshav, Shenker 1989; Kubernetes' fair queuing for requests),
 * with use in place of virtual finish times because the length of a hold is not known when it starts.
 */
export function ranksBefore(a: Rank, b: Rank, level: number, now: number): boolean {
  const zoneA = zoneOf(a, level);
  const zoneB = zoneOf(b, level);
  if (zoneA !== zoneB) return zoneA < zoneB;
  const held = zoneA === 1 ? 0 : (a.inFlight + 1) / a.weight - (b.inFlight + 1) / b.weight;
  if (Math.abs(held) > ROUNDING) return held < 0;
  const used = usedPerWeight(a, now) - usedPerWeight(b, now);
  if (used !== 0) return used < 0;
  return a.headAt < b.headAt;
}

/** What the bucket has used per weight, running holds counted up to `now`. */
export function usedPerWeight(rank: Rank, now: number): number {
  return (rank.usedMs + rank.inFlight * (now - rank.asOf)) / rank.weight;
}

/** The fair number of slots per weight among those that want more. */
export function levelOf(slots: number, heldByOthers: number, contendingWeight: number): number {
  return contendingWeight > 0 ? Math.max(0, slots - heldByOthers) / contendingWeight : 0;
}

/** Shares are quotients of sums of weights: 0.9999999 of a slot is a slot. */
const ROUNDING = 1e-9;

function zoneOf(rank: Rank, level: number): 0 | 1 | 2 {
  const share = level * rank.weight;
  if (rank.inFlight + 1 <= share + ROUNDING) return 0;
  return rank.inFlight < share - ROUNDING ? 1 : 2;
}
