import type { EndingRecord } from "./records.ts";

/**
 * The ended sessions of a host, ordered by when they ended; then by key, so that the order does not depend on how the
 * book was made. A busy host has ten thousand of them, and each decision adds some at the end and removes some from the
 * front. So this is a sorted array, and not a heap: with a heap and a map a cycle of the engine took 16.9 µs instead of 15.6.
 * Cost: O(1) at both ends, amortized; O(n) elsewhere, for an end that is prolonged, or a commit of another instance that is
 * read out of order.
 */
export class EndsByTime {
  /** Those before `#start` are removed. */
  #ends: EndingRecord[] = [];
  #start = 0;

  /** The session that ended first. */
  get next(): EndingRecord | undefined {
    return this.#ends[this.#start];
  }

  add(record: EndingRecord): void {
    const ends = this.#ends;
    const last = ends.at(-1);
    // Most hosts have one: with `push` it would get an array for 17.
    if (last === undefined) this.#ends = [record];
    else if (isBefore(last, record)) ends.push(record);
    else ends.splice(this.#placeOf(record), 0, record);
  }

  /** The record must be present. */
  remove(record: EndingRecord): void {
    const ends = this.#ends;
    if (record !== this.next) {
      ends.splice(this.#placeOf(record), 1);
      return;
    }
    this.#start++;
    if (this.#start * 2 < ends.length) return;
    ends.splice(0, this.#start);
    this.#start = 0;
  }

  /** The index of the first record that is not before this one. */
  #placeOf(record: EndingRecord): number {
    let [low, high] = [this.#start, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#ends[middle] as EndingRecord, record)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBefore(a: EndingRecord, b: EndingRecord): boolean {
  const [endA, endB] = [a.endedAt ?? a.keepUntil, b.endedAt ?? b.keepUntil];
  return endA === endB ? a.key < b.key : endA < endB;
}
