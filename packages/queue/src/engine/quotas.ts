import { type BudgetView, budgetsOf } from "../book/budget-view.ts";
import type { Host } from "./host.ts";

/** What is left of the limits of a host with budgets, for the headers of an answer. A decision in progress counts. */
export interface HostQuotas {
  readonly slots: number;
  readonly free: number;
  readonly budgets: readonly BudgetView[];
}

/** Undefined: the host has no budgets, as far as this instance knows. */
export function quotasOf({ book }: Host, now: number): HostQuotas | undefined {
  if (book.limits?.policy.budgets === undefined) return undefined;
  return { slots: book.head.slots, free: book.free, budgets: budgetsOf(book, now) };
}
