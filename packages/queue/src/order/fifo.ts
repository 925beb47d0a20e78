import { hasOlderHead } from "./order.ts";
import { TopOfHeap } from "./top-of-heap.ts";

/** First come, first served: the line with the oldest head. */
export class Fifo extends TopOfHeap {
  constructor() {
    super("orderIndex", hasOlderHead);
  }

  /** Only the head counts. */
  advance(): void {}
}
