import { Book } from "../book/book.ts";
import type { Changes } from "../book/records.ts";
import { type Decision, decide } from "../decide/decide.ts";
import type { DecideContext } from "../decide/deciding.ts";
import type { Input } from "../inputs.ts";
import type { Commit, CommitNotice, CommitReply, ReadReply, Refusal, Tag } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";

/** The changes that were applied, or "all" if any record may have changed. */
export type Touched = readonly Changes[] | "all";

export type Committed =
  | { readonly isKept: true; readonly touched: Touched }
  | { readonly isKept: false; readonly reason: Refusal; readonly touched: Touched };

/**
 * The cached book of one host, and its calls of the store.
 *
 * CACHE1 Between `decide` and the end of `commit` or `undo`, and during a read, nothing else changes the book.
 * CACHE2 A commit whose outcome is unknown is sent again, unchanged, until the store answers it.
 * CACHE3 After a refusal the book equals the store's: the decision is undone and the changes of others are applied.
 */
export class HostCache {
  readonly #host: string;
  readonly #engine: EngineContext;
  #book: Book;
  #unanswered: Commit | undefined;
  #isOpen = false;
  #verifiedAt = Number.NEGATIVE_INFINITY;
  #sent = 0;
  #committedAt = Number.NEGATIVE_INFINITY;

  constructor(host: string, engine: EngineContext) {
    this.#host = host;
    this.#engine = engine;
    this.#book = new Book(host, engine.time.now());
  }

  /** The book, including the changes of a decision in progress. */
  get book(): Book {
    return this.#book;
  }

  get tag(): Tag | undefined {
    return this.#book.tag;
  }

  /** When the book was last confirmed to be equal to the store's. */
  get verifiedAt(): number {
    return this.#verifiedAt;
  }

  /** The number of reads and commits that were sent. A count, because the store's clock may step. */
  get sent(): number {
    return this.#sent;
  }

  /** The book has every commit that the store accepted before this one of `sent` was sent. */
  get compared(): number {
    return this.#isOpen ? 0 : this.#sent;
  }

  /** The store time of the last commit that the book has, without the decision in progress. */
  get committedAt(): number {
    return this.#committedAt;
  }

  decide(inputs: readonly Input[], context: DecideContext): Decision {
    this.#isOpen = true;
    return decide(this.#book, inputs, context);
  }

  get isChanged(): boolean {
    return this.#book.isChanged;
  }

  undo(): void {
    this.#book.undo();
    this.#isOpen = false;
  }

  /**
   * Returns without a promise if the store does. Rejects if the outcome is unknown; the next call then sends the same
   * commit (CACHE2).
   */
  commit(decision: Decision, conflicts: number): Committed | Promise<Committed> {
    this.#unanswered ??= this.#commitOf(decision, conflicts);
    const sent = this.#unanswered;
    const reply = this.#engine.store.commit(sent);
    return reply instanceof Promise ? reply.then((late) => this.#answered(sent, late)) : this.#answered(sent, reply);
  }

  #answered({ tag, changes }: Commit, reply: CommitReply): Committed {
    this.#unanswered = undefined;
    this.#isOpen = false;
    this.#verified(reply.now, !reply.isOk && reply.reason === "clock");
    if (!reply.isOk) {
      this.#book.undo();
      return { isKept: false, reason: reply.reason, touched: this.#catchUp(reply) };
    }
    if (changes === FORGOTTEN) this.#book = new Book(this.#host, this.#engine.time.now());
    else this.#book.keep(tag);
    this.#committedAt = this.#book.head.now;
    return { isKept: true, touched: [changes] };
  }

  /** Updates the book from the store. */
  async sync(): Promise<Touched> {
    this.#isOpen = true;
    this.#sent++;
    try {
      const reply = await this.#engine.store.read(this.#host, this.#book.tag);
      this.#verified(reply.now, false);
      return this.#catchUp(reply);
    } finally {
      this.#isOpen = false;
    }
  }

  /** A decision or a read is in progress, so notices must wait. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Applies a notice. Undefined: the notice is not enough, so the store must be read. */
  take({ base, tag, changes }: CommitNotice): Touched | undefined {
    if (tag !== undefined && countOf(tag) <= countOf(this.tag)) return [];
    if (tag === undefined || changes?.head === undefined || base !== this.tag) return undefined;
    this.#book.follow(changes, tag);
    this.#committedAt = this.#book.head.now;
    return [changes];
  }

  #commitOf({ wake, isForgotten }: Decision, conflicts: number): Commit {
    const { instance, newSecret, isAlone } = this.#engine;
    const base = this.#book.tag;
    this.#sent++;
    return {
      host: this.#host,
      instance,
      base,
      tag: `${countOf(base) + 1}.${newSecret()}`,
      now: this.#book.now,
      changes: isForgotten ? FORGOTTEN : this.#book.changes(),
      hasOthers: !isAlone,
      wake,
      conflicts,
    };
  }

  #catchUp({ tag, tail, fenceFloor }: ReadReply): Touched {
    if (tail.kind === "changes") this.#book.follow(tail.changes, tag);
    else if (tail.book === undefined) this.#book = new Book(this.#host, this.#engine.time.now(), fenceFloor);
    else this.#book = Book.of(this.#host, tag, tail.book);
    this.#committedAt = this.#book.head.now;
    return tail.kind === "changes" ? [tail.changes] : "all";
  }

  #verified(storeNow: number, isRefused: boolean): void {
    this.#engine.time.learn(storeNow, isRefused);
    this.#verifiedAt = this.#engine.time.now();
  }
}

function countOf(tag: Tag | undefined): number {
  return tag === undefined ? 0 : Number.parseInt(tag, 10);
}

const FORGOTTEN: Changes = { head: undefined, puts: [], dels: [] };
