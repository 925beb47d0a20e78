import type { BudgetPolicies, BudgetPolicy, Costs } from "@slotkeeper/protocol";
import { charge, freeze, type Level, missingAt, newLevel, payableAt, refund } from "slotkeeper/parts";
import type { HostPolicy } from "../host-policy.ts";
import type { Book } from "./book.ts";
import { countGrant, recount, uncount } from "./charged.ts";
import type { BudgetRecord, Charge, LeaseRecord, WaiterRecord } from "./records.ts";

/**
 * The budgets of a host. They refill continuously by store time (`level.ts` of the library). Only this file writes budget
 * records and `fullAt`.
 *
 * PAY1 In any interval T the charges of an enforced budget, net of refunds and without debts, are at most burst + limit × T / perMs.
 * PAY2 A grant or an offer charges all its budgets, or does not happen. The lease that follows an offer charges nothing.
 * PAY3 A refund counts as of its charge, and never gives back more than what is still missing.
 * PAY4 A debt is at most one limit. It comes from a settlement, or from a grant in shadow mode. Nothing is granted from a
 *   budget in debt that is enforced.
 * PAY5 Changed limits keep what was spent, in units and by name. A budget without a record is full.
 * PAY6 A budget in shadow mode is charged as if it were enforced, but holds back no grant. A grant that found it short
 *   says so (`Charge.short`).
 */

const NO_COSTS: Costs = {};

/** What a request costs, of every budget of the host. Undefined: the host has none. */
function costsOf({ budgets }: HostPolicy, cost: Costs | undefined): Costs | undefined {
  if (budgets === undefined) return undefined;
  return Object.fromEntries(Object.entries(budgets).map(([name, budget]) => [name, cost?.[name] ?? budget.default]));
}

/** Whether two requests name the same costs. */
export function isSameCost(a: Costs = {}, b: Costs = {}): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

/** The budgets that cannot pay the cost now, with the time at which each can. */
export function missingBudgets(book: Book, cost: Costs | undefined): { readonly name: string; readonly at: number }[] {
  return Object.entries(costsOf(book.policy, cost) ?? NO_COSTS).flatMap(([name, amount]) => {
    const at = policyOf(book, name).isShadow === true ? 0 : payableFrom(book, name, amount);
    return at === 0 ? [] : [{ name, at }];
  });
}

/** 0: the budget can pay now. Otherwise the time at which it can. */
function payableFrom(book: Book, name: string, amount: number): number {
  return payableAt(levelOf(book, name), policyOf(book, name), amount, book.now);
}

/** PAY2. Undefined: the host has no budgets, and the request names none. */
export function pay(book: Book, { bucket, cost }: Pick<WaiterRecord, "bucket" | "cost">): Charge | undefined {
  const costs = costsOf(book.policy, cost);
  if (costs === undefined && cost === undefined) return undefined;
  const paid = Object.entries(costs ?? NO_COSTS).map(([name, amount]) => ({ name, ...payOne(book, name, amount) }));
  const short = paid.filter(({ isShort }) => isShort).map(({ name }) => `budget:${name}`);
  return {
    at: book.now,
    costs: Object.fromEntries(paid.map(({ name, charged }) => [name, charged])),
    asked: cost,
    short: short.length > 0 ? short : undefined,
    counted: countGrant(book, bucket, cost),
  };
}

/** PAY6: a budget in shadow mode is charged although it is short, as a debt of at most one limit. */
function payOne(book: Book, name: string, amount: number): { readonly charged: number; readonly isShort: boolean } {
  const budget = policyOf(book, name);
  const isShort = budget.isShadow === true && payableFrom(book, name, amount) !== 0;
  const charged = isShort ? Math.min(amount, payableDebt(levelOf(book, name), budget, book.now)) : amount;
  change(book, name, (level) => charge(level, budget, charged, book.now));
  return { charged, isShort };
}

/** Gives back everything. A budget that the host no longer has is left as it is. */
export function giveBack(book: Book, { bucket, charge: paid }: Pick<LeaseRecord, "bucket" | "charge">): void {
  uncount(book, bucket, paid?.counted);
  for (const [name, estimate] of Object.entries(paid?.costs ?? NO_COSTS))
    if (hasBudget(book, name)) correct(book, name, paid?.at ?? 0, -estimate);
}

/** The result of a settlement, by the names of budgets. */
export interface Settlement {
  /** No such charge, or no such amount: the charge is kept. */
  readonly ignored: readonly string[];
  /** The units that exceed the largest debt, and so are not charged. */
  readonly excess: Costs;
}

/** Replaces the charges of the named budgets by what was really used. */
export function settle(
  book: Book,
  { bucket, charge: paid }: Pick<LeaseRecord, "bucket" | "charge">,
  used: Costs,
): Settlement {
  const ignored: string[] = [];
  const excess: { [name: string]: number } = {};
  for (const [name, amount] of Object.entries(used)) {
    const estimate = paid !== undefined && Object.hasOwn(paid.costs, name) ? paid.costs[name] : undefined;
    const isPossible = Number.isFinite(amount) && amount >= 0;
    if (paid === undefined || estimate === undefined || !isPossible || !hasBudget(book, name)) ignored.push(name);
    else {
      const rest = correct(book, name, paid.at, amount - estimate);
      if (rest > 0) excess[name] = rest;
      recount(book, bucket, paid.counted, { [name]: amount });
    }
  }
  return { ignored, excess };
}

/** Gives back a part of a charge as of its time, or charges more now. Returns what exceeds the largest debt. */
function correct(book: Book, name: string, chargedAt: number, more: number): number {
  const budget = policyOf(book, name);
  let rest = 0;
  if (more < 0) change(book, name, (level) => refund(level, budget, -more, chargedAt, book.now));
  if (more > 0)
    change(book, name, (level) => {
      const charged = Math.min(more, payableDebt(level, budget, book.now));
      charge(level, budget, charged, book.now);
      rest = more - charged;
    });
  return rest;
}

function hasBudget({ policy }: Book, name: string): boolean {
  return policy.budgets !== undefined && Object.hasOwn(policy.budgets, name);
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
