import type { Book } from "../book/book.ts";
import type { Bucket } from "../book/bucket.ts";
import type { Order, Ranking } from "./contract.ts";

/** The order of one ranking. Everything it needs is in the accounts (`use.ts`), so it writes nothing. */
export class PlainOrder implements Order {
  readonly newRanking: () => Ranking;
  /** Lines whose bucket may have a slot. */
  readonly #open: Ranking;
  /** The other lines. Created when first needed. */
  #blocked: Ranking | undefined;

  constructor(newRanking: () => Ranking) {
    this.newRanking = newRanking;
    this.#open = newRanking();
  }

  add(line: Bucket): void {
    if (line.isGrantable) this.#open.push(line);
    else (this.#blocked ??= this.newRanking()).push(line);
  }

  remove(line: Bucket): void {
    if (line.isGrantable) this.#open.remove(line);
    else this.#blocked?.remove(line);
  }

  next(book: Book): Bucket | undefined {
    return this.#open.best(book.level, book.now) as Bucket | undefined;
  }

  passedOver(book: Book): Bucket | undefined {
    if (this.#blocked === undefined || this.#blocked.size === 0) return undefined;
    const { level, now } = book;
    const best = this.#blocked.best(level, now) as Bucket;
    const next = this.#open.best(level, now);
    return next === undefined || this.#open.isBefore(best, next, level, now) ? best : undefined;
  }

  /** The first lines whose bucket may have a slot, in their order. */
  first(book: Book, count: number): Bucket[] {
    const first: Bucket[] = [];
    for (let line = this.next(book); line !== undefined && first.length < count; line = this.next(book)) {
      this.remove(line);
      first.push(line);
    }
    for (const line of first) this.add(line);
    return first;
  }

  nextMoment(): undefined {
    return undefined;
  }

  isHot(): boolean {
    return false;
  }

  begin(): void {}
  join(): void {}
  granted(): void {}
  refused(): void {}
  full(): void {}
}
