import type { Book } from "../book/book.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { Line, Ranking } from "../order/contract.ts";

/** Up to this number of waiters, positions are calculated after each change. Above it, at most once in this time. */
const EXACT_UP_TO = 256;
const OLDEST_MS = 1_000;

/**
 * The order in which waiters would get slots if nothing else changed: first the pool of the fleet in its order, with
 * each grant counted, then the waiters outside by arrival. Calculated for the whole host at once in O(n log n), and
 * only when a position is needed.
 */
export class Positions {
  #ranks: Map<string, number> | undefined;
  #isStale = true;
  #at = Number.NEGATIVE_INFINITY;

  /** 1 is next. A session that is not in the book yet comes last. */
  of(session: string, book: Book, now: number): number {
    const isDue = this.#isStale && (book.size("waiter") <= EXACT_UP_TO || now - this.#at >= OLDEST_MS);
    if (this.#ranks === undefined || isDue) {
      this.#ranks = rank(book, now);
      this.#isStale = false;
      this.#at = now;
    }
    return this.#ranks.get(session) ?? Math.max(1, book.size("waiter"));
  }

  stale(): void {
    this.#isStale = true;
  }
}

/** A copy of a line, of which the first waiters have their positions. */
interface LineCopy extends Line {
  readonly waiters: WaiterRecord[];
  next: number;
}

function rank(book: Book, now: number): Map<string, number> {
  const ranks = new Map<string, number>();
  const lines = new Map<string, LineCopy>();
  const outside: WaiterRecord[] = [];
  for (const waiter of byArrival(book.all("waiter"))) {
    if (!waiter.isInside) outside.push(waiter);
    else if (book.get("offer", waiter.key) !== undefined) ranks.set(waiter.key, ranks.size + 1);
    else lineOf(lines, waiter.bucket, book, now).waiters.push(waiter);
  }
  const { level } = book;
  const ranking = book.index.order.newRanking(book);
  for (const line of lines.values()) addTo(ranking, line);
  while (ranking.size > 0) {
    const line = ranking.best(level, now) as LineCopy;
    ranks.set((line.waiters[line.next] as WaiterRecord).key, ranks.size + 1);
    ranking.remove(line);
    line.next++;
    ranking.advance(line, now);
    if (line.next < line.waiters.length) addTo(ranking, line);
  }
  for (const { key } of outside) ranks.set(key, ranks.size + 1);
  return ranks;
}

function byArrival(waiters: Iterable<WaiterRecord>): WaiterRecord[] {
  return [...waiters].sort((a, b) => a.arrivedAt - b.arrivedAt);
}

function lineOf(lines: Map<string, LineCopy>, name: string, book: Book, now: number): LineCopy {
  let line = lines.get(name);
  if (line === undefined) {
    const { inFlight = 0, weight = 1, usedMs = 0, asOf = now, weighted } = book.index.bucket(name) ?? {};
    const rank = { inFlight, weight, usedMs, asOf, weighted, headAt: 0 };
    line = { ...rank, orderIndex: -1, orderClass: undefined, turnIndex: -1, waiters: [], next: 0 };
    lines.set(name, line);
  }
  return line;
}

function addTo(ranking: Ranking, line: LineCopy): void {
  line.headAt = line.waiters[line.next]?.arrivedAt ?? 0;
  ranking.push(line);
}
