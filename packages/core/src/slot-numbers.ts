/**
 * Numbers for held slots: 1, 2, 3 and so on. They are assigned on demand, and unique among the slots held at one time.
 *
 * NUMBER1  No number is assigned twice. Each number up to the highest is assigned, free, or set aside because it is above
 *     the capacity.
 * NUMBER2  While no more numbers are assigned than the capacity, every number taken is at most the capacity. This also
 *     holds after a shrink.
 *
 * Cost: O(1), amortised. After a shrink, each number above the capacity is set aside once. Growing makes it free again.
 */
export class SlotNumbers {
  #highest = 0;
  /** The number that was released last is assigned first. */
  #free: number[] = [];
  /** Numbers that are set aside. */
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
