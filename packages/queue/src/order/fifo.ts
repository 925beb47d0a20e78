import { IndexedHeap } from "slotkeeper/parts";
import type { Line, Ranking } from "./contract.ts";
import { hasOlderHead } from "./order.ts";

/** First come, first served: the line with the oldest head. Cost: O(log n). */
export class Fifo extends IndexedHeap<"orderIndex", Line> implements Ranking {
  readonly isBefore = hasOlderHead;

  constructor() {
    super("orderIndex", hasOlderHead);
  }

  best(): Line | undefined {
    return this.peek();
  }

  /** Only the head counts. */
  advance(): void {}
}
