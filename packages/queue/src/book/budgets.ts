import type { BudgetPolicy, Costs, KeyPolicy } from "@slotkeeper/protocol";
import { charge, freeze, type Level, missingAt, newLevel, payableAt, refund } from "slotkeeper/parts";
import { accountsOf, budgetOfAccount, keyAccounts, policyOfAccount } from "./accounts.ts";
import type { Book } from "./book.ts";
import type { Charge, WaiterRecord } from "./records.ts";

/**
 * The budgets of a host and of the values of its keys (`accounts.ts`). They refill continuously by store time (`level.ts` of the library). Only this file writes budget
 * records and `fullAt`.
 *
 * PAY1 In any interval T the charges of a budget, net of refunds and without debts, are at most burst + limit × T / perMs.
 * PAY2 A grant or an offer charges all its budgets, or does not happen. The lease that follows an offer charges nothing.
 * PAY3 A refund counts as of its charge, and never gives back more than what is still missing.
 * PAY4 A debt comes from a settlement alone, and is at most one limit. Nothing is granted from a budget in debt.
 * PAY5 Changed limits keep what was spent, in units and by name. A budget without a record is full.
 */

type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** The budgets that cannot pay for the request now, with the time at which each can. */
export function missingBudgets(book: Book, asking: Asking): { readonly name: string; readonly at: number }[] {
  return accountsOf(book.policy, asking, book.index.refills).flatMap(({ account, amount }) => {
    const at = payableFrom(book, account, amount);
    return at === 0 ? [] : [{ name: budgetOfAccount(account), at }];
  });
}

/** When the budgets of a key can pay for the request; 0: now. */
export function keyPayableAt(book: Book, key: KeyPolicy, asking: Asking): number {
  const accounts = keyAccounts(key, asking, book.index.refills);
  return Math.max(0, ...accounts.map(({ account, amount }) => payableFrom(book, account, amount)));
}

/** 0: the budget can pay now. Otherwise the time at which it can. */
function payableFrom(book: Book, account: string, amount: number): number {
  return payableAt(levelOf(book, account), policyOf(book, account), amount, book.now);
}

/** PAY2. Undefined: the request asks for nothing special, and nothing is charged. */
export function pay(book: Book, asking: Asking): Charge | undefined {
  const accounts = accountsOf(book.policy, asking, book.index.refills);
  const { demand } = asking;
  if (accounts.length === 0 && demand === undefined) return undefined;
  for (const { account, amount } of accounts)
    change(book, account, (level) => charge(level, policyOf(book, account), amount, book.now));
  const costs = Object.fromEntries(accounts.map(({ account, amount }) => [account, amount]));
  return { at: book.now, costs, asked: demand };
}

/** Gives back everything. A budget that the host no longer has is left as it is. */
export function giveBack(book: Book, paid: Charge | undefined): void {
  if (paid === undefined) return;
  for (const [account, estimate] of Object.entries(paid.costs)) correct(book, account, paid.at, estimate, 0);
}

/** Replaces the charges of the named budgets by what was really used. Unknown names and impossible amounts are ignored. */
export function settle(book: Book, { at, costs }: Charge, used: Costs): void {
  for (const [account, estimate] of Object.entries(costs)) {
    const name = budgetOfAccount(account);
    const amount = Object.hasOwn(used, name) ? used[name] : undefined;
    if (amount === undefined || !Number.isFinite(amount) || amount < 0) continue;
    correct(book, account, at, estimate, amount);
  }
}

function correct(book: Book, account: string, at: number, estimate: number, amount: number): void {
  const budget = policyOfAccount(book.policy, account);
  if (budget === undefined || amount === estimate) return;
  change(book, account, (level) => {
    if (amount < estimate) refund(level, budget, estimate - amount, at, book.now);
    else charge(level, budget, Math.min(amount - estimate, payableDebt(level, budget, book.now)), book.now);
  });
}

/** What a grant was charged, by the name of the budget: of the host, otherwise the most of a key. Undefined: nothing. */
export function chargedOf(paid: Charge | undefined): Costs | undefined {
  const charged: { [name: string]: number } = {};
  for (const [account, amount] of Object.entries(paid?.costs ?? {})) {
    const name = budgetOfAccount(account);
    const isOfHost = paid !== undefined && Object.hasOwn(paid.costs, name);
    charged[name] = isOfHost ? (paid.costs[name] as number) : Math.max(charged[name] ?? 0, amount);
  }
  return Object.keys(charged).length === 0 ? undefined : charged;
}

/** PAY4. */
function payableDebt(level: Level, budget: BudgetPolicy, now: number): number {
  return Math.max(0, budget.burst + budget.limit - missingAt(level, budget, now));
}

/** PAY5. Call when the limits have changed. */
export function keepSpent(book: Book): void {
  for (const record of Array.from(book.all("budget"))) {
    const budget = policyOfAccount(book.policy, record.key) ?? record;
    if (budget.limit === record.limit && budget.perMs === record.perMs && budget.burst === record.burst) continue;
    const level = copyOf(record.level);
    freeze(level, record, book.now);
    put(book, record.key, level, budget);
  }
}

/** Deletes the records of budgets that are full, and notes when the others will be. */
export function tidyBudgets(book: Book): void {
  const { refills } = book.index;
  for (let next = refills.next; next !== undefined && next.fullAt <= book.now; next = refills.next)
    book.del("budget", next.record.key);
  if (book.head.fullAt !== refills.fullAt) book.draft.fullAt = refills.fullAt;
}

/** What can be charged now; below 0 while the budget is in debt. */
export function availableOf(book: Book, name: string, now: number): number {
  const budget = policyOf(book, name);
  return budget.burst - missingAt(levelOf(book, name), budget, now);
}

function policyOf({ policy }: Book, account: string): BudgetPolicy {
  return policyOfAccount(policy, account) as BudgetPolicy;
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
