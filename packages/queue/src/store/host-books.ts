import type { HostPolicy } from "../host-policy.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import { HostBook } from "./host-book.ts";
import type { Lease } from "./lease.ts";

/** The books of all hosts. A host without users is forgotten after `idleMs`: looked at once in that time, not swept. */
export class HostBooks {
  readonly #waiterTtlMs: number;
  readonly #idleMs: number;
  readonly #onEnded: (lease: Lease) => void;
  readonly #books = new Map<string, HostBook>();
  readonly #oldestFirst = new IndexedHeap<"pruneIndex", HostBook>("pruneIndex", (a, b) => a.pruneAt < b.pruneAt);

  constructor(waiterTtlMs: number, idleMs: number, onEnded: (lease: Lease) => void) {
    this.#waiterTtlMs = waiterTtlMs;
    this.#idleMs = idleMs;
    this.#onEnded = onEnded;
  }

  /** A known host's book, settled. */
  find(host: string, now: number): HostBook | undefined {
    const book = this.#books.get(host);
    book?.settle(now, this.#waiterTtlMs);
    return book;
  }

  open(host: string, policy: HostPolicy, now: number): HostBook {
    this.prune(now);
    let book = this.find(host, now);
    if (book === undefined) {
      book = new HostBook(host, policy, now, this.#onEnded);
      book.pruneAt = now + this.#idleMs;
      this.#books.set(host, book);
      this.#oldestFirst.push(book);
    }
    book.touchedAt = now;
    book.use(policy);
    return book;
  }

  all(): Iterable<HostBook> {
    return this.#books.values();
  }

  /** Returns how many silent waiters that dropped. */
  settleAll(now: number): number {
    let dropped = 0;
    for (const book of this.#books.values()) dropped += book.settle(now, this.#waiterTtlMs);
    return dropped;
  }

  prune(now: number): void {
    for (
      let first = this.#oldestFirst.peek();
      first !== undefined && first.pruneAt <= now;
      first = this.#oldestFirst.peek()
    ) {
      first.settle(now, this.#waiterTtlMs);
      if (first.touchedAt + this.#idleMs <= now && first.isForgettable(now)) {
        this.#oldestFirst.remove(first);
        this.#books.delete(first.host);
      } else {
        first.pruneAt = (first.touchedAt + this.#idleMs > now ? first.touchedAt : now) + this.#idleMs;
        this.#oldestFirst.update(first);
      }
    }
  }
}
