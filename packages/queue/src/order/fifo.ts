import { IndexedHeap } from "../indexed-heap.ts";
import type { Line, Rank, Ranking } from "./contract.ts";

/** First come, first served: the line with the oldest head. Cost: O(log n). */
export class Fifo implements Ranking {
  readonly #heap = new IndexedHeap<"orderIndex", Line>("orderIndex", isOlder);

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
    return isOlder(a, b);
  }

  advance(): void {
    // Only the head counts.
  }
}

function isOlder(a: Rank, b: Rank): boolean {
  return a.headAt < b.headAt;
}
