import { budgetOfOrder, DEFAULT_CLASS } from "@slotkeeper/protocol";
import { ROUNDING_MS, reweighed } from "../order/order.ts";
import type { Book } from "./book.ts";
import { ceilingOf, classPolicy } from "./classes.ts";
import type { ClassUse, ClassUses } from "./records.ts";

/**
 * The use of classes: slot time, the meters of their lines, and what an order by a budget has charged them. A class starts
 * at the meter of the host when it becomes active.
 *
 * CUSE1 The use of all classes and their meters are advanced together with the meter of the host (BOOK3).
 * CUSE2 A changed weight keeps how far the class is ahead of the meter, in slot time, and its charge per weight.
 * Only this file writes `head.classes`. It is there while the limits have classes, or a request of an earlier class is left.
 * Cost: O(classes) for each decision.
 */

/** How fast the meter of the host advances. */
export function meterRate(book: Book): number {
  const { slots, classes } = book.head;
  if (classes === undefined) return book.index.ofClass(DEFAULT_CLASS)?.ledger.rate(slots) ?? 0;
  let [weights, demand] = [0, 0];
  for (const { name, ledger } of book.index.classes) {
    if (!ledger.isActive) continue;
    weights += classPolicy(book.policy, name).weight;
    demand += Math.min(ceilingOf(book, name), ledger.demand);
  }
  return weights > 0 ? Math.min(slots, demand) / weights : 0;
}

/** CUSE1. */
export function advanceUses(book: Book, uses: ClassUses, elapsedMs: number): ClassUses {
  const advanced: { [name: string]: ClassUse } = { ...uses };
  for (const { name, inFlight, ledger } of book.index.classes) {
    const use = ownUse(uses, name);
    if (use === undefined || !ledger.isActive) continue;
    const usedMs = inFlight * elapsedMs;
    const progress = use.progress + usedMs / ledger.activeWeight;
    advanced[name] = { ...use, usedMs: use.usedMs + usedMs, progress, activeAt: book.now };
  }
  return advanced;
}

export function useOf(book: Book, name: string): ClassUse {
  const { weight } = classPolicy(book.policy, name);
  return ownUse(book.head.classes, name) ?? { weight, usedMs: 0, progress: 0, activeAt: book.now };
}

/** A class may have the name of a method of every object. */
export function ownUse(uses: ClassUses | undefined, name: string): ClassUse | undefined {
  return uses !== undefined && Object.hasOwn(uses, name) ? uses[name] : undefined;
}

function setUse(book: Book, name: string, use: ClassUse): void {
  book.draft.classes = { ...book.head.classes, [name]: use };
}

/** The meter at which the lines of a class start: what a line of weight 1 would have used if it had always been active. */
export function meterOf(book: Book, name: string): number {
  return book.head.classes === undefined ? book.head.progress : useOf(book, name).progress;
}

/**
 * Call before a line of the class becomes active: the class starts at the meter, but never below its earlier use. `level`:
 * the use per weight at which the class of a session that returns starts, if it is less.
 */
export function startClass(book: Book, name: string, level = Number.POSITIVE_INFINITY): void {
  if (book.head.classes === undefined || book.index.ofClass(name)?.ledger.isActive === true) return;
  const use = useOf(book, name);
  const start = Math.min(level, book.head.progress) * use.weight;
  const usedMs = isPassed(book, use) ? start : Math.max(use.usedMs, start);
  setUse(book, name, { ...use, usedMs, activeAt: book.now });
}

/** Whether the meter has passed the use of an idle class. Then the use does not matter any more. */
function isPassed({ head }: Book, { usedMs, weight }: ClassUse): boolean {
  return usedMs <= head.progress * weight + ROUNDING_MS;
}

/** Deletes what does not matter any more of classes without slots and waiters. */
export function retireClasses(book: Book, idleMs: number): void {
  for (const [name, use] of Object.entries(book.head.classes ?? {})) {
    const one = book.index.ofClass(name);
    if (one?.ledger.isActive === true) continue;
    const isCharged = use.charged !== undefined && book.now - use.activeAt < idleMs;
    if ((one?.lines ?? 0) > 0 || isCharged || !isPassed(book, use)) {
      if (!isCharged && use.charged !== undefined) setUse(book, name, { ...use, charged: undefined });
    } else {
      const { [name]: _, ...others } = book.head.classes ?? {};
      book.draft.classes = others;
    }
  }
}

/** With an order by a budget: adds units to the charge of the class. */
export function chargeClass(book: Book, name: string, units: number): void {
  if (book.head.classes === undefined) return;
  const use = useOf(book, name);
  setUse(book, name, { ...use, charged: Math.max(0, (use.charged ?? 0) + units) });
}

/** The charge per weight at which the last grant was made: in the class, and of the class itself. */
export function noteChargeLevel(book: Book, name: string, level: number): void {
  if (book.head.classes === undefined) {
    book.draft.chargeLevel = level;
    return;
  }
  const use = useOf(book, name);
  book.draft.chargeLevel = chargePerWeight(use);
  setUse(book, name, { ...use, chargeLevel: level });
}

export function lastChargeLevel(book: Book, name: string): number {
  const { chargeLevel } = book.head.classes === undefined ? book.head : useOf(book, name);
  return chargeLevel ?? 0;
}

/** With an order by a budget: a class that returns starts where the best of those that wait is (CORDER2). */
export function joinClass(book: Book, name: string): void {
  if (book.head.classes === undefined || budgetOfOrder(book.policy.order) === undefined) return;
  if ((book.index.ofClass(name)?.waiting ?? 0) > 0) return;
  const waiting = book.index.classes.filter((one) => book.index.orderOf(one).first(book) !== undefined);
  const levels = waiting.map((one) => chargePerWeight(useOf(book, one.name)));
  const start = levels.length === 0 ? (book.head.chargeLevel ?? 0) : Math.min(...levels);
  const use = useOf(book, name);
  if (chargePerWeight(use) < start) setUse(book, name, { ...use, charged: start * use.weight });
}

function chargePerWeight({ charged = 0, weight }: ClassUse): number {
  return charged / weight;
}

/** Whether the host has classes: in its limits, or of requests from before these changed. `joining`: the class of a new one. */
export function hasClasses(book: Book, joining = DEFAULT_CLASS): boolean {
  if (book.policy.classes !== undefined || joining !== DEFAULT_CLASS) return true;
  if (book.head.classes === undefined) return false;
  for (const { isIdle, ofClass } of book.index.lines) if (!isIdle && ofClass.name !== DEFAULT_CLASS) return true;
  return false;
}

/** All classes start at the meter of the host, and the meters of their lines at zero. */
export function startClasses(book: Book, isOn: boolean): void {
  if (!isOn && book.head.classes === undefined) return;
  const { progress } = book.head;
  const active = book.index.classes.filter(({ ledger }) => ledger.isActive);
  const uses = active.map(({ name }): [string, ClassUse] => {
    const { weight } = classPolicy(book.policy, name);
    return [name, { weight, usedMs: progress * weight, progress: 0, activeAt: book.now }];
  });
  book.draft.classes = isOn ? Object.fromEntries(uses) : undefined;
}

/** Call when the limits have changed. CUSE2. */
export function reweigh(book: Book): void {
  const uses = book.head.classes;
  if (uses === undefined) return;
  book.runMeter();
  const changed = Object.entries(uses).filter(([name, { weight }]) => weight !== classPolicy(book.policy, name).weight);
  for (const [name, use] of changed) {
    const { weight } = classPolicy(book.policy, name);
    const usedMs = reweighed(use.usedMs, use.weight, weight, book.head.progress);
    setUse(book, name, { ...use, weight, usedMs, charged: use.charged && use.charged * (weight / use.weight) });
  }
}
