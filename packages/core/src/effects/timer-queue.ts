/**
 * The timers of a run, ordered by due time.
 *
 * TIMER1  `takeDue` returns timers by due time; ties are in the order in which they were added.
 * TIMER2  A removed timer is gone at once: `nextAt` never names an instant at which nothing is due.
 *
 * Timers of the same instant share a bucket, and only the buckets are in the heap. In virtual time, where thousands of
 * tasks sleep until the same instant, adding and removing are O(1). A new instant costs O(log distinct instants).
 */
import { type Link, LinkedList } from "../linked-list.ts";

class Bucket extends LinkedList {
  readonly dueAt: number;
  /** The index in the heap. */
  index = 0;

  constructor(dueAt: number) {
    super();
    this.dueAt = dueAt;
  }
}

export class TimerQueue {
  readonly #buckets = new Map<number, Bucket>();
  readonly #heap: Bucket[] = [];

  /** The earliest instant at which something is due. */
  get nextAt(): number | undefined {
    return this.#heap[0]?.dueAt;
  }

  add(timer: Link, dueAt: number): void {
    let bucket = this.#buckets.get(dueAt);
    if (bucket === undefined) {
      bucket = new Bucket(dueAt);
      this.#buckets.set(dueAt, bucket);
      bucket.index = this.#heap.length;
      this.#heap.push(bucket);
      this.#up(bucket);
    }
    bucket.add(timer);
  }

  /** Does nothing if the timer is not in a bucket. */
  remove(timer: Link): void {
    const bucket = timer.list;
    if (!(bucket instanceof Bucket)) return;
    bucket.remove(timer);
    if (bucket.first === undefined) this.#drop(bucket);
  }

  /** The next timer due at or before `now`. */
  takeDue(now: number): Link | undefined {
    const bucket = this.#heap[0];
    if (bucket === undefined || bucket.dueAt > now) return undefined;
    const timer = bucket.first as Link;
    this.remove(timer);
    return timer;
  }

  #drop(bucket: Bucket): void {
    this.#buckets.delete(bucket.dueAt);
    const last = this.#heap.pop() as Bucket;
    if (last === bucket) return;
    last.index = bucket.index;
    this.#heap[last.index] = last;
    this.#up(last);
    this.#down(last);
  }

  #up(bucket: Bucket): void {
    while (bucket.index > 0) {
      const parent = this.#heap[(bucket.index - 1) >> 1] as Bucket;
      if (parent.dueAt <= bucket.dueAt) return;
      this.#swap(parent, bucket);
    }
  }

  #down(bucket: Bucket): void {
    for (;;) {
      const left = this.#heap[2 * bucket.index + 1];
      const right = this.#heap[2 * bucket.index + 2];
      const child = right !== undefined && left !== undefined && right.dueAt < left.dueAt ? right : left;
      if (child === undefined || child.dueAt >= bucket.dueAt) return;
      this.#swap(bucket, child);
    }
  }

  #swap(upper: Bucket, lower: Bucket): void {
    const index = upper.index;
    upper.index = lower.index;
    lower.index = index;
    this.#heap[upper.index] = upper;
    this.#heap[lower.index] = lower;
  }
}
