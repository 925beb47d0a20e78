import { IndexedHeap } from "slotkeeper/parts";
import { keyOfAccount } from "./accounts.ts";
import type { BudgetRecord } from "./records.ts";

interface Refill {
  record: BudgetRecord;
  fullAt: number;
  soonIndex: number;
  lateIndex: number;
}

/** The budgets of a host that are not full, by when they are. Derived from the records. Cost: O(log n) for each change. */
export class Refills {
  readonly #byKey = new Map<string, Refill>();
  readonly #soonest = new IndexedHeap<"soonIndex", Refill>("soonIndex", (a, b) => a.fullAt < b.fullAt);
  readonly #latest = new IndexedHeap<"lateIndex", Refill>("lateIndex", (a, b) => a.fullAt > b.fullAt);
  /** How many budgets of each value of a key are not full. */
  readonly #values = new Map<string, number>();

  /** The one that is full first, and when. */
  get next(): Pick<Refill, "record" | "fullAt"> | undefined {
    return this.#soonest.peek();
  }

  /** When all are full. Undefined: they are. */
  get fullAt(): number | undefined {
    return this.#latest.peek()?.fullAt;
  }

  /** How many values of keys have a budget that is not full. */
  get values(): number {
    return this.#values.size;
  }

  /** Whether a value of a key has one. */
  has(key: string): boolean {
    return this.#values.has(key);
  }

  set(before: BudgetRecord | undefined, after: BudgetRecord | undefined): void {
    const { key } = (before ?? after) as BudgetRecord;
    if ((before === undefined) !== (after === undefined)) this.#count(keyOfAccount(key), after === undefined ? -1 : 1);
    const known = this.#byKey.get(key);
    if (after === undefined) {
      if (known === undefined) return;
      this.#soonest.remove(known);
      this.#latest.remove(known);
      this.#byKey.delete(key);
      return;
    }
    const refill = known ?? { record: after, fullAt: 0, soonIndex: -1, lateIndex: -1 };
    refill.record = after;
    refill.fullAt = fullAgainAt(after);
    if (known === undefined) this.#byKey.set(key, refill);
    this.#soonest.put(refill);
    this.#latest.put(refill);
  }

  #count(value: string | undefined, by: 1 | -1): void {
    if (value === undefined) return;
    const count = (this.#values.get(value) ?? 0) + by;
    if (count > 0) this.#values.set(value, count);
    else this.#values.delete(value);
  }
}

function fullAgainAt({ level, limit, perMs }: BudgetRecord): number {
  return level.at + (level.spent * perMs) / limit;
}
