import { IndexedHeap } from "slotkeeper/parts";
import type { WaiterRecord } from "../book/records.ts";
import type { Line, Ranking } from "./contract.ts";

/** A ranking that neither shares nor time change: the best line is the top of a heap. Cost: O(log n). */
export abstract class TopOfHeap extends IndexedHeap<"orderIndex" | "turnIndex", Line> implements Ranking {
  readonly isBefore: (a: Line, b: Line) => boolean;

  constructor(key: "orderIndex" | "turnIndex", isBefore: (a: Line, b: Line) => boolean) {
    super(key, isBefore);
    this.isBefore = isBefore;
  }

  best(): Line | undefined {
    return this.peek();
  }

  abstract advance(copy: Line, now: number, waiter: WaiterRecord): void;
}
