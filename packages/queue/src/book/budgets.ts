import type { BudgetPolicies, BudgetPolicy, Costs, Demand } from "@slotkeeper/protocol";
import { charge, freeze, type Level, missingAt, newLevel, payableAt, refund } from "slotkeeper/parts";
import type { HostPolicy } from "../host-policy.ts";
import type { Book } from "./book.ts";
import type { BudgetRecord, Charge } from "./records.ts";

/**
 * The budgets of a host. They refill continuously by store time (`level.ts` of the library). Only this file writes budget
 * records and `fullAt`.
 *
 * PAY1 In any interval T the charges of a budget, net of refunds and without debts, are at most burst + limit × T / perMs.
 * PAY2 A grant or an offer charges all its budgets, or does not happen. The lease that follows an offer charges nothing.
 * PAY3 A refund counts as of its charge, and never gives back more than what is still missing.
 * PAY4 A debt comes from a settlement alone, and is at most one limit. Nothing is granted from a budget in debt.
 * PAY5 Changed limits keep what was spent, in units and by name. A budget without a record is full.
 */

const NONE: BudgetPolicies = {};

/** What a request costs, of every budget of the host. Undefined: the host has none. */
function costsOf({ budgets }: HostPolicy, demand: Demand | undefined): Costs | undefined {
  if (budgets === undefined) return undefined;
  const cost = demand?.cost;
  return Object.fromEntries(Object.entries(budgets).map(([name, budget]) => [name, cost?.[name] ?? budget.default]));
}

/** The budgets that cannot pay what the demand costs now, with the time at which each can. */
export function missingBudgets(
  book: Book,
  demand: Demand | undefined,
): { readonly name: string; readonly at: number }[] {
  return Object.entries(costsOf(book.policy, demand) ?? NONE).flatMap(([name, amount]) => {
    const at = payableAt(levelOf(book, name), policyOf(book, name), amount as number, book.now);
    return at === 0 ? [] : [{ name, at }];
  });
}

/** PAY2. Undefined: nothing was charged. */
export function pay(book: Book, demand: Demand | undefined): Charge | undefined {
  const costs = costsOf(book.policy, demand);
  if (costs === undefined) return undefined;
  for (const [name, amount] of Object.entries(costs))
    change(book, name, (level) => charge(level, policyOf(book, name), amount, book.now));
  return { at: book.now, costs };
}

/** Gives back everything. A budget that the host no longer has is left as it is. */
export function giveBack(book: Book, paid: Charge | undefined): void {
  if (paid !== undefined) settle(book, paid, Object.fromEntries(Object.keys(paid.costs).map((name) => [name, 0])));
}

/** Replaces the charges of the named budgets by what was really used. Unknown names and impossible amounts are ignored. */
export function settle(book: Book, { at, costs }: Charge, used: Costs): void {
  for (const [name, amount] of Object.entries(used)) {
    const estimate = costs[name];
    if (estimate === undefined || book.policy.budgets?.[name] === undefined || amount === estimate) continue;
    if (!Number.isFinite(amount) || amount < 0) continue;
    const budget = policyOf(book, name);
    change(book, name, (level) => {
      if (amount < estimate) refund(level, budget, estimate - amount, at, book.now);
      else charge(level, budget, Math.min(amount - estimate, payableDebt(level, budget, book.now)), book.now);
    });
  }
}

/** PAY4. */
function payableDebt(level: Level, budget: BudgetPolicy, now: number): number {
  return Math.max(0, budget.burst + budget.limit - missingAt(level, budget, now));
}

/** PAY5. Call when the limits have changed. */
export function keepSpent(book: Book): void {
  for (const record of Array.from(book.all("budget"))) {
    const budget = book.policy.budgets?.[record.key] ?? record;
    if (budget.limit === record.limit && budget.perMs === record.perMs && budget.burst === record.burst) continue;
    const level = copyOf(record.level);
    freeze(level, record, book.now);
    put(book, record.key, level, budget);
  }
}

/** Deletes the records of budgets that are full, and notes when the others will be. */
export function tidyBudgets(book: Book): void {
  let fullAt: number | undefined;
  for (const record of Array.from(book.all("budget"))) {
    const at = fullAgainAt(record);
    if (at <= book.now) book.del("budget", record.key);
    else fullAt = Math.max(fullAt ?? at, at);
  }
  if (book.head.fullAt !== fullAt) book.draft.fullAt = fullAt;
}

function fullAgainAt({ level, limit, perMs }: BudgetRecord): number {
  return level.at + (level.spent * perMs) / limit;
}

/** What can be charged now; below 0 while the budget is in debt. */
export function availableOf(book: Book, name: string, now: number): number {
  const budget = policyOf(book, name);
  return budget.burst - missingAt(levelOf(book, name), budget, now);
}

function policyOf({ policy }: Book, name: string): BudgetPolicy {
  return (policy.budgets as BudgetPolicies)[name] as BudgetPolicy;
}

function levelOf(book: Book, name: string): Level {
  return book.get("budget", name)?.level ?? newLevel();
}

/** Records are never changed in place, so a copy is. */
function change(book: Book, name: string, act: (level: Level) => void): void {
  const level = copyOf(levelOf(book, name));
  act(level);
  put(book, name, level, policyOf(book, name));
}

function put(book: Book, name: string, level: Level, { limit, perMs, burst }: Omit<BudgetPolicy, "default">): void {
  book.put({ kind: "budget", key: name, limit, perMs, burst, level });
}

function copyOf({ spent, at, fullAt, lowest }: Level): Level {
  return { spent, at, fullAt, lowest: lowest && { times: [...lowest.times], levels: [...lowest.levels] } };
}
