const NONE: never[] = [];

/**
 * A binary heap whose items know their position, so that any item can be removed or moved in O(log n).
 *
 * IHEAP1 `peek` returns an item that no other item comes before.
 * IHEAP2 `item[key]` is the index of the item in the heap, or −1 if it is not in the heap.
 * The index is a property of the item, because a separate map would cost more than the heap. One item may be in several
 * heaps, with a different key for each. After the rank of an item changes, call `update` before any other method.
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
    return item[this.#key] !== -1;
  }

  /** In no particular order. */
  values(): IterableIterator<T> {
    return this.#items.values();
  }

  push(item: T): void {
    if (this.#items === NONE) this.#items = [];
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  pop(): T | undefined {
    const top = this.#items[0];
    if (top !== undefined) this.remove(top);
    return top;
  }

  /** An item that is not in the heap is ignored: several events may remove the same item. */
  remove(item: T): void {
    const index = item[this.#key];
    if (index === -1) return;
    this.#place(item, -1);
    const last = this.#items.pop() as T;
    if (last !== item) this.#settle(last, index);
  }

  update(item: T): void {
    this.#settle(item, item[this.#key]);
  }

  #settle(item: T, index: number): void {
    const parent = this.#items[(index - 1) >> 1];
    if (index > 0 && parent !== undefined && this.#before(item, parent)) this.#rise(item, index);
    else this.#sink(item, index);
  }

  #rise(item: T, from: number): void {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#items[above] as T;
      if (!this.#before(item, parent)) break;
      this.#put(parent, index);
      index = above;
    }
    this.#put(item, index);
  }

  #sink(item: T, from: number): void {
    let index = from;
    for (let child = 2 * index + 1; child < this.#items.length; child = 2 * index + 1) {
      const left = this.#items[child] as T;
      const right = this.#items[child + 1];
      const better = right !== undefined && this.#before(right, left) ? right : left;
      if (!this.#before(better, item)) break;
      if (better === right) child++;
      this.#put(better, index);
      index = child;
    }
    this.#put(item, index);
  }

  #put(item: T, index: number): void {
    this.#items[index] = item;
    this.#place(item, index);
  }

  #place(item: T, index: number): void {
    (item as { [key in K]: number })[this.#key] = index;
  }
}
