import type { Book } from "./book.ts";
import { dropOffer } from "./leases.ts";
import type { WaiterRecord } from "./records.ts";
import { join, leave, retire } from "./use.ts";

/**
 * The waiters of a host: joining, moving between instances, places in the pool, leaving. Only this file writes waiter
 * records, except that `leases.ts` deletes the record of a waiter that gets a slot.
 *
 * WAITER1 A session has a waiter record, a lease or an end, and never two of them; only the lease of a slot that was
 *   given back by a cancellation may occupy it for some time after the end.
 * WAITER2 The pool stays within its limits, except for waiters that were inside when a limit was lowered.
 * WAITER3 A waiter that loses its place or moves to another instance keeps its arrival time. A waiter that returns
 *   after its instance died is ahead of those that arrived after it, as if it had never left.
 */

/** `isReturning`: the session waited before, and the book dropped it when its instance died. */
export function addWaiter(book: Book, given: Omit<WaiterRecord, "kind" | "isInside">, isReturning = false): void {
  const waiter = recordOf(given);
  // LADDER3: it stands at its keys first.
  if (book.policy.keys !== undefined) {
    book.put(waiter);
    if (book.index.heldAt(waiter.key) !== undefined) return;
  }
  const places = book.index.bucket(waiter.bucket) ?? { name: waiter.bucket, places: 0 };
  const { isAdmitted, displaces } = book.index.pool.admits(
    places,
    book.policy,
    isReturning ? waiter.arrivedAt : undefined,
  );
  if (displaces !== undefined) putOutside(book, displaces.record);
  if (isAdmitted) enterPool(book, waiter, isReturning);
  book.put(isAdmitted ? { ...waiter, isInside: true } : waiter);
}

/** A literal with every field in one order: it is created for every session. */
function recordOf(waiter: Omit<WaiterRecord, "kind" | "isInside">): WaiterRecord {
  const { key, instance, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt, demand } = waiter;
  return {
    kind: "waiter",
    key,
    instance,
    bucket,
    weight,
    arrivedAt,
    deadlineAt,
    openMs,
    isInside: false,
    awayAt,
    demand,
  };
}

/** Gives places to waiters outside: free ones, and those of clients that have been away for `collectMs`. False: no waiter got one. */
export function admitWaiters(book: Book, collectMs: number): boolean {
  const { index, policy } = book;
  let isAdmitted = false;
  for (let next = index.pool.next(policy); next !== undefined; next = index.pool.next(policy)) {
    if (index.pool.isFull(policy) && !makePlace(book, collectMs)) break;
    putInside(book, next.record);
    isAdmitted = true;
  }
  return isAdmitted;
}

/** WPOOL5. Call it when every waiter inside that can have a slot has one. False: no waiter got a place. */
export function swapStuck(book: Book): boolean {
  const { index, policy } = book;
  if (!book.canGrant || !index.pool.hasOutsiders || !index.pool.isFull(policy)) return false;
  const swap = index.pool.swap(policy);
  if (swap === undefined) return false;
  const { leaves, enters } = swap;
  putOutside(book, leaves.record);
  putInside(book, enters.record);
  return true;
}

/** WPOOL4, LADDER3. */
function makePlace(book: Book, collectMs: number): boolean {
  const away = book.index.longestAway?.record;
  const isGone = away?.awayAt !== undefined && away.awayAt + collectMs <= book.now;
  const leaves = isGone ? away : book.index.heldBack?.record;
  if (leaves === undefined) return false;
  putOutside(book, leaves);
  return !book.index.pool.isFull(book.policy);
}

/** Records where the client of the session is: at this instance, with an open poll or away since `awayAt`. */
export function placeClient(book: Book, waiter: WaiterRecord, instance: string, awayAt: number | undefined): void {
  const stored = book.get("waiter", waiter.key);
  if (stored === waiter && waiter.instance === instance && waiter.awayAt === awayAt) return;
  book.put({ ...waiter, instance, awayAt });
}

/** Without a recorded end (`ends.ts`) the session may join again: its client has its token. */
export function dropWaiter(book: Book, { key, bucket }: WaiterRecord): void {
  const offer = book.get("offer", key);
  if (offer !== undefined) dropOffer(book, offer);
  leave(book, bucket);
  book.del("waiter", key);
  retire(book, bucket);
}

function putInside(book: Book, waiter: WaiterRecord): void {
  enterPool(book, waiter);
  book.put({ ...waiter, isInside: true });
}

/** Call before the record of the waiter is put. */
function enterPool(
  book: Book,
  { bucket, weight }: Pick<WaiterRecord, "bucket" | "weight">,
  isReturning?: boolean,
): void {
  join(book, bucket, weight, isReturning);
  book.index.order.join(book, bucket);
}

function putOutside(book: Book, waiter: WaiterRecord): void {
  leave(book, waiter.bucket);
  book.put({ ...waiter, isInside: false });
  retire(book, waiter.bucket);
}
