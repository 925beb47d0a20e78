import type { Book } from "../book/book.ts";
import type { Bucket } from "../book/bucket.ts";
import type { WaiterRecord } from "../book/records.ts";
import { BucketOrder, type OrderClass, type Ranked } from "../order/bucket-order.ts";

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
 * The order in which waiters would get slots if nothing else changed: first the pool of the fleet in its order, with
 * each grant counted, then the waiters outside by arrival. Calculated for the whole host at once in O(n log n), and
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

class Line implements Ranked {
  readonly waiters: WaiterRecord[] = [];
  next = 0;
  inFlight: number;
  weight: number;
  usedMs: number;
  asOf: number;
  headAt = 0;
  headKey = "";
  orderIndex = -1;
  orderClass: OrderClass | undefined;

  constructor(bucket: Bucket | undefined, now: number) {
    this.inFlight = bucket?.inFlight ?? 0;
    this.weight = bucket?.weight ?? 1;
    this.usedMs = bucket?.usedMs ?? 0;
    this.asOf = bucket?.asOf ?? now;
  }
}

function rank(book: Book, now: number): Map<string, number> {
  const ranks = new Map<string, number>();
  const lines = new Map<string, Line>();
  const outside: WaiterRecord[] = [];
  for (const waiter of byArrival(book.all("waiter"))) {
    if (!waiter.isInside) outside.push(waiter);
    else if (book.get("offer", waiter.key) !== undefined) ranks.set(waiter.key, ranks.size + 1);
    else lineOf(lines, waiter.bucket, book, now).waiters.push(waiter);
  }
  const level = book.index.ledger.level(book.head.slots, book.inFlight);
  const order = new BucketOrder<Line>(book.policy.order === "fifo");
  for (const line of lines.values()) addTo(order, line);
  for (let line = order.best(level, now); line !== undefined; line = order.best(level, now)) {
    ranks.set((line.waiters[line.next] as WaiterRecord).key, ranks.size + 1);
    order.remove(line);
    line.next++;
    line.usedMs += line.inFlight * (now - line.asOf);
    line.asOf = now;
    line.inFlight++;
    if (line.next < line.waiters.length) addTo(order, line);
  }
  for (const { key } of outside) ranks.set(key, ranks.size + 1);
  return ranks;
}

function byArrival(waiters: Iterable<WaiterRecord>): WaiterRecord[] {
  return [...waiters].sort((a, b) => a.arrivedAt - b.arrivedAt);
}

function lineOf(lines: Map<string, Line>, name: string, book: Book, now: number): Line {
  let line = lines.get(name);
  if (line === undefined) {
    line = new Line(book.index.bucket(name), now);
    lines.set(name, line);
  }
  return line;
}

function addTo(order: BucketOrder<Line>, line: Line): void {
  const head = line.waiters[line.next];
  line.headAt = head?.arrivedAt ?? 0;
  line.headKey = head?.key ?? "";
  order.add(line);
}
