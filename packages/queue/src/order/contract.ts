import type { Book } from "../book/book.ts";
import type { Line } from "../book/line.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { RateGroup } from "./slot-seconds.ts";
import type { WeightedLine } from "./weighted/numbers.ts";

/** The port of the order: which line is next when a slot of a host is free. A line is the waiters of one class and bucket. */

/** A line as an order ranks it. */
export interface Rank {
  /** Slots that the line holds. */
  inFlight: number;
  /** Its share compared with other lines, above 0. */
  weight: number;
  /** Slot-milliseconds used up to `asOf`. From then on it grows by `inFlight` per millisecond. */
  usedMs: number;
  asOf: number;
  /** When its oldest waiter arrived whose client is present. */
  headAt: number;
  /** The id of its session: decides between waiters that arrived at the same time. */
  headKey: string;
  /** How many slots that waiter needs. */
  headWidth: number;
  /** What it was charged, if the order is by a budget (`charge-order.ts`). */
  charged: number;
  /** Its numbers for the weighted scheduler. */
  weighted: WeightedLine | undefined;
}

/** A line with its positions in rankings. Only rankings write these. */
export interface RankedLine extends Rank {
  orderIndex: number;
  rateGroup: RateGroup | undefined;
  turnIndex: number;
  readonly ofClass: { readonly name: string };
}

/** What the zones of `order.ts` depend on. */
export interface Shares {
  /** The fair slots per weight. */
  readonly level: number;
  /** The greatest width of a request that waits in the pool or has its slots. */
  readonly widest: number;
}

/** Copies of lines in their order. */
export type Forecast = Pick<Ranking, "size" | "push" | "remove" | "best" | "advance">;

/** A waiter that the ceiling of its class has no room for. */
export interface OverCeiling {
  readonly waiter: WaiterRecord;
  /** No other of its class is granted before it. */
  readonly isFirst: boolean;
}

/** Lines in their order. */
export interface Ranking {
  readonly size: number;
  push(line: RankedLine): void;
  /** A line that is not there is ignored. */
  remove(line: RankedLine): void;
  /** The line that is next. */
  best(shares: Shares, now: number): RankedLine | undefined;
  isBefore(a: RankedLine, b: RankedLine, shares: Shares, now: number): boolean;
  /** Changes a copy of a line, which is in no ranking, as a grant to this waiter would. */
  advance(copy: RankedLine, now: number, waiter: WaiterRecord): void;
}

/**
 * An order. What it must remember is in the records of the book, so it follows undo, replay and the commits of other
 * instances. The rankings are derived from them.
 *
 * PORT1 Questions change nothing. Events write records.
 * PORT2 An order ranks every line with a present waiter and refuses none: `next` is undefined only if no line may have a slot.
 * PORT3 `decide` grants a slot to the line that `next` names, or stops if that line cannot have it now. It never asks for the
 *   second best.
 */
export interface HostOrder {
  /** The best line of those whose bucket may have slots. `room`: only lines whose head needs at most this number. */
  next(book: Book, room?: number): Line | undefined;
  /** The best line whose bucket is at its limit or in its cooldown and is not reported for it, if it ranks before `next`. */
  passedOver(book: Book): Line | undefined;
  /** The best of all lines. */
  first(book: Book): Line | undefined;
  /** The best-ranked waiters of classes whose ceiling has no room for them. */
  overCeiling(book: Book): readonly OverCeiling[];
  /** A ranking by the order in force, for copies of the lines. */
  newRanking(book: Book): Forecast;
  /** When the order may write something without an input. */
  nextMoment(book: Book): number | undefined;
  /** Whether the host is crowded and the weighted scheduler chooses. */
  isHot(book: Book): boolean;

  /** Slots are about to be handed out. */
  begin(book: Book): void;
  /** The line is about to get a slot. */
  granted(book: Book, line: Line): void;
  /** The line was passed over. */
  refused(book: Book, line: Line): void;
  /** No slot is free. */
  full(book: Book): void;
}

/** The order of the lines of one class. A host without classes has only this one. */
export interface Order extends HostOrder {
  /** Call `remove` before anything about a line changes, and `add` after it, if the line has a present waiter. */
  add(line: Line): void;
  remove(line: Line): void;
  /** A waiter is about to get a place in the pool. Its line has an account. */
  join(book: Book, name: string): void;
  newRanking(book: Book): Ranking;
}
