import { type ClassPolicy, sumOfFloors } from "@slotkeeper/protocol";
import { type HostPolicy, hasBudgets } from "../host-policy.ts";
import type { Shares } from "../order/contract.ts";
import { levelOf, ownsShare, ROUNDING } from "../order/order.ts";
import type { Book } from "./book.ts";
import type { ClassIndex } from "./class-index.ts";

/**
 * The shares of classes. A class is to the host what a line is to its class: it is ranked by its slots, its use
 * (`class-use.ts`) and its weight.
 *
 * CLASS1 A class never holds more slots than its `ceiling`.
 * CLASS2 Its share is weight × level, at least its `floor` while slots are short, and at most its `ceiling`. Slots are not
 *   short while a budget keeps some of them free. Otherwise a class below its floor would always go first there.
 * Cost: O(classes) for each question.
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
function levelOfClasses(book: Book, also?: string): number {
  const contending: Bounds[] = [];
  let held = 0;
  for (const one of book.index.classes) {
    const contends = one.ledger.contendingWeight > 0 && roomOf(book, one) > 0;
    if (!contends && one.name !== also) continue;
    contending.push(boundsOf(book, one.name));
    held += one.inFlight;
  }
  // A class that is not used has no lines, so it is not among them.
  if (also !== undefined && book.index.ofClass(also) === undefined) contending.push(boundsOf(book, also));
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
 * The highest level at which the shares fit into the slots. They grow with the level, in pieces between the levels at which a
 * class leaves its floor or reaches its ceiling. On the piece where they add up to the slots, the level follows from the
 * weights of the classes in between. On a piece where no share grows, the level matters only to classes that want no more.
 */
function levelWithin(bounds: readonly Bounds[], slots: number): number {
  if (bounds.every(isUnbounded)) return levelOf(slots, 0, weightOf(bounds));
  const ends = bounds.flatMap(({ weight, least, most }) => [least / weight, most / weight]).toSorted((a, b) => a - b);
  const sumAt = (level: number) => bounds.reduce((sum, one) => sum + within(one, level), 0);
  const to = ends.find((level) => sumAt(level) > slots + ROUNDING) ?? Number.POSITIVE_INFINITY;
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

/** The same for people: what the class could have if it wanted more, also if it has no waiters or is at its ceiling. */
export function fairShareOf(book: Book, name: string): number {
  return Math.min(book.head.slots, within(boundsOf(book, name), levelOfClasses(book, name)));
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
