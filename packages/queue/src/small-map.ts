/**
 * A map for collections that usually have no entry or one: the leases, waiters or lines of a host. With up to one
 * entry it needs no hash table. A built-in `Map` does: an empty one takes 200 bytes, and it creates a new table
 * whenever its last entry is deleted. With `Map`s an idle host takes 5.7 kB instead of 4.1.
 */
export class SmallMap<K, V> {
  #key: K | undefined;
  #value: V | undefined;
  /** Used from the second entry on, until the map is empty again. */
  #many: Map<K, V> | undefined;

  get size(): number {
    if (this.#many !== undefined) return this.#many.size;
    return this.#value === undefined ? 0 : 1;
  }

  get(key: K): V | undefined {
    if (this.#many !== undefined) return this.#many.get(key);
    return this.#key === key ? this.#value : undefined;
  }

  has(key: K): boolean {
    return this.get(key) !== undefined;
  }

  /** `value` is never undefined. */
  set(key: K, value: V): void {
    if (this.#many !== undefined) this.#many.set(key, value);
    else if (this.#value === undefined || this.#key === key) {
      this.#key = key;
      this.#value = value;
    } else {
      this.#many = new Map([[this.#key as K, this.#value]]);
      this.#many.set(key, value);
      this.#key = this.#value = undefined;
    }
  }

  /** Returns false if there is no such entry. */
  delete(key: K): boolean {
    if (this.#many !== undefined) {
      const isDeleted = this.#many.delete(key);
      if (this.#many.size === 0) this.#many = undefined;
      return isDeleted;
    }
    if (this.#value === undefined || this.#key !== key) return false;
    this.#key = this.#value = undefined;
    return true;
  }

  keys(): Iterable<K> {
    if (this.#many !== undefined) return this.#many.keys();
    return this.#value === undefined ? [] : [this.#key as K];
  }

  values(): Iterable<V> {
    if (this.#many !== undefined) return this.#many.values();
    return this.#value === undefined ? [] : [this.#value];
  }
}
