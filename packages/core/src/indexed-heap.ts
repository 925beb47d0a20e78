const NONE: never[] = [];

/**
 * A binary heap whose items know their position, so that any item can be removed or moved in O(log n).
 *
 * IHEAP1 `peek` returns an item that no other item comes before.
 * IHEAP2 `item[key]` is the index of the item in the heap, or −1 if it is not in the heap.
 * The index is a property of the item, because a separate map would cost more than the heap. One item may be in several
 * heaps, with a different key for each. After the rank of an item changes, call `put` before any other method.
 */
export class IndexedHeap<K extends string, T extends { [key in K]: number }> {
  readonly #key: K;
  readonly #before: (a: T, b: T) => boolean;
  /** No array until the first item: most heaps of most hosts stay empty. */
  #items: T[] = NONE;

  constructor(key: K, before: (a: T, b: T) => boolean) {
    this.#key = key;
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  has(item: T): boolean {
    return item[this.#key] >= 0;
  }

  /** In no particular order. */
  values(): IterableIterator<T> {
    return this.#items.values();
  }

  /** Adds the item, or moves it to its place after its rank has changed. */
  put(item: T): void {
    if (this.has(item)) this.#settle(item, item[this.#key]);
    else this.push(item);
  }

  /** The item must not be in the heap. */
  push(item: T): void {
    if (this.#items === NONE) this.#items = [];
    this.#place(item, this.#rise(item, this.#items.push(item) - 1));
  }

  /** An item that is not in the heap is ignored: several events may remove the same item. */
  remove(item: T): void {
    if (!this.has(item)) return;
    const last = this.#items.pop() as T;
    if (last !== item) this.#settle(last, item[this.#key]);
    (item as { [key in K]: number })[this.#key] = -1;
  }

  /** Puts the item at the index, or where it belongs above or below it. */
  #settle(item: T, index: number): void {
    this.#place(item, this.#sink(item, this.#rise(item, index)));
  }

  /** Moves down the items above the index that the item comes before. Returns the index that becomes free. */
  #rise(item: T, from: number): number {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#items[above] as T;
      if (!this.#before(item, parent)) break;
      this.#place(parent, index);
      index = above;
    }
    return index;
  }

  /** Moves up the items below the index that come before the item. */
  #sink(item: T, from: number): number {
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      const right = this.#items[child + 1];
      if (right && this.#before(right, this.#items[child] as T)) child++;
      const better = this.#items[child];
      if (!better || !this.#before(better, item)) return index;
      this.#place(better, index);
      index = child;
    }
  }

  #place(item: T, index: number): void {
    this.#items[index] = item;
    (item as { [key in K]: number })[this.#key] = index;
  }
}
