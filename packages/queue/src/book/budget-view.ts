import type { BudgetPolicies } from "@slotkeeper/protocol";
import { type Level, missingAt, newLevel } from "slotkeeper/parts";
import type { Book } from "./book.ts";

/** A budget for people and for headers. It only reads: `budgets.ts` writes. */
export interface BudgetView {
  readonly name: string;
  /** Units that flow in per `perMs`. */
  readonly limit: number;
  readonly perMs: number;
  /** The most units that the budget holds. */
  readonly burst: number;
  /** The cost of a request that does not name the budget. */
  readonly default: number;
  /** It is charged and counted, but no request waits for it. */
  readonly isShadow: boolean;
  /** What can be charged now; below 0 while the budget is in debt. */
  readonly available: number;
  /** The time until the budget is full, if nothing is charged meanwhile. */
  readonly fullInMs: number;
}

/** The budgets of a host. `levelOf` returns what is missing from a budget; undefined: it is full. */
export function viewBudgets(
  budgets: BudgetPolicies | undefined,
  levelOf: (name: string) => Level | undefined,
  now: number,
): readonly BudgetView[] {
  if (budgets === undefined) return NONE;
  return Object.entries(budgets).map(([name, budget]) => {
    const { limit, perMs, burst, default: cost, isShadow = false } = budget;
    const missing = missingAt(levelOf(name) ?? newLevel(), budget, now);
    const fullInMs = (missing * perMs) / limit;
    return { name, limit, perMs, burst, default: cost, isShadow, available: burst - missing, fullInMs };
  });
}

/** The budgets in a book. */
export function budgetsOf(book: Book, now: number): readonly BudgetView[] {
  return viewBudgets(book.limits && book.policy.budgets, (name) => book.get("budget", name)?.level, now);
}

const NONE: readonly BudgetView[] = [];
