import { IndexedHeap } from "../indexed-heap.ts";
import type { Rank } from "./contract.ts";
import { ranksBefore } from "./order.ts";

/** A bucket that can stand in a `BucketOrder`. The two fields belong to the index. */
export interface Ranked extends Rank {
  orderIndex: number;
  orderClass: OrderClass | undefined;
}

/** Buckets with the same `inFlight` and weight accrue use at the same rate: what is before stays before, at any time. */
export interface OrderClass {
  readonly inFlight: number;
  readonly weight: number;
  readonly heap: IndexedHeap<"orderIndex", Ranked>;
}

/**
 * Finds the best-ranked bucket without looking at the others. Use grows with time, so one heap over all would go stale
 * by itself; inside a class it cannot. The best is the best of the classes' heads.
 *
 * Cost: add, remove O(log n + classes); best O(classes). Classes differ in slots held, so for one weight there are at most
 * √(2·slots) of them: 5 slots make 3, 1,000 make 45.
 */
export class BucketOrder<T extends Ranked> {
  readonly #isFifo: boolean;
  /** Few, and none of them empty. The class that emptied last is kept at hand: it is, mostly, the next one needed. */
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

/** Where the line of use began, were it drawn back to time 0: static, and ordered as use is inside a class. */
function startsBefore(a: Rank, b: Rank): boolean {
  const startA = a.usedMs - a.inFlight * a.asOf;
  const startB = b.usedMs - b.inFlight * b.asOf;
  return startA === startB ? a.headAt < b.headAt : startA < startB;
}

function headBefore(a: Rank, b: Rank): boolean {
  return a.headAt < b.headAt;
}
