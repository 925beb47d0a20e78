import { DEFAULT_CLASS } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import { CLASS_ORDER } from "../order/class-order.ts";
import type { HostOrder } from "../order/contract.ts";
import type { Tag } from "../store/host-store.ts";
import { BeforeImages } from "./before-images.ts";
import { BookIndex } from "./book-index.ts";
import { keyPayableAt } from "./budgets.ts";
import type { ClassIndex } from "./class-index.ts";
import { advanceUses, meterRate } from "./class-use.ts";
import { isPausedBy, newHead, policyInForce } from "./head.ts";
import type { KeyUse } from "./key-line.ts";
import type {
  BookImage,
  BookRecord,
  Changes,
  Head,
  LeaseRecord,
  LimitsRecord,
  LiveSettings,
  RecordKind,
  RecordName,
  RecordOf,
  WaiterRecord,
} from "./records.ts";
import { RecordsByKind } from "./records-by-kind.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The fields of a head that a decision may write directly. The others affect the rest of the book and have their own
 * methods.
 */
export type HeadDraft = Writable<Omit<Head, "slots" | "capacity">>;

const NO_SOURCE = { limits: undefined, capacity: undefined };

/**
 * The state of one host in memory: the head, the records, and the index that is derived from them.
 *
 * BOOK1 Records change only through `put` and `del`. The head changes only through `draft`, `setSlots` and
 *   `setCapacity`.
 * BOOK2 Between `begin` and `keep` the book tracks every change: `changes` lists them, and `undo` reverts them.
 * BOOK3 The meter of `order.ts` is advanced to `now` before any change, so that it uses the sums from before the
 *   change.
 * BOOK4 After every single `put` and `del`, in any order, the index equals what the records give. So decisions, `undo`
 *   and commits of other instances all use the same code.
 * The book reads no clock. Of the store it knows only the tag of the last commit.
 */
export class Book {
  readonly host: string;
  readonly index: BookIndex;
  #tag: Tag | undefined;
  #now: number;
  #head: Head;
  #headBefore: Head;
  #isHeadWritten = false;
  readonly #records = new RecordsByKind();
  readonly #before = new BeforeImages();
  #policy: HostPolicy | undefined;
  /** The inputs that `policy` was derived from. */
  #policySource: { readonly limits: LimitsRecord | undefined; readonly capacity: number | undefined } = NO_SOURCE;

  /** A host that the store does not know. */
  constructor(host: string, now: number, fenceFloor = 0) {
    this.host = host;
    this.#now = now;
    this.#head = newHead(now, fenceFloor);
    this.#headBefore = this.#head;
    this.index = new BookIndex(this);
  }

  static of(host: string, tag: Tag | undefined, { head, records }: BookImage): Book {
    const book = new Book(host, head.now);
    book.#tag = tag;
    book.#head = book.#headBefore = head;
    for (const record of records) book.#set(record.kind, record.key, record);
    return book;
  }

  /** The commit that this state comes from. Undefined: the store does not know the host. */
  get tag(): Tag | undefined {
    return this.#tag;
  }

  /** The time for which the decision is made. */
  get now(): number {
    return this.#now;
  }

  get head(): Head {
    return this.#head;
  }

  /** The limits in force: what the users of a semaphore chose, otherwise what an operator set, otherwise the configuration. */
  get policy(): HostPolicy {
    if (this.#policy === undefined) throw new Error(`The book of host ${this.host} has no limits yet`);
    return this.#policy;
  }

  get limits(): LimitsRecord | undefined {
    return this.get("limits", "");
  }

  get live(): LiveSettings | undefined {
    return this.limits?.live;
  }

  get isPaused(): boolean {
    return isPausedBy(this.limits);
  }

  /** Slots that are held or offered. */
  get inFlight(): number {
    return this.index.inFlight;
  }

  get free(): number {
    return Math.max(0, this.#head.slots - this.inFlight);
  }

  /** Whether a waiter may be granted slots: some are free, and no first waits for more (FIRST1). */
  get canGrant(): boolean {
    return this.free > 0 && this.#head.first === undefined;
  }

  /** When the budgets of a value of a key can pay for a waiter; 0: now. */
  payableAt({ key }: KeyUse, waiter: WaiterRecord): number {
    return key === undefined ? 0 : keyPayableAt(this, key, waiter);
  }

  /** Which line is next. */
  get order(): HostOrder {
    if (this.#head.classes !== undefined) return CLASS_ORDER;
    return this.index.orderOf(this.index.ofClass(DEFAULT_CLASS) as ClassIndex);
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

  leaseOf(session: string): LeaseRecord | undefined {
    return this.index.endings.leaseOf(session);
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

  /** The head, for this decision to write. It is copied at the first write. */
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

  /** The rest of the decision is made for this time. */
  moveTo(now: number): void {
    this.#now = now;
  }

  /** Starts to track changes. */
  begin(): void {
    this.#before.reset();
    this.#headBefore = this.#head;
    this.#isHeadWritten = false;
  }

  get isChanged(): boolean {
    return this.#isHeadWritten || !this.#before.isEmpty;
  }

  /** What changed since `begin`. */
  changes(): Changes {
    const puts: BookRecord[] = [];
    const dels: RecordName[] = [];
    for (const { kind, key, before } of this.#before.all()) {
      const after = this.get(kind, key);
      if (after !== undefined) puts.push(after);
      else if (before !== undefined) dels.push([kind, key]);
    }
    return { head: this.#head, puts, dels };
  }

  /** The store accepted the changes. */
  keep(tag: Tag): void {
    this.#tag = tag;
    this.begin();
  }

  undo(): void {
    this.#head = this.#headBefore;
    for (const { kind, key, before } of this.#before.all()) this.#set(kind, key, before);
    this.begin();
    this.#derivePolicy();
    this.index.resetThrottling();
  }

  /** Applies what other instances changed since the tag of this book. The result is at `tag`. */
  follow({ head, puts, dels }: Changes, tag: Tag | undefined): void {
    if (head === undefined) throw new Error(`The host ${this.host} was forgotten: there is no book to follow`);
    this.index.atForeignTime(head.now, () => {
      for (const [kind, key] of dels) this.#set(kind, key, undefined);
      for (const record of puts) this.#set(record.kind, record.key, record);
    });
    this.#head = this.#headBefore = head;
    this.#derivePolicy();
    this.#tag = tag;
  }

  /** BOOK3. */
  runMeter(): void {
    const { meterAt, progress, classes } = this.#head;
    const now = this.#now;
    if (now <= meterAt) return;
    const elapsedMs = now - meterAt;
    const advanced = progress + meterRate(this) * elapsedMs;
    const uses = classes && advanceUses(this, classes, elapsedMs);
    const head = this.#draft();
    head.progress = advanced;
    head.meterAt = now;
    if (uses !== undefined) head.classes = uses;
  }

  #draft(): Writable<Head> {
    if (!this.#isHeadWritten) {
      this.#head = { ...this.#head };
      this.#isHeadWritten = true;
    }
    return this.#head;
  }

  #set(kind: RecordKind, key: string, after: BookRecord | undefined): void {
    this.#replace(kind, key, this.#records.get(kind, key), after);
  }

  /** All changes of records go through here. */
  #replace(kind: RecordKind, key: string, before: BookRecord | undefined, after: BookRecord | undefined): void {
    if (before === after) return;
    if (after === undefined) this.#records.delete(kind, key);
    else this.#records.set(after);
    if (kind === "limits") this.#derivePolicy();
    else this.index.set(kind, before as never, after as never);
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
