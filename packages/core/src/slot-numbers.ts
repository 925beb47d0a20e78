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
  /** The last one given back goes out first. */
  #free: number[] = [];
  #beyond: number[] = [];
  #capacity = 0;

  take(capacity: number): number {
    if (capacity > this.#capacity) for (const number of this.#beyond.splice(0)) this.release(number);
    this.#capacity = capacity;
    let number = this.#free.pop();
    for (; number && number > capacity; number = this.#free.pop()) this.#beyond.push(number);
    return number ?? ++this.#highest;
  }

  release(number: number): void {
    this.#free.push(number);
  }
}
