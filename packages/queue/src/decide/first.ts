import { budgetOfOrder, classOf, widthOf } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { missingBudgets } from "../book/budgets.ts";
import { isClassInShare } from "../book/classes.ts";
import { lineOfWaiter } from "../book/line-name.ts";
import type { WaiterRecord } from "../book/records.ts";
import { isInShare } from "../book/use.ts";
import type { Deciding } from "./deciding.ts";
import { endWaiter } from "./ends.ts";
import { impossible } from "./impossible.ts";

/**
 * The first of a host: the best-ranked waiter, if it needs more slots than are free, or a budget cannot pay for it. While
 * it waits, no other waiter is granted. Otherwise narrow or cheap requests would take each slot and each unit that becomes
 * free, and a wide or expensive one would never be granted.
 *
 * FIRST1 Only the best-ranked waiter is first. One that lacks only slots is first only while its line and its class are
 *   in zone 0 or 1 of `order.ts`, or if the order is by a budget.
 * FIRST2 While there is a first, no other waiter and no direct caller is granted. Nothing is set aside for it.
 * FIRST3 Each decision finds it again. So it waits at most until `width` slots end and its budgets have refilled, or until
 *   another waiter ranks better.
 * The head names it, for direct callers and for answers. A host without wide requests and budgets has none: its
 * best-ranked waiter fits whenever a slot is free.
 */

export function isTooWide({ free }: Book, { demand }: WaiterRecord): boolean {
  return widthOf(demand) > free;
}

/** Whether it can be granted now: enough slots are free, and all budgets can pay. */
export function fits(book: Book, waiter: WaiterRecord): boolean {
  return !isTooWide(book, waiter) && missingBudgets(book, waiter).length === 0;
}

/** Whether the best-ranked waiter may be first. In the order by a budget it always may (CORDER3). */
export function mayBeFirst(book: Book, waiter: WaiterRecord): boolean {
  if (budgetOfOrder(book.policy.order) !== undefined) return true;
  const isOwn = isInShare(book, lineOfWaiter(waiter)) && isClassInShare(book, classOf(waiter.demand));
  return isOwn || missingBudgets(book, waiter).length > 0;
}

/** Undefined: there is no first. */
export function setFirst(book: Book, session: string | undefined): void {
  if (book.head.first !== session) book.draft.first = session;
}

/** Call when the limits have changed: ends the waiters that they can never allow. */
export function endImpossible(deciding: Deciding): void {
  const { book } = deciding;
  for (const waiter of Array.from(book.all("waiter")))
    if (impossible(book, waiter, book.head.slots) !== undefined) endWaiter(deciding, waiter, "impossible");
}
