import type { Book } from "../book/book.ts";
import { sharesIn } from "../book/classes.ts";
import type { Line } from "../book/line.ts";
import { ByWidth } from "./by-width.ts";
import type { Order, OverCeiling, Ranking } from "./contract.ts";

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
