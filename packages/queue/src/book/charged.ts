import { amountOf, budgetOfOrder, type Costs } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import type { Book } from "./book.ts";
import { chargeClass, noteChargeLevel } from "./class-use.ts";
import { partsOfLine } from "./line.ts";
import type { AccountRecord } from "./records.ts";
import { charge } from "./use.ts";

/**
 * What the order `budget:NAME` has charged each line and each class. Other orders write nothing of this.
 *
 * CHARGED1 A grant or an offer adds its cost of the budget, at least 1. A settlement replaces that by what was used, at
 *   least 1. What is given back is subtracted again.
 * CHARGED2 A changed weight keeps the charge per weight (`use.ts`). A charge is kept for `idleMs` after the last waiter of
 *   its line.
 * CHARGED3 If the order changes, all accounts start at zero (`startAccounts` in `use.ts`), and grants from before correct
 *   nothing.
 */

/** What a grant adds to the charge of its line. */
export function unitsOf({ order, budgets }: HostPolicy, cost: Costs | undefined): number {
  const name = budgetOfOrder(order) ?? "";
  return atLeast1(amountOf(cost, name) ?? budgets?.[name]?.default ?? 0);
}

/** CHARGED1, when a slot is granted or offered. Returns what was added. Undefined: the order is not by a budget. */
export function countGrant(book: Book, line: string, cost: Costs | undefined): number | undefined {
  if (budgetOfOrder(book.policy.order) === undefined) return undefined;
  const units = unitsOf(book.policy, cost);
  const { charged = 0, weight } = accountOf(book, line);
  noteChargeLevel(book, partsOfLine(line)[0], charged / weight);
  add(book, line, units);
  return units;
}

/** CHARGED1, when it is settled. `counted`: what its grant added. */
export function recount(book: Book, line: string, counted: number | undefined, used: Costs): void {
  const amount = amountOf(used, budgetOfOrder(book.policy.order) ?? "");
  if (counted !== undefined && amount !== undefined) add(book, line, atLeast1(amount) - counted);
}

/** CHARGED1, when it is given back. */
export function uncount(book: Book, line: string, counted: number | undefined): void {
  if (counted !== undefined) add(book, line, -counted);
}

/** Raises the charge of the line to this charge per weight. */
export function raiseTo(book: Book, line: string, level: number): void {
  const account = accountOf(book, line);
  book.put({ ...account, charged: level * account.weight });
}

function add(book: Book, line: string, units: number): void {
  if (units === 0) return;
  chargeClass(book, partsOfLine(line)[0], units);
  const account = accountOf(book, line);
  book.put({ ...account, charged: Math.max(0, (account.charged ?? 0) + units) });
}

/** An account is not charged again: a line that returns may start below the meter, and a second charge would lift it. */
function accountOf(book: Book, name: string): AccountRecord {
  return book.index.line(name)?.account ?? charge(book, name);
}

function atLeast1(amount: number): number {
  return Math.max(1, amount);
}
