import { budgetOfOrder, DEFAULT_CLASS } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { missingBudgets } from "../book/budgets.ts";
import { unitsOf } from "../book/charged.ts";
import type { ClassIndex } from "../book/class-index.ts";
import { useOf } from "../book/class-use.ts";
import { roomOf, shareOfClass, sharesIn } from "../book/classes.ts";
import type { Line } from "../book/line.ts";
import type { WaiterRecord } from "../book/records.ts";
import { isInShare } from "../book/use.ts";
import { isChargedLess } from "./charge-order.ts";
import type { Forecast, HostOrder, OverCeiling, Rank, RankedLine, Ranking, Shares } from "./contract.ts";
import { ranksByShare } from "./order.ts";

/**
 * The order of a host with classes: the best class, and its best line.
 *
 * CLORDER1 Classes are ranked as lines are: by slots and use per weight with the share of `classes.ts`, or by their charge
 *   per weight. Of equal classes, the one whose line has the older head is first.
 * CLORDER2 The best line of a class may need more slots than the ceiling of the class leaves. If it may be first, it holds back its
 *   class until it fits, as the first of a host holds back all others. Otherwise the best line that fits takes its place.
 * Cost: that of the order of each class.
 */
export const CLASS_ORDER: HostOrder = {
  next: (book, room) => bestOf(book, (one) => lineFrom(book, one, room)),
  passedOver(book) {
    for (const one of book.index.classes) {
      const line = book.index.orderOf(one).passedOver(book);
      if (line !== undefined) return line;
    }
    return undefined;
  },
  first: (book) => bestOf(book, (one) => book.index.orderOf(one).first(book)),
  overCeiling: (book) => book.index.classes.flatMap((one) => overCeiling(book, one) ?? []),
  newRanking: (book) => new ClassForecast(book),
  nextMoment: () => undefined,
  isHot: () => false,
  begin() {},
  granted() {},
  refused() {},
  full() {},
};

/** The line of the best class. */
function bestOf(book: Book, lineOf: (one: ClassIndex) => Line | undefined): Line | undefined {
  let best: Candidate | undefined;
  for (const one of book.index.classes) {
    const line = lineOf(one);
    const candidate = line && candidateOf(book, one, line);
    if (candidate !== undefined && (best === undefined || isBefore(candidate, best, book))) best = candidate;
  }
  return best?.line;
}

/** CLORDER2. `room`: the head of the line must need at most this number of slots. */
function lineFrom(book: Book, one: ClassIndex, room = Number.POSITIVE_INFINITY): Line | undefined {
  const order = book.index.orderOf(one);
  const best = order.next(book);
  const most = Math.min(room, roomOf(book, one));
  if (best === undefined || best.headWidth <= most) return best;
  return overCeiling(book, one)?.isFirst === true ? undefined : order.next(book, most);
}

/** The best-ranked waiter of a class, if the ceiling has no room for it. */
function overCeiling(book: Book, one: ClassIndex): OverCeiling | undefined {
  const best = book.index.orderOf(one).next(book);
  const waiter = best?.head?.record;
  if (best === undefined || waiter === undefined || best.headWidth <= roomOf(book, one)) return undefined;
  const isInOrder = budgetOfOrder(book.policy.order) !== undefined || isInShare(book, best.name);
  return { waiter, isFirst: isInOrder || missingBudgets(book, waiter).length > 0 };
}

/** A class with its best line. */
interface Candidate {
  readonly line: Line;
  readonly rank: Rank;
  readonly share: number;
}

function candidateOf(book: Book, { name, inFlight }: ClassIndex, line: Line): Candidate {
  const { weight, usedMs, charged = 0 } = useOf(book, name);
  const { headAt, headKey, headWidth } = line;
  const { meterAt: asOf } = book.head;
  const rank = { inFlight, weight, usedMs, asOf, headAt, headKey, headWidth, charged, weighted: undefined };
  return { line, rank, share: shareOfClass(book, name) };
}

/** CLORDER1. */
function isBefore(a: Pick<Candidate, "rank" | "share">, b: Pick<Candidate, "rank" | "share">, book: Book): boolean {
  if (budgetOfOrder(book.policy.order) !== undefined) return isChargedLess(a.rank, b.rank);
  return ranksByShare(a.rank, a.share, b.rank, b.share, book.index.widths.widest, book.now);
}

/** The lines of one class in a forecast. */
interface ClassLines {
  readonly rank: Rank;
  readonly share: number;
  readonly shares: Shares;
  readonly lines: Ranking;
}

/** Copies of the lines of all classes. Ceilings are not considered: what they leave is not known. */
class ClassForecast implements Forecast {
  readonly #book: Book;
  readonly #classes = new Map<string, ClassLines>();
  size = 0;

  constructor(book: Book) {
    this.#book = book;
  }

  push(line: RankedLine): void {
    this.#of(line).lines.push(line);
    this.size++;
  }

  remove(line: RankedLine): void {
    this.#of(line).lines.remove(line);
    this.size--;
  }

  best(_shares: Shares, now: number): RankedLine | undefined {
    let best: (ClassLines & { readonly line: RankedLine }) | undefined;
    for (const one of this.#classes.values()) {
      const line = one.lines.best(one.shares, now);
      if (line === undefined) continue;
      Object.assign(one.rank, { headAt: line.headAt, headKey: line.headKey });
      if (best === undefined || isBefore(one, best, this.#book)) best = { ...one, line };
    }
    return best?.line;
  }

  advance(copy: RankedLine, now: number, waiter: WaiterRecord): void {
    const { rank, lines } = this.#of(copy);
    rank.usedMs += rank.inFlight * (now - rank.asOf);
    rank.asOf = now;
    rank.inFlight += copy.headWidth;
    rank.charged += unitsOf(this.#book.policy, waiter.demand?.cost);
    lines.advance(copy, now, waiter);
  }

  #of({ ofClass: { name } }: RankedLine): ClassLines {
    let found = this.#classes.get(name);
    if (found === undefined) {
      found = this.#open(this.#book.index.ofClass(name) ?? (this.#book.index.ofClass(DEFAULT_CLASS) as ClassIndex));
      this.#classes.set(name, found);
    }
    return found;
  }

  #open(one: ClassIndex): ClassLines {
    const book = this.#book;
    const { weight, usedMs, charged = 0 } = useOf(book, one.name);
    const head = { headAt: 0, headKey: "", headWidth: 1 };
    return {
      rank: { inFlight: one.inFlight, weight, usedMs, asOf: book.head.meterAt, ...head, charged, weighted: undefined },
      share: shareOfClass(book, one.name),
      shares: sharesIn(book, one.name),
      lines: book.index.orderOf(one).newRanking(book),
    };
  }
}
