/**
 * The timers of a run, ordered by due time.
 *
 * TIMER1  `takeDue` returns timers by due time; ties are in the order in which they were added.
 * TIMER2  A removed timer is gone at once: `nextAt` never names an instant at which nothing is due.
 *
 * Timers of the same instant share a bucket, and only the buckets are in the heap. In virtual time, where thousands of
 * tasks sleep until the same instant, adding and removing are O(1). A new instant costs O(log distinct instants).
 */
import { IndexedHeap } from "../indexed-heap.ts";
import { type Link, LinkedList } from "../linked-list.ts";

class Bucket extends LinkedList {
  readonly dueAt: number;
  heapIndex = -1;

  constructor(dueAt: number) {
    super();
    this.dueAt = dueAt;
  }
}

export class TimerQueue {
  readonly #buckets = new Map<number, Bucket>();
  readonly #heap = new IndexedHeap<"heapIndex", Bucket>("heapIndex", (a, b) => a.dueAt < b.dueAt);

  /** The earliest instant at which something is due. */
  get nextAt(): number | undefined {
    return this.#heap.peek()?.dueAt;
  }

  add(timer: Link, dueAt: number): void {
    let bucket = this.#buckets.get(dueAt);
    if (bucket === undefined) {
      bucket = new Bucket(dueAt);
      this.#buckets.set(dueAt, bucket);
      this.#heap.push(bucket);
    }
    bucket.add(timer);
  }

  /** Does nothing if the timer is not in a bucket. */
  remove(timer: Link): void {
    const bucket = timer.list;
    if (!(bucket instanceof Bucket)) return;
    bucket.remove(timer);
    if (bucket.first !== undefined) return;
    this.#buckets.delete(bucket.dueAt);
    this.#heap.remove(bucket);
  }

  /** The next timer due at or before `now`. */
  takeDue(now: number): Link | undefined {
    const bucket = this.#heap.peek();
    if (bucket === undefined || bucket.dueAt > now) return undefined;
    const timer = bucket.first as Link;
    this.remove(timer);
    return timer;
  }
}
