import { classOf } from "@slotkeeper/protocol";
import type { Book } from "./book.ts";
import type { ClassIndex } from "./class-index.ts";
import { joinClass } from "./class-use.ts";
import { roomOf } from "./classes.ts";
import { dropOffer } from "./leases.ts";
import { lineOfWaiter, type WaiterEntry } from "./line.ts";
import type { WaiterRecord } from "./records.ts";
import { join, leave, retire } from "./use.ts";
import { WaiterPool } from "./waiter-pool.ts";

/** Of a class that has no line yet. It is never written. */
const EMPTY_POOL = new WaiterPool();

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
export function addWaiter(book: Book, given: Omit<WaiterRecord, "kind" | "isInside">, isReturning: boolean): void {
  const waiter = recordOf(given);
  // LADDER3: it stands at its keys first.
  if (book.policy.keys !== undefined) {
    book.put(waiter);
    if (book.index.heldAt(waiter.key) !== undefined) return;
  }
  const places = book.index.line(lineOfWaiter(waiter)) ?? { bucket: waiter.bucket, places: 0 };
  const pool = book.index.ofClass(classOf(waiter.demand))?.pool ?? EMPTY_POOL;
  const { isAdmitted, displaces } = pool.admits(places, book.policy, isReturning ? waiter.arrivedAt : undefined);
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
  let isAdmitted = false;
  for (const one of book.index.classes)
    for (let next = nextToEnter(book, one); next !== undefined; next = nextToEnter(book, one)) {
      if (one.pool.isFull(book.policy) && !makePlace(book, one, collectMs)) break;
      putInside(book, next.record);
      isAdmitted = true;
    }
  return isAdmitted;
}

function nextToEnter({ index, policy }: Book, { name }: ClassIndex): WaiterEntry | undefined {
  return index.ofClass(name)?.pool.next(policy);
}

/** WPOOL5. Call it when every waiter inside that can have a slot has one. False: no waiter got a place. */
export function swapStuck(book: Book): boolean {
  return book.canGrant && book.index.classes.some((one) => swapIn(book, one));
}

function swapIn(book: Book, one: ClassIndex): boolean {
  const { pool } = one;
  const { policy } = book;
  if (!pool.hasOutsiders || !pool.isFull(policy) || roomOf(book, one) <= 0) return false;
  const swap = pool.swap(policy);
  if (swap === undefined) return false;
  putOutside(book, swap.leaves.record);
  putInside(book, swap.enters.record);
  return true;
}

/** WPOOL4, LADDER3. */
function makePlace(book: Book, one: ClassIndex, collectMs: number): boolean {
  const away = one.longestAway?.record;
  const isGone = away?.awayAt !== undefined && away.awayAt + collectMs <= book.now;
  const leaves = isGone ? away : one.heldBack?.peek()?.record;
  if (leaves === undefined) return false;
  putOutside(book, leaves);
  return book.index.ofClass(one.name)?.pool.isFull(book.policy) !== true;
}

/** Records where the client of the session is: at this instance, with an open poll or away since `awayAt`. */
export function placeClient(book: Book, waiter: WaiterRecord, instance: string, awayAt: number | undefined): void {
  const stored = book.get("waiter", waiter.key);
  if (stored === waiter && waiter.instance === instance && waiter.awayAt === awayAt) return;
  book.put({ ...waiter, instance, awayAt });
}

/** Without a recorded end (`ends.ts`) the session may join again: its client has its token. */
export function dropWaiter(book: Book, waiter: WaiterRecord): void {
  const line = lineOfWaiter(waiter);
  const offer = book.get("offer", waiter.key);
  if (offer !== undefined) dropOffer(book, offer);
  leave(book, line);
  book.del("waiter", waiter.key);
  retire(book, line);
}

function putInside(book: Book, waiter: WaiterRecord): void {
  enterPool(book, waiter);
  book.put({ ...waiter, isInside: true });
}

/** Call before the record of the waiter is put. */
function enterPool(book: Book, waiter: WaiterRecord, isReturning?: boolean): void {
  const line = lineOfWaiter(waiter);
  const name = classOf(waiter.demand);
  join(book, line, waiter.weight, isReturning);
  joinClass(book, name);
  const ofClass = book.index.ofClass(name);
  if (ofClass !== undefined) book.index.orderOf(ofClass).join(book, line);
}

function putOutside(book: Book, waiter: WaiterRecord): void {
  const line = lineOfWaiter(waiter);
  leave(book, line);
  book.put({ ...waiter, isInside: false });
  retire(book, line);
}
