/**
 * How much of a past charge a bucket still remembers.
 *
 * A bucket forgets: when it is full, what was charged before makes no difference any more. If it had been charged `r` less
 * at time t, it would have been `r` fuller since, until it was full; from then on the difference is what was missing from
 * it in fact. So the part of `r` that can still be given back is the least that was missing at any time since t. Giving
 * back all of `r` would hand out what has overflowed already, above the bound of the bucket.
 *
 * What is missing is least just before a charge. Kept are those times that no later one undercuts; their levels
 * therefore rise from the first to the last, and the least since t is the first after t.
 *
 * LOWEST1  `lower` answers at most the least level since that time, and exactly that as long as not more than `MOST` are kept.
 *
 * Cost: O(1) amortised to note; a refund looks at up to `MOST` levels. Beyond `MOST`, neighbours are joined, the lower
 * level counting for both: refunds of long ago may come out lower, never higher.
 */
const MOST = 64;

export class LowestLevels {
  #times: number[] = [];
  #levels: number[] = [];

  /** So much was missing at that time, before a charge: more than nothing, or all before can be forgotten. */
  note(level: number, now: number): void {
    const [times, levels] = [this.#times, this.#levels];
    while (levels.length > 0 && (levels.at(-1) as number) >= level) {
      levels.pop();
      times.pop();
    }
    times.push(now);
    levels.push(level);
    if (times.length > MOST) this.#join(times, levels);
  }

  /** As if so much less had been charged at that time. Gives what of it makes a difference now. */
  lower(amount: number, chargedAt: number): number {
    const [times, levels] = [this.#times, this.#levels];
    // What was missing at the very time of the charge was missing before it.
    const first = times.findIndex((time) => time > chargedAt);
    if (first < 0) return amount;
    const lowered = Math.min(amount, levels[first] as number);
    for (let index = first; index < levels.length; index++) levels[index] = (levels[index] as number) - lowered;
    return lowered;
  }

  /** Of each two neighbours, the time of the later and the level of the earlier. */
  #join(times: readonly number[], levels: readonly number[]): void {
    this.#times = times.filter((_, index) => index % 2 === 1);
    this.#levels = levels.filter((_, index) => index % 2 === 0).slice(0, this.#times.length);
    if (times.length % 2 === 0) return;
    this.#times.push(times.at(-1) as number);
    this.#levels.push(levels.at(-1) as number);
  }
}
