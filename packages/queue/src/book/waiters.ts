import type { Book } from "./book.ts";
import { dropOffer } from "./leases.ts";
import type { WaiterRecord } from "./records.ts";
import { join, retire } from "./use.ts";

/**
 * The waiters of a host: joining, moving between instances, places in the pool, leaving. The only writer of waiter records
 * but for what `leases.ts` hands over.
 *
 * WAITER1 a session has a waiter record, or a lease, or an end, never two of them
 * WAITER2 the pool holds no more than its limits, but for waiters inside when a limit was lowered
 * WAITER3 a waiter that loses its place or moves to another instance keeps its arrival time; one that returns after its instance died
 *    is before those that arrived after it, as if it had stayed
 */

/** `isReturning`: it waited before, and the book lost it when its instance died. */
export function addWaiter(book: Book, waiter: Omit<WaiterRecord, "kind" | "isInside">, isReturning = false): void {
  const places = book.index.bucket(waiter.bucket) ?? { name: waiter.bucket, places: 0 };
  const { isAdmitted, displaces } = book.index.pool.admits(
    places,
    book.policy,
    isReturning ? waiter.arrivedAt : undefined,
  );
  if (displaces !== undefined) putOutside(book, displaces.record);
  if (isAdmitted) join(book, waiter.bucket, waiter.weight, isReturning);
  const { key, instance, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt } = waiter;
  book.put({
    kind: "waiter",
    key,
    instance,
    bucket,
    weight,
    arrivedAt,
    deadlineAt,
    openMs,
    isInside: isAdmitted,
    awayAt,
  });
}

/** Gives free places to those outside. False: there was none to give. */
export function admitWaiters(book: Book): boolean {
  const { index, policy } = book;
  let isAdmitted = false;
  for (let next = index.pool.next(policy); next !== undefined; next = index.pool.next(policy)) {
    join(book, next.record.bucket, next.record.weight);
    book.put({ ...next.record, isInside: true });
    isAdmitted = true;
  }
  return isAdmitted;
}

/** Where the session's client is: at this instance, with a poll open or away since. */
export function placeClient(book: Book, waiter: WaiterRecord, instance: string, awayAt: number | undefined): void {
  const stored = book.get("waiter", waiter.key);
  if (stored === waiter && waiter.instance === instance && waiter.awayAt === awayAt) return;
  book.put({ ...waiter, instance, awayAt });
}

/** Without an end (`ends.ts`) the session lives on in its token, and joins again where its client asks next. */
export function dropWaiter(book: Book, { key, bucket }: WaiterRecord): void {
  const offer = book.get("offer", key);
  if (offer !== undefined) dropOffer(book, offer);
  book.del("waiter", key);
  retire(book, bucket);
}

function putOutside(book: Book, waiter: WaiterRecord): void {
  book.put({ ...waiter, isInside: false });
  retire(book, waiter.bucket);
}
