/**
 * Computes how much of a past charge can still be refunded to a bucket.
 *
 * When a bucket is full, earlier charges no longer matter. Suppose it had been charged `r` less at time t. It would
 * then have been `r` fuller from t on, until it was full. From that moment on, the difference is only what was really
 * missing. So the part of `r` that can still be refunded is the smallest amount that was missing at any time since t. A
 * refund of all of `r` would give out units that have already overflowed, and break the bound of the bucket.
 *
 * The missing amount is smallest just before a charge. The list keeps only the times with no later, smaller amount. Its
 * amounts therefore increase, and the smallest since t is the first after t.
 *
 * LOWEST1  `lower` returns at most the smallest amount since that time, and exactly that as long as at most `MOST`
 *     entries are kept.
 *
 * Cost: O(1) amortised for a charge; a refund visits up to `MOST` entries. Beyond `MOST`, neighbours are merged and the
 * smaller amount counts for both. Refunds of old charges may then be too small, but never too large.
 */
/** An even number. */
const MOST = 64;

/** Plain data: the times, and the amount that was missing at each. */
export interface LowestLevels {
  times: number[];
  levels: number[];
}

/** Records the amount that was missing just before a charge. It must be above 0: a full bucket starts a new list. */
export function note(lowest: LowestLevels, level: number, now: number): void {
  const { times, levels } = lowest;
  while ((levels.at(-1) ?? 0) >= level) {
    levels.pop();
    times.pop();
  }
  times.push(now);
  levels.push(level);
  if (times.length > MOST) join(lowest);
}

/** Reduces a past charge by `amount`, and returns the part of it that still makes a difference. */
export function lower({ times, levels }: LowestLevels, amount: number, chargedAt: number): number {
  // An entry with the time of the charge itself was recorded before the charge.
  const first = times.findIndex((time) => time > chargedAt);
  if (first < 0) return amount;
  const lowered = Math.min(amount, levels[first] as number);
  for (let index = first; index < levels.length; index++) levels[index] = (levels[index] as number) - lowered;
  // Earlier entries now have a later one that is not larger, so they no longer count.
  const kept = levels.findIndex((level) => level >= (levels[first] as number));
  times.splice(kept, first - kept);
  levels.splice(kept, first - kept);
  return lowered;
}

/** Merges each two neighbours: keeps the time of the later and the amount of the earlier. The last stays as it is. */
function join(lowest: LowestLevels): void {
  lowest.times = lowest.times.filter((_, index) => index % 2 === 1 || index === MOST);
  lowest.levels = lowest.levels.filter((_, index) => index % 2 === 0);
}
