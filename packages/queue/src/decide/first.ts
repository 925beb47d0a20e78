import { type Demand, widthOf } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { missingBudgets } from "../book/budgets.ts";
import type { WaiterRecord } from "../book/records.ts";
import { isInShare } from "../book/use.ts";
import { bucketLimit } from "../host-policy.ts";
import type { Impossible } from "../inputs.ts";
import type { Deciding } from "./deciding.ts";
import { endWaiter } from "./ends.ts";

/**
 * The first of a host: the best-ranked waiter, if it needs more slots than are free, or a budget cannot pay for it. While
 * it waits, no other waiter is granted. Otherwise narrow or cheap requests would take each slot and each unit that becomes
 * free, and a wide or expensive one would never be granted.
 *
 * FIRST1 Only the best-ranked waiter is first. One that lacks only slots is first only while its bucket is in zone 0 or 1
 *   of `order.ts`.
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
  return !isTooWide(book, waiter) && missingBudgets(book, waiter.demand).length === 0;
}

/** Whether the best-ranked waiter may be first. */
export function mayBeFirst(book: Book, { bucket, demand }: WaiterRecord): boolean {
  return isInShare(book, bucket) || missingBudgets(book, demand).length > 0;
}

/** Undefined: there is no first. */
export function setFirst(book: Book, session: string | undefined): void {
  if (book.head.first !== session) book.draft.first = session;
}

/** Why the limits can never allow the session. Undefined: they can. `slots`: of the host. */
export function impossible(
  book: Book,
  { bucket, demand }: Pick<WaiterRecord, "bucket" | "demand">,
  slots: number,
): Impossible | undefined {
  const [value, most] = [widthOf(demand), bucketLimit(book.policy, bucket)];
  if (value > slots) return { field: "width", value, most: slots, limit: "the number of slots of the host" };
  if (value > most) return { field: "width", value, most, limit: "the most slots of one bucket" };
  for (const [name, { burst }] of Object.entries(book.policy.budgets ?? {})) {
    const amount = demand?.cost?.[name] ?? 0;
    if (amount > burst) return { field: `cost.${name}`, value: amount, most: burst, limit: "the burst of the budget" };
  }
  return undefined;
}

/** A cost of a budget that the host does not have. */
export function unknownCost({ policy }: Book, { cost = {} }: Demand = {}): Impossible | undefined {
  const name = Object.keys(cost).find((one) => !Object.hasOwn(policy.budgets ?? {}, one));
  if (name === undefined) return undefined;
  const limit = "because the host has no such budget";
  return { field: `cost.${name}`, value: cost[name] as number, most: undefined, limit };
}

/** Call when the limits have changed: ends the waiters that they can never allow. */
export function endImpossible(deciding: Deciding): void {
  const { book } = deciding;
  for (const waiter of Array.from(book.all("waiter")))
    if (impossible(book, waiter, book.head.slots) !== undefined) endWaiter(deciding, waiter, "impossible");
}
