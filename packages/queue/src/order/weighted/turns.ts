import { IndexedHeap } from "../../indexed-heap.ts";
import type { SchedulerOptions } from "../../options.ts";
import type { Line, Rank, Ranking } from "../contract.ts";
import { NEW_LINE, type WeightedLine } from "./settings.ts";

/**
 * Layer 6 of the funnel: which line is next at a hot host. Weighted round robin: the line with the smallest virtual time
 * takes its turn. Then its virtual time grows by 1/weight, with weight = base + perWait × waitCount. Cost: O(log n).
 */
export class Turns implements Ranking {
  readonly #scheduler: SchedulerOptions;
  readonly #heap = new IndexedHeap<"turnIndex", Line>("turnIndex", isBefore);

  constructor(scheduler: SchedulerOptions) {
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#heap.size;
  }

  add(line: Line): void {
    this.#heap.push(line);
  }

  remove(line: Line): void {
    this.#heap.remove(line);
  }

  best(): Line | undefined {
    return this.#heap.peek();
  }

  isBefore(a: Rank, b: Rank): boolean {
    return isBefore(a, b);
  }

  advance(copy: Line): void {
    copy.weighted = halved(afterTurn(copy.weighted, this.#scheduler));
  }
}

export function virtualTime({ weighted }: Rank): number {
  return weighted?.virtualTime ?? 0;
}

export function afterTurn(
  line: WeightedLine = NEW_LINE,
  { baseWeight, weightPerWait }: SchedulerOptions,
): WeightedLine {
  const weight = Math.max(1, baseWeight + weightPerWait * line.waitCount);
  return { ...line, virtualTime: line.virtualTime + 1 / weight };
}

export function halved(line: WeightedLine): WeightedLine {
  return { ...line, waitCount: Math.floor(line.waitCount / 2) };
}

function isBefore(a: Rank, b: Rank): boolean {
  const [timeA, timeB] = [virtualTime(a), virtualTime(b)];
  return timeA === timeB ? a.headAt < b.headAt : timeA < timeB;
}
