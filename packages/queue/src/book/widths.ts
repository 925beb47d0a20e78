/** The widths above 1 of the waiters in the pool, and of leases and offers, with their numbers. Most hosts have none. */
export class Widths {
  #wide: Map<number, number> | undefined;

  /** The greatest of them. */
  get widest(): number {
    let widest = 1;
    if (this.#wide !== undefined) for (const width of this.#wide.keys()) widest = Math.max(widest, width);
    return widest;
  }

  add(width: number, by: 1 | -1): void {
    if (width === 1) return;
    this.#wide ??= new Map();
    const count = (this.#wide.get(width) ?? 0) + by;
    if (count === 0) this.#wide.delete(width);
    else this.#wide.set(width, count);
  }
}
