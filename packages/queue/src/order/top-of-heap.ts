import { IndexedHeap } from "slotkeeper/parts";
import type { WaiterRecord } from "../book/records.ts";
import type { RankedLine, Ranking } from "./contract.ts";

/** A ranking that neither shares nor time change: the best line is the top of a heap. Cost: O(log n). */
export abstract class TopOfHeap extends IndexedHeap<"orderIndex" | "turnIndex", RankedLine> implements Ranking {
  readonly isBefore: (a: RankedLine, b: RankedLine) => boolean;

  constructor(key: "orderIndex" | "turnIndex", isBefore: (a: RankedLine, b: RankedLine) => boolean) {
    super(key, isBefore);
    this.isBefore = isBefore;
  }

  best(): RankedLine | undefined {
    return this.peek();
  }

  abstract advance(copy: RankedLine, now: number, waiter: WaiterRecord): void;
}
