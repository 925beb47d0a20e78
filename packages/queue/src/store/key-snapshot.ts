import { type KeyPolicy, type KeyValues, keyLimitsOf, widthOf } from "@slotkeeper/protocol";
import { keyOfAccount } from "../book/accounts.ts";
import { type BudgetView, viewBudgets } from "../book/budget-view.ts";
import type { BookRecord, BudgetRecord } from "../book/records.ts";

/** One value of a key of a host, for operators. */
export interface KeySnapshot {
  readonly key: string;
  readonly value: string;
  /** The slots of its leases and offers. */
  readonly inFlight: number;
  readonly waiting: number;
  /** The slots that all its requests may have together. Undefined: no limit. */
  readonly slots: number | undefined;
  /** Its slots are counted, but not enforced. */
  readonly isShadow: boolean;
  readonly budgets: readonly BudgetView[];
}

/** How many values of keys are shown. */
const MOST_SHOWN = 50;

/** The busiest values of the keys: those with the most slots first, then those with the most waiters. */
export function busiestKeys(
  keys: readonly KeyPolicy[] | undefined,
  live: readonly BookRecord[],
  budgets: readonly BudgetRecord[],
  now: number,
): readonly KeySnapshot[] {
  if (keys === undefined) return [];
  const counts = countsOf(live, budgets);
  const levels = new Map(budgets.map((record) => [record.key, record.level]));
  return [...counts]
    .flatMap(([id, { inFlight, waiting }]) => {
      const [name = "", ...rest] = id.split(" ");
      const [key, value] = [keys.find((one) => one.name === name), rest.join(" ")];
      if (key === undefined) return [];
      const limits = keyLimitsOf(key, value);
      const own = viewBudgets(limits.budgets, (budget) => levels.get(`${budget} ${id}`), now);
      return [
        { key: name, value, inFlight, waiting, slots: limits.slots, isShadow: key.isShadow === true, budgets: own },
      ];
    })
    .toSorted((a, b) => b.inFlight - a.inFlight || b.waiting - a.waiting || (a.value < b.value ? -1 : 1))
    .slice(0, MOST_SHOWN);
}

interface Counts {
  inFlight: number;
  waiting: number;
}

/** By `tenant acme`. A value whose budgets are not full counts, too. */
function countsOf(live: readonly BookRecord[], budgets: readonly BudgetRecord[]): ReadonlyMap<string, Counts> {
  const counts = new Map<string, Counts>();
  const of = (id: string) => {
    const known = counts.get(id) ?? { inFlight: 0, waiting: 0 };
    counts.set(id, known);
    return known;
  };
  const each = (keys: KeyValues = {}) => Object.entries(keys).map(([name, value]) => of(`${name} ${value}`));
  for (const record of live) {
    if (record.kind === "waiter") for (const one of each(record.demand?.keys)) one.waiting++;
    else if (record.kind === "lease" || record.kind === "offer")
      for (const one of each(record.charge?.asked?.keys)) one.inFlight += widthOf(record.charge?.asked);
  }
  for (const { key } of budgets) {
    const id = keyOfAccount(key);
    if (id !== undefined) of(id);
  }
  return counts;
}
