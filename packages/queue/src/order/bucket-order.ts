import { IndexedHeap } from "../indexed-heap.ts";
import type { Rank } from "./contract.ts";
import { isSameUse, ranksBefore } from "./order.ts";

/** A bucket in a `BucketOrder`. Only the order writes the two fields. */
export interface Ranked extends Rank {
  orderIndex: number;
  orderClass: OrderClass | undefined;
}

/** Buckets with the same `inFlight` and weight use slot time at the same rate, so their order never changes with time. */
export interface OrderClass {
  readonly inFlight: number;
  readonly weight: number;
  readonly heap: IndexedHeap<"orderIndex", Ranked>;
}

/**
 * Finds the best-ranked bucket without a search. Use grows with time, so the order in one heap over all buckets would
 * change by itself. Within a class it cannot change. The best bucket is the best of the first buckets of the classes.
 *
 * Cost: `add` and `remove` O(log n + classes), `best` O(classes). Classes differ in the number of slots held, so for
 * one weight there are at most √(2·slots) of them: 5 slots give 3 classes, 1,000 slots give 45.
 */
export class BucketOrder<T extends Ranked> {
  readonly #isFifo: boolean;
  /**
   * The classes: few, and none is empty. The class that became empty last is kept, because it is usually the next one
   * needed.
   */
  readonly #classes: OrderClass[] = [];
  #spare: OrderClass | undefined;
  #size = 0;

  constructor(isFifo = false) {
    this.#isFifo = isFifo;
  }

  /** How many buckets it has. */
  get size(): number {
    return this.#size;
  }

  /** Adds a bucket. */
  add(bucket: T): void {
    const { inFlight, weight } = this.#isFifo ? ONE_CLASS : bucket;
    let found = this.#classes.find((one) => one.inFlight === inFlight && one.weight === weight);
    if (found === undefined) {
      found = this.#newClass(inFlight, weight);
      this.#classes.push(found);
    }
    bucket.orderClass = found;
    found.heap.push(bucket);
    this.#size++;
  }

  /** Removes a bucket; one that is not there is ignored. */
  remove(bucket: T): void {
    const home = bucket.orderClass;
    if (home === undefined) return;
    home.heap.remove(bucket);
    bucket.orderClass = undefined;
    this.#size--;
    if (home.heap.size > 0) return;
    this.#classes.splice(this.#classes.indexOf(home), 1);
    this.#spare = home;
  }

  /** Whether it has the bucket. */
  has(bucket: T): boolean {
    return bucket.orderClass !== undefined;
  }

  /** The bucket that is next. */
  best(level: number, now: number): T | undefined {
    let best: Ranked | undefined;
    for (const { heap } of this.#classes) {
      const head = heap.peek() as Ranked;
      if (best === undefined || ranksBefore(head, best, level, now)) best = head;
    }
    return best as T | undefined;
  }

  #newClass(inFlight: number, weight: number): OrderClass {
    if (this.#spare?.inFlight === inFlight && this.#spare.weight === weight) return this.#spare;
    const before = this.#isFifo ? headBefore : startsBefore;
    return { inFlight, weight, heap: new IndexedHeap<"orderIndex", Ranked>("orderIndex", before) };
  }
}

const ONE_CLASS = { inFlight: 0, weight: 1 };

/** Compares by the use extended back to time 0. This value is constant, and within a class its order is the order of use. */
function startsBefore(a: Rank, b: Rank): boolean {
  const startA = a.usedMs - a.inFlight * a.asOf;
  const startB = b.usedMs - b.inFlight * b.asOf;
  return isSameUse((startA - startB) / a.weight) ? a.headAt < b.headAt : startA < startB;
}

function headBefore(a: Rank, b: Rank): boolean {
  return a.headAt < b.headAt;
}
