import { first, type Key } from "./state.ts";

/** What the order by a budget has charged a line, or a class. */
type Charged = { weight: number; charged: number };

/** The smallest charge per weight, then the oldest head. */
export function leastCharged<T extends Charged>(among: readonly T[], headKeys: (item: T) => Key[]): T | undefined {
  const least = Math.min(...among.map(({ charged, weight }) => charged / weight));
  const isLeast = ({ charged, weight }: T) => charged / weight - least <= 1e-12 * Math.max(1, charged / weight);
  return first(among.filter(isLeast), headKeys);
}

/** Starts at the smallest charge per weight of those that wait, or where the last grant was made; never below its own. */
export function startCharge(account: Charged, waiting: readonly Charged[], last: number): void {
  const levels = waiting.map(({ charged, weight }) => charged / weight);
  const level = levels.length === 0 ? last : Math.min(...levels);
  if (account.charged / account.weight < level) account.charged = level * account.weight;
}

export function recharge(account: Charged, by: number): void {
  account.charged = Math.max(0, account.charged + by);
}
