/**
 * Numbers for held slots: 1, 2, 3 … unique among those held at one moment, low ones first, handed out on demand.
 *
 * I1  No number is out twice.
 * I2  As long as no more are out than the capacity, every number taken is at most the capacity, after a shrink too.
 */
export class SlotNumbers {
  #highest = 0;
  /** Returned numbers; the last one returned goes out first. */
  readonly #free: number[] = [];

  take(capacity: number): number {
    let at = this.#free.length - 1;
    // Only after a shrink can a returned number be too high: then look for one that is not.
    while (at >= 0 && (this.#free[at] as number) > capacity) at--;
    if (at < 0)
      return this.#highest < capacity || this.#free.length === 0 ? ++this.#highest : (this.#free.pop() as number);
    const number = this.#free[at] as number;
    this.#free[at] = this.#free[this.#free.length - 1] as number;
    this.#free.pop();
    return number;
  }

  giveBack(number: number): void {
    this.#free.push(number);
  }
}
