import { ownsPart, ROUNDING_MS, reweighed, usedPerWeight } from "../order/order.ts";
import type { Book } from "./book.ts";
import { meterOf, retireClasses, startClass, startClasses, useOf } from "./class-use.ts";
import { sharesIn } from "./classes.ts";
import { type Line, partsOfLine } from "./line.ts";
import type { AccountRecord } from "./records.ts";

/**
 * The meter and the accounts: how much of the host each line has used, as `order.ts` needs it. Lines are named by
 * `line.ts`; without classes a line is a bucket, and its meter that of the host.
 *
 * USE1 The meter uses the sums from before a change (BOOK3).
 * USE2 An account is charged before the number of slots of its line changes.
 * USE3 A line that becomes active starts at the meter, but never below its earlier use. If a session returns to its
 *   place, its line starts level with the best line that waits, where only the arrival time decides.
 * USE4 The account of an idle line that is not ahead of the meter is deleted: that changes no decision.
 */

/** Where a session that returns starts: the use per weight of the best line of its class that waits, and of the best class. */
interface StartLevel {
  readonly ofLine?: number | undefined;
  readonly ofClass?: number | undefined;
}

/** Charges the line up to now. Opens an account if there is none. */
export function charge(book: Book, name: string, weight?: number, level: StartLevel = {}): AccountRecord {
  book.runMeter();
  const line = book.index.line(name);
  const ofClass = line?.ofClass.name ?? partsOfLine(name)[0];
  if (line?.isActive !== true) startClass(book, ofClass, level.ofClass);
  const { meterAt: at } = book.head;
  const meter = meterOf(book, ofClass);
  const progress = Math.min(meter, level.ofLine ?? meter);
  const account = line?.account;
  const nextWeight = weight ?? line?.weight ?? 1;
  let usedMs = progress * nextWeight;
  if (line !== undefined && account !== undefined) {
    const used = line.usedMs + line.inFlight * Math.max(0, at - line.asOf);
    if (line.isActive) usedMs = reweighed(used, line.weight, nextWeight, meter);
    else if (!isPassed(book, line)) usedMs = Math.max(used, usedMs);
  }
  // Already charged for this time: most decisions touch a line more than once.
  if (account?.asOf === at && account.usedMs === usedMs && account.weight === nextWeight) return account;
  const units = account?.charged && account.charged * (nextWeight / account.weight);
  const charged: AccountRecord = {
    kind: "account",
    key: name,
    weight: nextWeight,
    usedMs,
    asOf: at,
    refusedAt: account?.refusedAt,
    weighted: account?.weighted,
    charged: units,
  };
  book.put(charged);
  return charged;
}

/**
 * Call before a waiter joins: opens the account of its line, with the weight of the waiter.
 * `isReturning`: the waiter had a place until its instance died, and was not in the book since. Meanwhile the meter
 * advanced, which must not put it behind waiters that came later.
 */
export function join(book: Book, name: string, weight: number, isReturning = false): void {
  const line = book.index.line(name);
  if (line?.account !== undefined && line.isActive && line.weight === weight) return;
  charge(book, name, weight, isReturning ? returnLevel(book, name) : undefined);
}

function returnLevel(book: Book, name: string): StartLevel {
  book.runMeter();
  const one = book.index.ofClass(partsOfLine(name)[0]);
  const line = one && book.index.orderOf(one).first(book);
  const best = book.head.classes === undefined ? undefined : book.order.first(book);
  const use = best && useOf(book, best.ofClass.name);
  return { ofLine: line && usedPerWeight(line, book.head.meterAt), ofClass: use && use.usedMs / use.weight };
}

/** Whether the line is in zone 0 or 1 of the order of its class. */
export function isInShare(book: Book, name: string): boolean {
  const line = book.index.line(name);
  return line !== undefined && ownsPart(line, sharesIn(book, line.ofClass.name));
}

/**
 * Call before a waiter leaves. The other numbers of an account are kept for `idleMs` after the line was last active, and
 * the account says when that was. A line whose waiters all stand at keys is idle.
 */
export function leave(book: Book, name: string): void {
  const line = book.index.line(name);
  if (line?.hasNumbers === true && line.isActive) charge(book, name);
}

/** Deletes the account of a line without slots or waiters if that changes no decision (USE4). */
export function retire(book: Book, name: string): void {
  const line = book.index.line(name);
  if (line?.account === undefined || line.isActive || line.hasNumbers) return;
  if (isPassed(book, line)) book.del("account", name);
}

/** Deletes the other numbers of lines that were idle for `idleMs`, and idle accounts that the meter has passed. */
export function retireIdle(book: Book, idleMs: number): void {
  for (const { name } of book.index.classes) {
    const resting = () => book.index.ofClass(name)?.resting;
    for (let line = resting()?.nextResting; line?.account !== undefined; line = resting()?.nextResting) {
      if (book.now - line.asOf < idleMs) break;
      book.put({ ...line.account, refusedAt: undefined, weighted: undefined, charged: undefined });
    }
    for (let line = resting()?.nextIdle; line?.account !== undefined; line = resting()?.nextIdle) {
      if (!isPassed(book, line)) break;
      book.del("account", line.name);
    }
  }
  retireClasses(book, idleMs);
}

/** Call when the order has changed: all classes and lines start at the meter, and without a charge (CHARGED3). */
export function startAccounts(book: Book, isWithClasses: boolean): void {
  book.runMeter();
  startClasses(book, isWithClasses);
  const { meterAt: asOf } = book.head;
  for (const account of Array.from(book.all("account"))) {
    const usedMs = meterOf(book, partsOfLine(account.key)[0]) * account.weight;
    book.put({ ...account, usedMs, asOf, charged: undefined });
    retire(book, account.key);
  }
  if (book.head.chargeLevel !== undefined) book.draft.chargeLevel = undefined;
}

/** Whether the meter has passed the use of an idle line. Then the use does not matter any more (USE4). */
function isPassed(book: Book, { usedMs, weight, ofClass }: Line): boolean {
  return usedMs <= meterOf(book, ofClass.name) * weight + ROUNDING_MS;
}
