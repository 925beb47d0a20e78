import { IndexedHeap } from "../indexed-heap.ts";
import type { Line, Rank, Ranking } from "./contract.ts";

/** First come, first served: the line with the oldest head. Cost: O(log n). */
export class Fifo extends IndexedHeap<"orderIndex", Line> implements Ranking {
  readonly isBefore = isOlder;

  constructor() {
    super("orderIndex", isOlder);
  }

  best(): Line | undefined {
    return this.peek();
  }

  /** Only the head counts. */
  advance(): void {}
}

function isOlder(a: Rank, b: Rank): boolean {
  return a.headAt < b.headAt;
}
