/**
 * Numbers for held slots: 1, 2, 3 … unique among those held at one moment, handed out on demand.
 *
 * NUMBER1  No number is out twice: each up to the highest is either out, or free, or free but beyond the capacity.
 * NUMBER2  As long as no more are out than the capacity, every number taken is at most the capacity, after a shrink too.
 *
 * Cost: O(1), amortised: after a shrink each number that is too high is set aside once; growing brings them back.
 */
export class SlotNumbers {
  #highest = 0;
  #capacity = Infinity;
  /** The last one given back goes out first. */
  #free: number[] = [];
  #beyond: number[] = [];

  take(capacity: number): number {
    if (capacity > this.#capacity) {
      this.#free = this.#beyond.concat(this.#free);
      this.#beyond = [];
    }
    this.#capacity = capacity;
    for (let number = this.#free.pop(); number !== undefined; number = this.#free.pop()) {
      if (number <= capacity) return number;
      this.#beyond.push(number);
    }
    return ++this.#highest;
  }

  giveBack(number: number): void {
    this.#free.push(number);
  }
}
