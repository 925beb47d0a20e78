import { IndexedHeap } from "slotkeeper/parts";
import type { Rank, RankedLine, Ranking, Shares } from "./contract.ts";
import { hasOlderHead, isSameUse, ranksBefore } from "./order.ts";

/** Lines with the same `inFlight` and weight use slot time at the same rate, so their order never changes with time. */
export interface RateGroup {
  readonly inFlight: number;
  readonly weight: number;
  readonly heap: IndexedHeap<"orderIndex", RankedLine>;
}

/**
 * Finds the best line by `order.ts` without a search. Use grows with time, so the order in one heap over all lines would
 * change by itself. Within a group it cannot change. The best line is the best of the first lines of the groups.
 *
 * Cost: `push` and `remove` O(log n + groups), `best` O(groups). Groups differ in the number of slots held, so for
 * one weight there are at most √(2·slots) of them: 5 slots give 3 groups, 1,000 slots give 45.
 */
export class SlotSeconds implements Ranking {
  readonly isBefore = ranksBefore;
  /**
   * The groups: few, and none is empty. The group that became empty last is kept, because it is usually the next one
   * needed.
   */
  readonly #groups: RateGroup[] = [];
  #spare: RateGroup | undefined;
  #size = 0;

  /** How many lines it has. */
  get size(): number {
    return this.#size;
  }

  /** Adds a line. */
  push(line: RankedLine): void {
    const { inFlight, weight } = line;
    let found = this.#groups.find((one) => one.inFlight === inFlight && one.weight === weight);
    if (found === undefined) {
      found = this.#newGroup(inFlight, weight);
      this.#groups.push(found);
    }
    line.rateGroup = found;
    found.heap.push(line);
    this.#size++;
  }

  /** Removes a line; one that is not there is ignored. */
  remove(line: RankedLine): void {
    const home = line.rateGroup;
    if (home === undefined) return;
    home.heap.remove(line);
    line.rateGroup = undefined;
    this.#size--;
    if (home.heap.size > 0) return;
    this.#groups.splice(this.#groups.indexOf(home), 1);
    this.#spare = home;
  }

  /** The line that is next. */
  best(shares: Shares, now: number): RankedLine | undefined {
    let best: RankedLine | undefined;
    for (const { heap } of this.#groups) {
      const head = heap.peek() as RankedLine;
      if (best === undefined || ranksBefore(head, best, shares, now)) best = head;
    }
    return best;
  }

  /** Changes a copy of a line as a grant would. */
  advance(copy: RankedLine, now: number): void {
    copy.usedMs += copy.inFlight * (now - copy.asOf);
    copy.asOf = now;
    copy.inFlight += copy.headWidth;
  }

  #newGroup(inFlight: number, weight: number): RateGroup {
    if (this.#spare?.inFlight === inFlight && this.#spare.weight === weight) return this.#spare;
    return { inFlight, weight, heap: new IndexedHeap<"orderIndex", RankedLine>("orderIndex", startsBefore) };
  }
}

/** Compares by the use extended back to time 0. This value is constant, and within a group its order is the order of use. */
function startsBefore(a: Rank, b: Rank): boolean {
  const startA = a.usedMs - a.inFlight * a.asOf;
  const startB = b.usedMs - b.inFlight * b.asOf;
  return isSameUse((startA - startB) / a.weight) ? hasOlderHead(a, b) : startA < startB;
}
