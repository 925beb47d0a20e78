/**
 * The queue of waiters: arrival order, with removal from the middle.
 *
 * I1  `first()` is the waiter that arrived first among those that have not left.
 * I2  A waiter is inside from `push` until `remove`, and its position finds it in between.
 * I3  `size` counts the waiters inside, never the gaps that they left.
 *
 * Cost: O(1) each, amortised. Gaps are closed when they outnumber the waiters, so memory follows the number of waiters
 * even when the head never moves while others come and time out behind it for ever.
 *
 * Measured alternatives: `array.shift` falls off a cliff beyond some 10,000 waiters; a linked list of waiter objects
 * makes the contended path (W2) a fifth dearer than an array in which a waiter may be a bare function.
 */

/** A waiter that may leave early keeps its position; one that cannot is just a function. */
type Queued = ((...args: never[]) => void) | { position: number };

const FIRST_CELLS = 32;
/** An emptied ring larger than this gives its cells back. */
const KEPT_CELLS = 2048;

export class WaiterQueue<W extends Queued> {
  /** A ring: its length is a power of two, and position p is in the cell p modulo the length. */
  #cells: (W | undefined)[] = emptyCells(FIRST_CELLS);
  /** Nobody waits before this position. */
  #head = 0;
  /** Nobody waits from this position on. */
  #tail = 0;
  size = 0;

  push(waiter: W): void {
    if (this.#tail - this.#head >= this.#cells.length) this.#rebuild();
    if (typeof waiter === "object") waiter.position = this.#tail;
    this.#cells[this.#tail++ & (this.#cells.length - 1)] = waiter;
    this.size++;
  }

  /** Only if there is one. */
  first(): W {
    const mask = this.#cells.length - 1;
    while (this.#cells[this.#head & mask] === undefined) this.#head++;
    return this.#cells[this.#head & mask] as W;
  }

  /** Removes the waiter at that position, or the first. */
  remove(position: number = this.#head): void {
    this.#cells[position & (this.#cells.length - 1)] = undefined;
    if (--this.size === 0) this.#rebuild();
  }

  /** Everybody, in order; a copy. */
  all(): W[] {
    const waiters: W[] = [];
    for (let position = this.#head; position < this.#tail; position++) {
      const waiter = this.#cells[position & (this.#cells.length - 1)];
      if (waiter !== undefined) waiters.push(waiter);
    }
    return waiters;
  }

  /** Closes the gaps, starts again from position 0, and doubles or shrinks to fit. */
  #rebuild(): void {
    const waiters = this.all();
    let { length } = this.#cells;
    if (waiters.length * 2 > length) length *= 2;
    else if (this.size === 0 && length > KEPT_CELLS) length = FIRST_CELLS;
    if (this.size > 0 || length !== this.#cells.length) this.#cells = emptyCells(length);
    this.#head = 0;
    this.#tail = 0;
    this.size = 0;
    for (const waiter of waiters) this.push(waiter);
  }
}

function emptyCells<W>(length: number): (W | undefined)[] {
  return new Array<W | undefined>(length).fill(undefined);
}
