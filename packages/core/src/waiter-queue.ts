/**
 * The queue of waiters: arrival order, with removal from the middle.
 *
 * QUEUE1  `first()` is the waiter that arrived first among those that have not left.
 * QUEUE2  A waiter is inside from `push` until `remove`, and its position finds it in between.
 *
 * Cost: O(1) each, amortised. Gaps are closed when they outnumber the waiters, so memory follows the number of waiters
 * even when the head never moves while others come and time out behind it for ever.
 *
 * Measured alternatives: `array.shift` falls off a cliff beyond some 10,000 waiters; a linked list of waiter objects
 * makes the contended path (W2) a fifth dearer than an array in which a waiter may be a bare function.
 */

/** Not worth closing. */
const FEW_GAPS = 32;
/** Dropped when the last waiter leaves. */
const MANY_GAPS = 4096;

/** A waiter that may leave early keeps its position; one that leaves only as the first is just a function. */
export class WaiterQueue<F extends (...args: never[]) => void, T extends { position: number | undefined }> {
  /** How many are inside. */
  size = 0;
  #cells: (F | T | undefined)[] = [];
  /** No waiter is before this position. */
  #head = 0;

  push(waiter: F | T): void {
    if (this.#cells.length > 2 * this.size++ + FEW_GAPS) this.#closeGaps();
    if (typeof waiter === "object") waiter.position = this.#cells.length;
    this.#cells.push(waiter);
  }

  /** Only if there is one. */
  first(): F | T {
    return this.#cells[this.#skipGaps()] as F | T;
  }

  /** Whether it was inside. A function must be the first. */
  remove(waiter: F | T): boolean {
    const position = typeof waiter === "object" ? waiter.position : this.#skipGaps();
    if (position === undefined) return false;
    this.#cells[position] = undefined;
    if (typeof waiter === "object") waiter.position = undefined;
    if (--this.size === 0 && this.#cells.length > MANY_GAPS) this.#closeGaps();
    return true;
  }

  /** All waiters, in order; a copy. */
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
