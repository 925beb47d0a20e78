import type { Book } from "../book/book.ts";
import { closesAt } from "../book/breaker.ts";
import { missingBudgets } from "../book/budgets.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { CycleHost, EngineContext } from "./context.ts";

/** When a time is reached, the instance of the best-ranked waiter acts first. The other instances act this much later. */
const OTHERS_WAIT_MS = 20;

/** The next time at which the state of a host may change without an input. Undefined: the book has no such time. */
export function nextMoment({ hasPending, cache }: CycleHost, engine: EngineContext): number | undefined {
  const { book } = cache;
  if (book.limits === undefined || (!hasPending && book.size("waiter") === 0)) return undefined;
  let first = Number.POSITIVE_INFINITY;
  for (const at of hasPending ? moments(book, engine.options().collectMs) : ownMoments(book)) {
    if (at !== undefined && at > book.now && at < first) first = at;
  }
  if (first === Number.POSITIVE_INFINITY) return undefined;
  return hasBestWaiter(book, engine.instance) ? first : first + OTHERS_WAIT_MS;
}

function moments(book: Book, collectMs: number): (number | undefined)[] {
  const { index, head } = book;
  const first = firstOf(book);
  return [
    // While it waits, no other waiter is granted.
    first?.deadlineAt,
    first?.awayAt && first.awayAt + collectMs,
    first && Math.max(...missingBudgets(book, first).map(({ at }) => at)),
    ...classMoments(book, collectMs),
    index.nextLease?.endsAt,
    index.nextOffer?.lapsesAt,
    book.free > 0 ? index.nextCoolAt : undefined,
    book.free > 0 ? index.ladder?.nextAt : undefined,
    closesAt(head.breaker),
    book.order.nextMoment(book),
  ];
}

/** A waiter that the ceiling of its class has no room for may have to leave. */
function classMoments(book: Book, collectMs: number): (number | undefined)[] {
  const over = book.free > 0 ? book.order.overCeiling(book) : [];
  return over.flatMap(({ waiter: { deadlineAt, awayAt } }) => [deadlineAt, awayAt && awayAt + collectMs]);
}

/**
 * No session of this instance waits, only those of others. They may not know of its last commit yet: a released slot
 * that ends soon, or an offer.
 */
function ownMoments({ index }: Book): (number | undefined)[] {
  const { nextLease, nextOffer } = index;
  return [nextLease?.isReleased === true ? nextLease.endsAt : undefined, nextOffer?.lapsesAt];
}

function firstOf(book: Book): WaiterRecord | undefined {
  const { first } = book.head;
  return first === undefined ? undefined : book.get("waiter", first);
}

function hasBestWaiter(book: Book, instance: string): boolean {
  const { order } = book;
  const first = firstOf(book) ?? (order.next(book) ?? order.first(book))?.head?.record;
  return first === undefined || first.instance === instance;
}
