import type { RankedLine, Ranking, Shares } from "./contract.ts";

interface OfWidth {
  readonly width: number;
  readonly ranking: Ranking;
}

/**
 * One ranking for each width that the heads of lines ask for, so that the best of those that fit into the free slots is
 * found without a search. Most hosts have one width. Cost: that of the rankings, times the number of widths.
 */
export class ByWidth {
  readonly #newRanking: () => Ranking;
  /** By width, the narrowest first. A ranking that became empty is kept, because it is usually needed again. */
  readonly #rankings: OfWidth[] = [];

  constructor(newRanking: () => Ranking) {
    this.#newRanking = newRanking;
  }

  push(line: RankedLine): void {
    this.#of(line.headWidth).push(line);
  }

  /** A line that is not there is ignored. */
  remove(line: RankedLine): void {
    this.#of(line.headWidth).remove(line);
  }

  /** The best of the lines whose head needs at most `room` slots. */
  best(shares: Shares, now: number, room: number): RankedLine | undefined {
    let best: RankedLine | undefined;
    for (const { width, ranking } of this.#rankings) {
      if (width > room) break;
      const line = ranking.best(shares, now);
      if (best === undefined || (line !== undefined && ranking.isBefore(line, best, shares, now))) best = line;
    }
    return best;
  }

  #of(width: number): Ranking {
    const at = this.#rankings.findIndex((one) => one.width >= width);
    const found = this.#rankings[at];
    if (found?.width === width) return found.ranking;
    const ranking = this.#newRanking();
    this.#rankings.splice(at < 0 ? this.#rankings.length : at, 0, { width, ranking });
    return ranking;
  }
}
