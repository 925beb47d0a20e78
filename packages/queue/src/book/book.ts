import type { HostPolicy } from "../host-policy.ts";
import type { RecordsAt, Tag } from "../store/host-store.ts";
import { BeforeImages } from "./before-images.ts";
import { BookIndex } from "./book-index.ts";
import { copyOf, newHead, policyInForce } from "./head.ts";
import type {
  BookImage,
  BookRecord,
  Changes,
  Head,
  LeaseRecord,
  LimitsRecord,
  LiveLimits,
  RecordKind,
  RecordName,
  RecordOf,
  SessionRecord,
} from "./records.ts";
import { RecordsByKind } from "./records-by-kind.ts";
import { SessionShelf } from "./session-shelf.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** What can be written of a head without consequences elsewhere in the book. */
export type HeadDraft = Writable<Omit<Head, "slots" | "capacity">>;

const NO_SOURCE = { limits: undefined, capacity: undefined };

/**
 * One host's state in memory: the head and the records, with the index that is derived from them.
 *
 * BOOK1 records change only through `put` and `del`, the head through `draft`, `setSlots` and `setCapacity`.
 * BOOK2 between `begin` and `keep` everything is remembered: `changes` lists what a decision did, `undo` takes it back.
 * BOOK3 the meter of `order.ts` runs on the sums as they were: it is brought to `now` before any change.
 * BOOK4 the index equals what the records derive to after every single `put` and `del`, in whatever order they come, so a
 *    decision, its undoing and the commits of others use the same way.
 * Nothing here reads a clock, and nothing knows of a store but the tag it was last at.
 */
export class Book implements RecordsAt {
  readonly host: string;
  readonly index: BookIndex;
  #tag: Tag | undefined;
  #now: number;
  #head: Head;
  #headBefore: Head;
  #isHeadWritten = false;
  readonly #records = new RecordsByKind();
  readonly #sessions = new SessionShelf();
  readonly #before = new BeforeImages();
  #policy: HostPolicy | undefined;
  /** What the policy was derived from. */
  #policySource: { readonly limits: LimitsRecord | undefined; readonly capacity: number | undefined } = NO_SOURCE;

  /** A host that the store does not know. */
  constructor(host: string, now: number, fenceFloor = 0) {
    this.host = host;
    this.#now = now;
    this.#head = newHead(now, fenceFloor);
    this.#headBefore = this.#head;
    this.index = new BookIndex();
  }

  static of(host: string, tag: Tag | undefined, { head, records }: BookImage): Book {
    const book = new Book(host, head.now);
    book.#tag = tag;
    book.#head = book.#headBefore = head;
    // Accounts first: what a lease adds to its bucket's use is reckoned from there.
    for (const record of records)
      if (record.kind === "limits" || record.kind === "account") book.#set(record.kind, record.key, record);
    for (const record of records)
      if (record.kind !== "limits" && record.kind !== "account") book.#set(record.kind, record.key, record);
    return book;
  }

  /** The commit this state came from; undefined: the store does not know the host. */
  get tag(): Tag | undefined {
    return this.#tag;
  }

  /** The moment that is being decided. */
  get now(): number {
    return this.#now;
  }

  get head(): Head {
    return this.#head;
  }

  /** The limits in force: what the users of a semaphore fixed, else what an operator set, else as configured. */
  get policy(): HostPolicy {
    if (this.#policy === undefined) throw new Error(`The book of host ${this.host} has no limits yet`);
    return this.#policy;
  }

  get limits(): LimitsRecord | undefined {
    return this.get("limits", "");
  }

  get live(): LiveLimits | undefined {
    return this.limits?.live;
  }

  /** Slots held or set aside. */
  get inFlight(): number {
    return this.size("lease") + this.size("offer");
  }

  get free(): number {
    return Math.max(0, this.#head.slots - this.inFlight);
  }

  get<K extends RecordKind>(kind: K, key: string): RecordOf<K> | undefined {
    return this.#records.get(kind, key);
  }

  size(kind: RecordKind): number {
    return this.#records.size(kind);
  }

  all<K extends RecordKind>(kind: K): Iterable<RecordOf<K>> {
    return this.#records.all(kind);
  }

  /** Without the decision that is being made, unless `tag` is its commit: then with it. */
  allAt<K extends RecordKind>(tag: Tag, kind: K): Iterable<RecordOf<K>> {
    const images = tag === this.#tag ? this.#before.firsts().filter((image) => image.kind === kind) : [];
    if (images.length === 0) return this.all(kind);
    const records = new Map<string, BookRecord>();
    for (const record of this.all(kind)) records.set(record.key, record);
    for (const { key, before } of images) {
      if (before === undefined) records.delete(key);
      else records.set(key, before);
    }
    return records.values() as Iterable<RecordOf<K>>;
  }

  leaseOf(session: string): LeaseRecord | undefined {
    return this.index.leaseOf(session);
  }

  image(): BookImage {
    return { head: this.#head, records: [...this.#records] };
  }

  put(record: BookRecord): void {
    const { kind, key } = record;
    const before = this.#records.get(kind, key);
    this.runMeter();
    this.#before.note(kind, key, before);
    this.#replace(kind, key, before, record);
  }

  del(kind: RecordKind, key: string): void {
    const before = this.#records.get(kind, key);
    if (before === undefined) return;
    this.runMeter();
    this.#before.note(kind, key, before);
    this.#replace(kind, key, before, undefined);
  }

  /** The head, to be written by this decision: a copy, made at the first write. */
  get draft(): HeadDraft {
    return this.#draft();
  }

  setSlots(slots: number): void {
    this.runMeter();
    this.#draft().slots = slots;
  }

  setCapacity(capacity: number | undefined): void {
    this.#draft().capacity = capacity;
    this.#derivePolicy();
  }

  /** Sessions whose end need not be remembered any longer, at most `most`. */
  expiredSessions(now: number, most: number): SessionRecord[] {
    return this.#sessions.takeDue(now, most, (session) => this.get("session", session));
  }

  /** From here on this moment is decided. */
  moveTo(now: number): void {
    this.#now = now;
  }

  /** Starts remembering. */
  begin(): void {
    this.#before.clear();
    this.#headBefore = this.#head;
    this.#isHeadWritten = false;
  }

  get isChanged(): boolean {
    return this.#isHeadWritten || !this.#before.isEmpty;
  }

  /** What has changed since `begin`. */
  changes(): Changes {
    const puts: BookRecord[] = [];
    const dels: RecordName[] = [];
    for (const { kind, key, before } of this.#before.firsts()) {
      const after = this.get(kind, key);
      if (after !== undefined) puts.push(after);
      else if (before !== undefined) dels.push([kind, key]);
    }
    return { head: this.#head, puts, dels };
  }

  /** The store has the changes. */
  keep(tag: Tag): void {
    this.#tag = tag;
    this.begin();
  }

  undo(): void {
    this.#head = this.#headBefore;
    // Accounts last, as `of` has them first.
    const images = this.#before.firsts();
    for (const { kind, key, before } of images) if (kind !== "account") this.#set(kind, key, before);
    for (const { kind, key, before } of images) if (kind === "account") this.#set(kind, key, before);
    this.begin();
    this.#derivePolicy();
    this.index.forgetThrottling();
  }

  /** Commits of other instances, in order, on the tag this book is at. They lead to `tag`. */
  follow(commits: readonly Changes[], tag: Tag | undefined): void {
    for (const { head, puts, dels } of commits) {
      if (head === undefined) throw new Error(`The host ${this.host} was forgotten: there is no book to follow`);
      this.index.atForeignTime(head.now, () => {
        for (const [kind, key] of dels) this.#set(kind, key, undefined);
        for (const record of puts) this.#set(record.kind, record.key, record);
      });
      this.#head = this.#headBefore = head;
      this.#derivePolicy();
    }
    this.#tag = tag;
  }

  /** BOOK3. */
  runMeter(): void {
    const { meterAt, progress, slots } = this.#head;
    const now = this.#now;
    if (now <= meterAt) return;
    const head = this.#draft();
    head.progress = progress + this.index.ledger.rate(slots) * (now - meterAt);
    head.meterAt = now;
  }

  #draft(): Writable<Head> {
    if (!this.#isHeadWritten) {
      this.#head = copyOf(this.#head);
      this.#isHeadWritten = true;
    }
    return this.#head;
  }

  #set(kind: RecordKind, key: string, after: BookRecord | undefined): void {
    this.#replace(kind, key, this.#records.get(kind, key), after);
  }

  /** The one place where a record is replaced. */
  #replace(kind: RecordKind, key: string, before: BookRecord | undefined, after: BookRecord | undefined): void {
    if (before === after) return;
    if (after === undefined) this.#records.delete(kind, key);
    else this.#records.set(after);
    if (kind === "limits") this.#derivePolicy();
    else if (kind !== "session") this.index.set(kind, before as never, after as never);
    else if (after !== undefined) this.#sessions.add(after as SessionRecord);
  }

  #derivePolicy(): void {
    const { limits } = this;
    const { capacity } = this.#head;
    if (limits === this.#policySource.limits && capacity === this.#policySource.capacity) return;
    this.#policySource = { limits, capacity };
    this.#policy = limits === undefined ? undefined : policyInForce(limits, capacity);
    if (this.#policy !== undefined) this.index.usePolicy(this.#policy);
  }
}
