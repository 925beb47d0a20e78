import { IndexedHeap } from "slotkeeper/parts";
import type { Book } from "../book/book.ts";
import { sharesIn } from "../book/classes.ts";
import type { Line } from "../book/line.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { Order, OverCeiling, RankedLine, Ranking, Shares } from "./contract.ts";
import { hasOlderHead } from "./order.ts";

/** The order of one ranking. Everything it needs is in the accounts (`use.ts`), so it writes nothing. */
export class PlainOrder implements Order {
  readonly #ofClass: string;
  readonly newRanking: () => Ranking;
  /** Lines whose bucket may have a slot; lines that may not; of these, lines whose refusal is reported. */
  readonly #open: ByWidth;
  #blocked: Ranking | undefined;
  #refused: Ranking | undefined;

  constructor(ofClass: string, newRanking: () => Ranking) {
    this.#ofClass = ofClass;
    this.newRanking = newRanking;
    this.#open = new ByWidth(newRanking);
  }

  add(line: Line): void {
    this.#rankingOf(line).push(line);
  }

  remove(line: Line): void {
    this.#rankingOf(line).remove(line);
  }

  next(book: Book, room = Number.POSITIVE_INFINITY): Line | undefined {
    return this.#open.best(sharesIn(book, this.#ofClass), book.now, room) as Line | undefined;
  }

  passedOver(book: Book): Line | undefined {
    // Most hosts have none, and then the best line need not be found.
    if ((this.#blocked?.size ?? 0) === 0) return undefined;
    return this.#ahead(this.#blocked, this.next(book), book);
  }

  first(book: Book): Line | undefined {
    const next = this.passedOver(book) ?? this.next(book);
    return this.#ahead(this.#refused, next, book) ?? next;
  }

  /** The best line of the ranking, if it is before `next`. */
  #ahead(ranking: Ranking | undefined, next: Line | undefined, book: Book): Line | undefined {
    if (ranking === undefined || ranking.size === 0) return undefined;
    const shares = sharesIn(book, this.#ofClass);
    const best = ranking.best(shares, book.now) as Line;
    return next === undefined || ranking.isBefore(best, next, shares, book.now) ? best : undefined;
  }

  #rankingOf({ isGrantable, account }: Line): Pick<Ranking, "push" | "remove"> {
    if (isGrantable) return this.#open;
    if (account?.refusedAt === undefined) return (this.#blocked ??= this.newRanking());
    return (this.#refused ??= this.newRanking());
  }

  /** The first lines whose bucket may have a slot, in their order. */
  firstOpen(book: Book, count: number): Line[] {
    const first: Line[] = [];
    for (let line = this.next(book); line !== undefined && first.length < count; line = this.next(book)) {
      this.remove(line);
      first.push(line);
    }
    for (const line of first) this.add(line);
    return first;
  }

  overCeiling(): readonly OverCeiling[] {
    return [];
  }

  nextMoment(): undefined {
    return undefined;
  }

  isHot(): boolean {
    return false;
  }

  begin(): void {}
  join(_book: Book, _name: string): void {}
  granted(): void {}
  refused(): void {}
  full(): void {}
}

interface OfWidth {
  readonly width: number;
  readonly ranking: Ranking;
}

/**
 * One ranking for each width that the heads of lines ask for, so that the best of those that fit into the free slots is
 * found without a search. Most hosts have one width. Cost: that of the rankings, times the number of widths.
 */
class ByWidth {
  readonly #newRanking: () => Ranking;
  /** By width, the narrowest first. A ranking that became empty is kept, because it is usually needed again. */
  readonly #rankings: OfWidth[] = [];

  constructor(newRanking: () => Ranking) {
    this.#newRanking = newRanking;
  }

  push(line: RankedLine): void {
    this.#of(line.headWidth).push(line);
  }

  /** A line that is not there is ignored. */
  remove(line: RankedLine): void {
    this.#of(line.headWidth).remove(line);
  }

  /** The best of the lines whose head needs at most `room` slots. */
  best(shares: Shares, now: number, room: number): RankedLine | undefined {
    let best: RankedLine | undefined;
    for (const { width, ranking } of this.#rankings) {
      if (width > room) break;
      const line = ranking.best(shares, now);
      if (best === undefined || (line !== undefined && ranking.isBefore(line, best, shares, now))) best = line;
    }
    return best;
  }

  #of(width: number): Ranking {
    const at = this.#rankings.findIndex((one) => one.width >= width);
    const found = this.#rankings[at];
    if (found?.width === width) return found.ranking;
    const ranking = this.#newRanking();
    this.#rankings.splice(at < 0 ? this.#rankings.length : at, 0, { width, ranking });
    return ranking;
  }
}

/** A ranking that neither shares nor time change: the best line is the top of a heap. Cost: O(log n). */
export abstract class TopOfHeap extends IndexedHeap<"orderIndex" | "turnIndex", RankedLine> implements Ranking {
  readonly isBefore: (a: RankedLine, b: RankedLine) => boolean;

  constructor(key: "orderIndex" | "turnIndex", isBefore: (a: RankedLine, b: RankedLine) => boolean) {
    super(key, isBefore);
    this.isBefore = isBefore;
  }

  best(): RankedLine | undefined {
    return this.peek();
  }

  abstract advance(copy: RankedLine, now: number, waiter: WaiterRecord): void;
}

/** First come, first served: the line with the oldest head. */
export class Fifo extends TopOfHeap {
  constructor() {
    super("orderIndex", hasOlderHead);
  }

  /** Only the head counts. */
  advance(): void {}
}
