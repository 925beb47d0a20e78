import { usedPerWeight } from "../order/order.ts";
import type { Book } from "./book.ts";
import type { AccountRecord } from "./records.ts";

/**
 * The meter and the accounts: how much of the host each bucket has used, as `order.ts` needs it.
 *
 * USE1 the meter runs on the sums as they were (BOOK3)
 * USE2 an account is charged up to the moment at which what its bucket holds changes
 * USE3 a bucket that becomes active joins at the meter, never below what it had; with a session that returns to its place it joins
 *    beside the best of those that wait, where only the arrival counts
 * USE4 an account that is idle and not ahead of the meter does not exist: forgetting it changes nothing
 */

/** Charges the bucket up to now, and opens its account if it has none. */
export function charge(book: Book, name: string, weight?: number, level?: number): AccountRecord {
  book.runMeter();
  const { meterAt: at, progress: meter } = book.head;
  const progress = Math.min(meter, level ?? meter);
  const bucket = book.index.bucket(name);
  const account = bucket?.account;
  const nextWeight = weight ?? bucket?.weight ?? 1;
  let usedMs = progress * nextWeight;
  if (bucket !== undefined && account !== undefined) {
    const used = bucket.usedMs + bucket.inFlight * Math.max(0, at - bucket.asOf);
    // A changed weight keeps the place per weight: neither a windfall nor a debt.
    usedMs = bucket.isActive ? used * (nextWeight / bucket.weight) : Math.max(used, usedMs);
  }
  // Charged at this moment before: most decisions touch a bucket more than once.
  if (account?.asOf === at && account.usedMs === usedMs && account.weight === nextWeight) return account;
  const charged: AccountRecord = {
    kind: "account",
    key: name,
    weight: nextWeight,
    usedMs,
    asOf: at,
    denyUntil: account?.denyUntil,
    denyReason: account?.denyReason,
    waitCount: account?.waitCount,
    waitCountedAt: account?.waitCountedAt,
    virtualTime: account?.virtualTime,
  };
  book.put(charged);
  return charged;
}

/**
 * A waiter is about to join: its bucket must have an account, with the waiter's weight. `isReturning`: it had its place before its
 * instance died, and was not counted since. The meter has gone on, and must not put it behind those that came after it.
 */
export function join(book: Book, name: string, weight: number, isReturning = false): void {
  const bucket = book.index.bucket(name);
  if (bucket?.account !== undefined && bucket.isActive && bucket.weight === weight) return;
  charge(book, name, weight, isReturning ? lowestLevel(book) : undefined);
}

/** What the bucket that is next has used per weight; undefined: none is. */
function lowestLevel(book: Book): number | undefined {
  book.runMeter();
  const { index, head, inFlight } = book;
  const best = index.order.best(index.ledger.level(head.slots, inFlight), head.meterAt);
  return best === undefined ? undefined : usedPerWeight(best, head.meterAt);
}

/** Forgets the account of a bucket without slots or waiters, once forgetting it changes nothing (USE4). */
export function retire(book: Book, name: string): void {
  const bucket = book.index.bucket(name);
  if (bucket?.account === undefined || bucket.isActive || bucket.isDenied) return;
  const { waitCount, virtualTime } = bucket.account;
  const isPassed = bucket.usedMs <= book.head.progress * bucket.weight + ROUNDING_MS;
  if (isPassed && waitCount === undefined && virtualTime === undefined) book.del("account", name);
}

/** Forgets idle accounts that the meter has passed, and the scheduler's numbers of buckets idle for `idleMs`. */
export function retireIdle(book: Book, idleMs: number): void {
  for (let bucket = book.index.nextIdle; bucket?.account !== undefined; bucket = book.index.nextIdle) {
    const { usedMs, weight, account, name } = bucket;
    const isPassed = usedMs <= book.head.progress * weight + ROUNDING_MS;
    const hasTurn = account.virtualTime !== undefined || account.waitCount !== undefined;
    if (!isPassed || bucket.isDenied || (hasTurn && book.now - account.asOf < idleMs)) return;
    book.del("account", name);
  }
}

/** A bucket alone uses exactly what the meter shows, but for the rounding of sums. */
const ROUNDING_MS = 1e-3;
