import { budgetOfOrder, type ClassPolicy, DEFAULT_CLASS, sumOfFloors } from "@slotkeeper/protocol";
import { type HostPolicy, hasBudgets } from "../host-policy.ts";
import type { Shares } from "../order/contract.ts";
import { levelOf, ownsShare, ROUNDING_MS } from "../order/order.ts";
import type { Book } from "./book.ts";
import type { ClassIndex } from "./class-index.ts";
import type { ClassUse, ClassUses } from "./records.ts";

/**
 * The classes of a host: their use, and their shares of the slots. A class is to the host what a line is to its class: it
 * is ranked by slots, use and weight, and starts at the meter of the host when it becomes active. Inside a class, lines
 * have a meter of their own.
 *
 * CLASS1 A class never holds more slots than its `ceiling`.
 * CLASS2 Its share is weight × level, at least its `floor` while slots are short, and at most its `ceiling`. Slots are not
 *   short while a budget keeps some of them free. Otherwise a class below its floor would always go first there.
 * CLASS3 The use of all classes and their meters are advanced together with the meter of the host (BOOK3).
 * CLASS4 A changed weight keeps the use and the charge per weight.
 * Only this file writes `head.classes`. It is there while the limits have classes, or a request of an earlier class is left.
 * Cost: O(classes) for each decision and each grant.
 */

/** A class that the limits do not have any more. */
const OTHER: ClassPolicy = { weight: 1, floor: 0 };

export function classPolicy({ classes }: HostPolicy, name: string): ClassPolicy {
  return (classes !== undefined && Object.hasOwn(classes, name) ? classes[name] : undefined) ?? OTHER;
}

/** How many slots a class may have. */
export function ceilingOf(book: Book, name: string): number {
  return classPolicy(book.policy, name).ceiling ?? Number.POSITIVE_INFINITY;
}

/** The slots that the ceiling of a class leaves. */
export function roomOf(book: Book, one: ClassIndex): number {
  return ceilingOf(book, one.name) - one.inFlight;
}

/** CLASS2: the level at which the shares of the classes that want more add up to the slots that the others leave. */
function levelOfClasses(book: Book): number {
  const contending: Bounds[] = [];
  let held = 0;
  for (const one of book.index.classes) {
    if (one.ledger.contendingWeight <= 0 || roomOf(book, one) <= 0) continue;
    contending.push(boundsOf(book, one.name));
    held += one.inFlight;
  }
  const slots = slotsToShare(book, book.head.slots, book.inFlight) - (book.inFlight - held);
  return levelWithin(contending, Math.max(0, slots));
}

/** The weight of a class, and the least and most slots of its share. */
interface Bounds {
  readonly weight: number;
  readonly least: number;
  readonly most: number;
}

function boundsOf(book: Book, name: string): Bounds {
  const { weight, floor: least, ceiling: most = Number.POSITIVE_INFINITY } = classPolicy(book.policy, name);
  return { weight, least: least > 0 && areFloorsInForce(book) ? least : 0, most };
}

/** Not if limits that were changed one after the other left no slot besides the floors. */
function areFloorsInForce(book: Book): boolean {
  const { slots } = book.head;
  return slotsToShare(book, slots, book.inFlight) === slots && sumOfFloors(book.policy.classes) < slots;
}

function within({ weight, least, most }: Bounds, level: number): number {
  return Math.min(most, Math.max(least, weight * level));
}

/**
 * The shares grow with the level, in pieces between the levels at which a class leaves its floor or reaches its ceiling. On
 * the piece where they add up to the slots, the level follows from the weights of the classes in between.
 */
function levelWithin(bounds: readonly Bounds[], slots: number): number {
  if (bounds.every(isUnbounded)) return levelOf(slots, 0, weightOf(bounds));
  const ends = bounds.flatMap(({ weight, least, most }) => [least / weight, most / weight]).toSorted((a, b) => a - b);
  const sumAt = (level: number) => bounds.reduce((sum, one) => sum + within(one, level), 0);
  const to = ends.find((level) => sumAt(level) >= slots) ?? Number.POSITIVE_INFINITY;
  const from = ends.findLast((level) => level < to) ?? 0;
  const between = bounds.filter(({ weight, least, most }) => least / weight <= from && from < most / weight);
  const weights = weightOf(between);
  return weights > 0 ? Math.max(0, from + (slots - sumAt(from)) / weights) : from;
}

/** Most classes have neither a floor nor a ceiling, and the level is needed several times for each grant. */
function isUnbounded({ least, most }: Bounds): boolean {
  return least === 0 && most === Number.POSITIVE_INFINITY;
}

function weightOf(bounds: readonly Bounds[]): number {
  return bounds.reduce((sum, { weight }) => sum + weight, 0);
}

/** Slots that no budget can fill belong to no share. */
function slotsToShare(book: Book, slots: number, held: number): number {
  return hasBudgets(book.policy) ? Math.min(slots, held + book.index.widths.widest) : slots;
}

/** CLASS2. */
export function shareOfClass(book: Book, name: string): number {
  return within(boundsOf(book, name), levelOfClasses(book));
}

/** What the zones of `order.ts` depend on for the lines of a class. */
export function sharesIn(book: Book, name: string): Shares {
  const { widest } = book.index.widths;
  const one = book.index.ofClass(name);
  if (one === undefined) return { level: 0, widest };
  const share = book.head.classes === undefined ? book.head.slots : shareOfClass(book, name);
  return { level: one.ledger.level(slotsToShare(book, share, one.inFlight), one.inFlight), widest };
}

/** Whether a class is in zone 0 or 1. */
export function isClassInShare(book: Book, name: string): boolean {
  if (book.head.classes === undefined) return true;
  const held = book.index.ofClass(name)?.inFlight ?? 0;
  return ownsShare(held, shareOfClass(book, name), book.index.widths.widest);
}

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

/** CLASS3. */
export function advanceUses(book: Book, uses: ClassUses, elapsedMs: number): ClassUses {
  const advanced: { [name: string]: ClassUse } = { ...uses };
  for (const { name, inFlight, ledger } of book.index.classes) {
    const use = uses[name];
    if (use === undefined || !ledger.isActive) continue;
    const usedMs = inFlight * elapsedMs;
    const progress = use.progress + usedMs / ledger.activeWeight;
    advanced[name] = { ...use, usedMs: use.usedMs + usedMs, progress, activeAt: book.now };
  }
  return advanced;
}

export function useOf(book: Book, name: string): ClassUse {
  const { weight } = classPolicy(book.policy, name);
  return book.head.classes?.[name] ?? { weight, usedMs: 0, progress: 0, activeAt: book.now };
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
  for (const { isIdle, ofClass } of book.index.buckets) if (!isIdle && ofClass.name !== DEFAULT_CLASS) return true;
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

/** Call when the limits have changed. CLASS4. */
export function reweigh(book: Book): void {
  const uses = book.head.classes;
  if (uses === undefined) return;
  const changed = Object.entries(uses).filter(([name, { weight }]) => weight !== classPolicy(book.policy, name).weight);
  for (const [name, use] of changed) {
    const { weight } = classPolicy(book.policy, name);
    const by = weight / use.weight;
    setUse(book, name, { ...use, weight, usedMs: use.usedMs * by, charged: use.charged && use.charged * by });
  }
}
