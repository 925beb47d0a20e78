import { classOf, DEFAULT_CLASS, widthOf } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { sharesIn } from "../book/classes.ts";
import { lineOfWaiter } from "../book/line.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { Forecast, RankedLine } from "../order/contract.ts";

/** Up to this number of waiters, positions are calculated after each change. Above it, at most once in this time. */
const EXACT_UP_TO = 256;
const OLDEST_MS = 1_000;

/** The rank of a session among all waiters of the host. 1 is next. */
export interface Place {
  readonly position: number;
  readonly waiters: number;
}

const NO_RANKS: ReadonlyMap<string, number> = new Map();

/**
 * The order in which waiters would get slots if nothing else changed: the first of the host, then the pool of the fleet
 * in its order, with each grant counted, then the waiters outside by arrival. Calculated for the whole host at once in O(n log n), and
 * only when a position is needed.
 */
export class Positions {
  #ranks: ReadonlyMap<string, number> = NO_RANKS;
  #isStale = true;
  #at = Number.NEGATIVE_INFINITY;

  /** A session that is not in the book yet comes last. Without a book, because a decision changes it: the last known place. */
  of(session: string, book: Book | undefined, now: number): Place {
    if (book?.limits !== undefined) this.#update(book, now);
    const waiters = Math.max(1, book?.size("waiter") ?? this.#ranks.size);
    return { position: this.#ranks.get(session) ?? waiters, waiters };
  }

  #update(book: Book, now: number): void {
    if (!this.#isStale || (book.size("waiter") > EXACT_UP_TO && now - this.#at < OLDEST_MS)) return;
    this.#ranks = rank(book, now);
    this.#isStale = false;
    this.#at = now;
  }

  stale(): void {
    this.#isStale = true;
  }
}

/** A copy of a line, of which the first waiters have their positions. */
interface LineCopy extends RankedLine {
  readonly waiters: WaiterRecord[];
  next: number;
}

function rank(book: Book, now: number): Map<string, number> {
  const ranks = new Map<string, number>();
  const lines = new Map<string, LineCopy>();
  const outside: WaiterRecord[] = [];
  let first: WaiterRecord | undefined;
  for (const waiter of byArrival(book.all("waiter"))) {
    if (!waiter.isInside || isHeldBack(book, waiter)) outside.push(waiter);
    else if (book.get("offer", waiter.key) !== undefined) ranks.set(waiter.key, ranks.size + 1);
    else if (waiter.key === book.head.first) first = waiter;
    else lineOf(lines, waiter, book, now).waiters.push(waiter);
  }
  if (first !== undefined) ranks.set(first.key, ranks.size + 1);
  const shares = sharesIn(book, DEFAULT_CLASS);
  const ranking = book.order.newRanking(book);
  for (const line of lines.values()) addTo(ranking, line);
  while (ranking.size > 0) {
    const line = ranking.best(shares, now) as LineCopy;
    const waiter = line.waiters[line.next] as WaiterRecord;
    ranks.set(waiter.key, ranks.size + 1);
    ranking.remove(line);
    line.next++;
    ranking.advance(line, now, waiter);
    if (line.next < line.waiters.length) addTo(ranking, line);
  }
  for (const { key } of outside) ranks.set(key, ranks.size + 1);
  return ranks;
}

function isHeldBack({ policy, index }: Book, { key }: WaiterRecord): boolean {
  return policy.keys !== undefined && index.heldAt(key) !== undefined;
}

function byArrival(waiters: Iterable<WaiterRecord>): WaiterRecord[] {
  return [...waiters].sort((a, b) => a.arrivedAt - b.arrivedAt || (a.key < b.key ? -1 : 1));
}

function lineOf(lines: Map<string, LineCopy>, waiter: WaiterRecord, book: Book, now: number): LineCopy {
  const name = lineOfWaiter(waiter);
  let line = lines.get(name);
  if (line === undefined) {
    const { inFlight = 0, weight = 1, usedMs = 0, asOf = now, weighted, charged = 0 } = book.index.line(name) ?? {};
    const rank = { inFlight, weight, usedMs, asOf, weighted, charged, headAt: 0, headKey: "", headWidth: 1 };
    line = {
      ...rank,
      orderIndex: -1,
      rateGroup: undefined,
      turnIndex: -1,
      ofClass: { name: classOf(waiter.demand) },
      waiters: [],
      next: 0,
    };
    lines.set(name, line);
  }
  return line;
}

function addTo(ranking: Forecast, line: LineCopy): void {
  const head = line.waiters[line.next];
  line.headAt = head?.arrivedAt ?? 0;
  line.headKey = head?.key ?? "";
  line.headWidth = widthOf(head?.demand);
  ranking.push(line);
}
