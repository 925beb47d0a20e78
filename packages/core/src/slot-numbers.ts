/**
 * Numbers for held slots: 1, 2, 3 … unique among those held at one moment, handed out on demand.
 *
 * I1  No number is out twice: each up to the highest is either out or in the list of those given back.
 * I2  As long as no more are out than the capacity, every number taken is at most the capacity, after a shrink too.
 */
export class SlotNumbers {
  #highest = 0;
  /** The last one given back goes out first. */
  readonly #free: number[] = [];

  take(capacity: number): number {
    // Only after a shrink is the last one not the one.
    const at = this.#free.findLastIndex((number) => number <= capacity);
    return at < 0 ? ++this.#highest : (this.#free.splice(at, 1)[0] as number);
  }

  giveBack(number: number): void {
    this.#free.push(number);
  }
}
