/**
 * The queue of waiters, in order of arrival. A waiter can leave from any position.
 *
 * QUEUE1  `first()` is the waiter that arrived first among those that are still in the queue.
 * QUEUE2  A waiter is in the queue from `push` until `remove`. Its position identifies it there.
 *
 * Cost: O(1) for each operation, amortised. A waiter that leaves from the middle leaves a gap. Gaps are closed when they
 * outnumber the waiters. So memory is proportional to the number of waiters, even if the head stays for ever while others
 * arrive and time out behind it.
 *
 * Measured alternatives: `array.shift` becomes many times slower beyond some 10,000 waiters. A linked list of waiter
 * objects makes the contended path (W2) a fifth slower than an array in which a waiter may be just a function.
 */

/** Up to this number, gaps are not worth closing. */
const FEW_GAPS = 32;
/** An array with more gaps than this is replaced when the last waiter leaves, to free its memory. */
const MANY_GAPS = 4096;

/** A waiter that may leave early is an object that stores its position. One that leaves only as the first is a function. */
export class WaiterQueue<F extends (...args: never[]) => void, T extends { position: number | undefined }> {
  /** The number of waiters in the queue. */
  size = 0;
  #cells: (F | T | undefined)[] = [];
  /** There is no waiter before this position. */
  #head = 0;

  push(waiter: F | T): void {
    if (this.#cells.length > 2 * this.size++ + FEW_GAPS) this.#closeGaps();
    if (typeof waiter === "object") waiter.position = this.#cells.length;
    this.#cells.push(waiter);
  }

  /** The queue must not be empty. */
  first(): F | T {
    return this.#cells[this.#skipGaps()] as F | T;
  }

  /** Returns whether the waiter was in the queue. A function must be the first waiter. */
  remove(waiter: F | T): boolean {
    const position = typeof waiter === "object" ? waiter.position : this.#skipGaps();
    if (position === undefined) return false;
    this.#cells[position] = undefined;
    if (typeof waiter === "object") waiter.position = undefined;
    if (--this.size === 0 && this.#cells.length > MANY_GAPS) this.#closeGaps();
    return true;
  }

  /** A copy of all waiters, in order of arrival. */
  all(): (F | T)[] {
    return this.#cells.filter((waiter) => waiter !== undefined);
  }

  #skipGaps(): number {
    while (this.#cells[this.#head] === undefined) this.#head++;
    return this.#head;
  }

  #closeGaps(): void {
    this.#head = 0;
    this.#cells = this.all();
    this.#cells.forEach((waiter, position) => {
      if (typeof waiter === "object") waiter.position = position;
    });
  }
}
