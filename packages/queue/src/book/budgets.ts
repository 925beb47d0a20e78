import { amountOf, type BudgetPolicy, type Costs, type KeyPolicy, widthOf } from "@slotkeeper/protocol";
import { charge, freeze, type Level, missingAt, newLevel, payableAt, refund } from "slotkeeper/parts";
import { type Account, accountsOf, budgetOfAccount, keyAccounts, limitOfAccount, policyOfAccount } from "./accounts.ts";
import type { Book } from "./book.ts";
import { countGrant, recount, uncount } from "./charged.ts";
import { lineOfSlot, lineOfWaiter } from "./line.ts";
import type { Charge, LeaseRecord, WaiterRecord } from "./records.ts";

/**
 * The budgets of a host and of the values of its keys (`accounts.ts`). They refill continuously by store time (`level.ts` of the library). Only this file writes budget
 * records and `fullAt`.
 *
 * PAY1 In any interval T the charges of an enforced budget, net of refunds and without debts, are at most burst + limit × T / perMs.
 * PAY2 A grant or an offer charges all its budgets, or does not happen. The lease that follows an offer charges nothing.
 * PAY3 A refund counts as of its charge, and never gives back more than what is still missing.
 * PAY4 A debt is at most one limit. It comes from a settlement, or from a grant in shadow mode. Nothing is granted from a
 *   budget in debt that is enforced.
 * PAY5 Changed limits keep what was spent, in units and by name. A budget without a record is full.
 * PAY6 A budget in shadow mode is charged as if it were enforced, but holds back no grant. A grant that found it, or the
 *   slots of a key in shadow mode, short says so (`Charge.short`).
 */

const NO_COSTS: Costs = {};
const NO_NAMES: readonly string[] = [];

interface Missing {
  readonly name: string;
  readonly at: number;
}

const NO_MISSING: readonly Missing[] = [];

type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** The budgets that cannot pay for the request now, with the time at which each can. */
export function missingBudgets(book: Book, asking: Asking): readonly Missing[] {
  let missing: Missing[] | undefined;
  for (const account of accountsOf(book.policy, asking, book.index.refills)) {
    const at = enforcedFrom(book, account);
    if (at !== 0) (missing ??= []).push({ name: account.name, at });
  }
  return missing ?? NO_MISSING;
}

/** When the budgets of a key can pay for the request; 0: now. */
export function keyPayableAt(book: Book, key: KeyPolicy, asking: Asking): number {
  let at = 0;
  for (const account of keyAccounts(key, asking, book.index.refills)) at = Math.max(at, enforcedFrom(book, account));
  return at;
}

/** PAY6. */
function enforcedFrom(book: Book, account: Account): number {
  return account.budget.isShadow === true ? 0 : payableFrom(book, account);
}

/** 0: the budget can pay now. Otherwise the time at which it can. */
function payableFrom(book: Book, { account, budget, amount }: Account): number {
  return payableAt(levelOf(book, account), budget, amount, book.now);
}

/** PAY2. Undefined: the request asks for nothing special, and nothing is charged. */
export function pay(book: Book, asking: Asking): Charge | undefined {
  const accounts = accountsOf(book.policy, asking, book.index.refills);
  const { demand } = asking;
  const shortKeys = book.index.heldKeys?.shortOf(asking, widthOf(demand)) ?? NO_NAMES;
  if (accounts.length === 0 && demand === undefined && shortKeys.length === 0) return undefined;
  const costs: { [account: string]: number } = {};
  let short: Set<string> | undefined = shortKeys.length === 0 ? undefined : new Set(shortKeys);
  for (const account of accounts) {
    const { charged, isShort } = payOne(book, account);
    costs[account.account] = charged;
    if (isShort) (short ??= new Set()).add(limitOfAccount(account));
  }
  const counted = countGrant(book, lineOfWaiter(asking), demand?.cost);
  return { at: book.now, costs, asked: demand, short: short && [...short], counted };
}

/** PAY6: a budget in shadow mode is charged although it is short, as a debt of at most one limit. */
function payOne(book: Book, of: Account): { readonly charged: number; readonly isShort: boolean } {
  const { account, budget, amount } = of;
  const isShort = budget.isShadow === true && payableFrom(book, of) !== 0;
  const charged = isShort ? Math.min(amount, payableDebt(levelOf(book, account), budget, book.now)) : amount;
  change(book, account, budget, (level) => charge(level, budget, charged, book.now));
  return { charged, isShort };
}

/** Gives back everything. A budget that the host no longer has is left as it is. */
export function giveBack(book: Book, slot: Pick<LeaseRecord, "bucket" | "charge">): void {
  const { charge: paid } = slot;
  uncount(book, lineOfSlot(slot), paid?.counted);
  for (const [account, estimate] of Object.entries(paid?.costs ?? NO_COSTS))
    correct(book, account, paid?.at ?? 0, -estimate);
}

/** The result of a settlement, by the names of budgets. */
export interface Settlement {
  /** No such charge, or no such amount: the charge is kept. */
  readonly ignored: readonly string[];
  /** The units that exceed the largest debt, and so are not charged. */
  readonly excess: Costs;
}

/** Replaces the charges of the named budgets, of the host and of keys, by what was really used. */
export function settle(book: Book, lease: Pick<LeaseRecord, "bucket" | "charge">, used: Costs): Settlement {
  const { charge: paid } = lease;
  const ignored: string[] = [];
  const excess: { [name: string]: number } = {};
  for (const [name, amount] of Object.entries(used)) {
    const isPossible = Number.isFinite(amount) && amount >= 0;
    const rest = isPossible ? settleOne(book, paid, name, amount) : undefined;
    if (rest === undefined) ignored.push(name);
    else {
      if (rest > 0) excess[name] = rest;
      recount(book, lineOfSlot(lease), paid?.counted, { [name]: amount });
    }
  }
  return { ignored, excess };
}

/** Returns the most that exceeds the largest debt of a budget with this name. Undefined: none was charged. */
function settleOne(book: Book, paid: Charge | undefined, name: string, amount: number): number | undefined {
  let most: number | undefined;
  for (const [account, estimate] of Object.entries(paid?.costs ?? NO_COSTS)) {
    if (budgetOfAccount(account) !== name) continue;
    const rest = correct(book, account, paid?.at ?? 0, amount - estimate);
    if (rest !== undefined) most = Math.max(most ?? 0, rest);
  }
  return most;
}

/**
 * Gives back a part of a charge as of its time, or charges more now. Returns what exceeds the largest debt. Undefined: the
 * host no longer has the budget.
 */
function correct(book: Book, account: string, chargedAt: number, more: number): number | undefined {
  const budget = policyOfAccount(book.policy, account);
  if (budget === undefined) return undefined;
  let rest = 0;
  if (more < 0) change(book, account, budget, (level) => refund(level, budget, -more, chargedAt, book.now));
  if (more > 0)
    change(book, account, budget, (level) => {
      const charged = Math.min(more, payableDebt(level, budget, book.now));
      charge(level, budget, charged, book.now);
      rest = more - charged;
    });
  return rest;
}

/** What a grant was charged, by the name of the budget: of the host, otherwise the most of a key. Undefined: nothing. */
export function chargedOf(paid: Charge | undefined): Costs | undefined {
  const charged: { [name: string]: number } = {};
  for (const [account, amount] of Object.entries(paid?.costs ?? NO_COSTS)) {
    const name = budgetOfAccount(account);
    charged[name] = amountOf(paid?.costs, name) ?? Math.max(amountOf(charged, name) ?? 0, amount);
  }
  return Object.keys(charged).length === 0 ? undefined : charged;
}

/** PAY4. */
function payableDebt(level: Level, budget: BudgetPolicy, now: number): number {
  return Math.max(0, budget.burst + budget.limit - missingAt(level, budget, now));
}

/** PAY5. Call when the limits have changed. */
export function keepSpent(book: Book): void {
  if (book.size("budget") === 0) return;
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

function levelOf(book: Book, name: string): Level {
  return book.get("budget", name)?.level ?? newLevel();
}

/** Records are never changed in place, so a copy is. */
function change(book: Book, name: string, budget: BudgetPolicy, act: (level: Level) => void): void {
  const level = copyOf(levelOf(book, name));
  act(level);
  put(book, name, level, budget);
}

function put(book: Book, name: string, level: Level, { limit, perMs, burst }: Omit<BudgetPolicy, "default">): void {
  book.put({ kind: "budget", key: name, limit, perMs, burst, level });
}

function copyOf({ spent, at, fullAt, lowest }: Level): Level {
  return { spent, at, fullAt, lowest: lowest && { times: [...lowest.times], levels: [...lowest.levels] } };
}
