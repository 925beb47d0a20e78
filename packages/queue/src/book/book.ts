import type { HostPolicy } from "../host-policy.ts";
import type { Tag } from "../store/host-store.ts";
import { BookIndex } from "./book-index.ts";
import type {
  BookImage,
  BookRecord,
  Changes,
  Head,
  LeaseRecord,
  LimitsRecord,
  LiveLimits,
  OfferRecord,
  RecordKind,
  RecordName,
  RecordOf,
  SessionRecord,
  WaiterRecord,
} from "./records.ts";
import { SessionShelf } from "./session-shelf.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

type OptionalHeadField = "lastEndAt" | "capacity" | "idleSince";

/** Records that a decision has changed, with what they were before. */
type Touched = Map<string, BookRecord | undefined>;

/**
 * One host's state in memory: the head and the records, with the index that is derived from them.
 *
 * B1 records change only through `put` and `del`, the head through `write`; only the files of this folder call them.
 * B2 between `begin` and `keep` everything is remembered: `changes` tells what a decision did, `undo` takes it back.
 * B3 the meter of `order.ts` runs on the sums as they were: it is brought to `now` before any change.
 * B4 the index equals what the records derive to after every single `put` and `del`, in whatever order they come, so a
 *    decision, its undoing and the commits of others use the same way.
 * Nothing here reads a clock, and nothing knows of a store but the tag it was last at.
 */
export class Book {
  readonly host: string;
  readonly index: BookIndex;
  /** The commit this state came from; undefined: the store does not know the host. */
  tag: Tag | undefined;
  /** The moment that is being decided. The meter is brought here before anything changes the sums it runs on. */
  now: number;
  #head: Head;
  #headBefore: Head;
  #isHeadWritten = false;
  readonly #records = new Map<RecordKind, Map<string, BookRecord>>();
  readonly #sessions = new SessionShelf();
  readonly #touched = new Map<RecordKind, Touched>();
  #policy: HostPolicy | undefined;

  /** A host that the store does not know. */
  constructor(host: string, now: number, fenceFloor = 0) {
    this.host = host;
    this.now = now;
    this.#head = newHead(now, fenceFloor);
    this.#headBefore = this.#head;
    this.index = new BookIndex();
  }

  static of(host: string, tag: Tag | undefined, { head, records }: BookImage): Book {
    const book = new Book(host, head.now);
    book.tag = tag;
    book.#head = book.#headBefore = head;
    // Accounts first: what a lease adds to its bucket's use is reckoned from there.
    for (const record of records) if (record.kind === "limits" || record.kind === "account") book.#set(record, record);
    for (const record of records) if (record.kind !== "limits" && record.kind !== "account") book.#set(record, record);
    return book;
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
    return this.#records.get(kind)?.get(key) as RecordOf<K> | undefined;
  }

  size(kind: RecordKind): number {
    return this.#records.get(kind)?.size ?? 0;
  }

  all<K extends RecordKind>(kind: K): Iterable<RecordOf<K>> {
    return (this.#records.get(kind)?.values() ?? []) as Iterable<RecordOf<K>>;
  }

  leaseOf(session: string): LeaseRecord | undefined {
    return this.index.leaseOf(session);
  }

  image(): BookImage {
    const records = [...this.#records.values()].flatMap((byKey) => [...byKey.values()]);
    return { head: this.#head, records };
  }

  put(record: BookRecord): void {
    this.#note(record.kind, record.key);
    this.#set(record, record);
  }

  del(kind: RecordKind, key: string): void {
    if (this.get(kind, key) === undefined) return;
    this.#note(kind, key);
    this.#set({ kind, key }, undefined);
  }

  write(change: Partial<Head>): void {
    if ("slots" in change) this.runMeter();
    if (!this.#isHeadWritten) {
      this.#head = { ...this.#head };
      this.#isHeadWritten = true;
    }
    Object.assign(this.#head as Writable<Head>, change);
    if ("capacity" in change) this.#derivePolicy();
  }

  /** Removes optional fields of the head. */
  clear(...fields: OptionalHeadField[]): void {
    if (fields.every((field) => this.#head[field] === undefined)) return;
    this.write({});
    for (const field of fields) delete (this.#head as Writable<Head>)[field];
    if (fields.includes("capacity")) this.#derivePolicy();
  }

  /** Sessions whose end need not be remembered any longer, at most `most`. */
  expiredSessions(now: number, most: number): SessionRecord[] {
    return this.#sessions.takeDue(now, most, (session) => this.get("session", session));
  }

  /** Starts remembering. */
  begin(): void {
    this.#touched.clear();
    this.#headBefore = this.#head;
    this.#isHeadWritten = false;
  }

  get isChanged(): boolean {
    return this.#isHeadWritten || this.#touched.size > 0;
  }

  /** What has changed since `begin`. */
  changes(): Changes {
    const puts: BookRecord[] = [];
    const dels: RecordName[] = [];
    for (const [kind, touched] of this.#touched) {
      const records = this.#records.get(kind);
      for (const [key, before] of touched) {
        const after = records?.get(key);
        if (after !== undefined) puts.push(after);
        else if (before !== undefined) dels.push([kind, key]);
      }
    }
    return { head: this.#head, puts, dels };
  }

  /** The store has the changes. */
  keep(tag: Tag): void {
    this.tag = tag;
    this.begin();
  }

  undo(): void {
    this.#head = this.#headBefore;
    // Accounts last, as `of` has them first.
    for (const [kind, touched] of this.#touched) if (kind !== "account") this.#restore(kind, touched);
    this.#restore("account", this.#touched.get("account"));
    this.begin();
    this.#derivePolicy();
    this.index.throttledAt = undefined;
  }

  /** A commit of another instance, on the tag this book is at. */
  apply({ head, puts, dels }: Changes): void {
    if (head === undefined) throw new Error(`The host ${this.host} was forgotten: there is no book to apply this to`);
    this.index.foreignAt = head.now;
    for (const [kind, key] of dels) this.#set({ kind, key }, undefined);
    for (const record of puts) this.#set(record, record);
    this.index.foreignAt = undefined;
    this.#head = this.#headBefore = head;
    this.#derivePolicy();
  }

  /** B3. */
  runMeter(): void {
    const { meterAt, progress, slots } = this.#head;
    if (this.now <= meterAt) return;
    this.write({ progress: progress + this.index.ledger.rate(slots) * (this.now - meterAt), meterAt: this.now });
  }

  #note(kind: RecordKind, key: string): void {
    this.runMeter();
    let touched = this.#touched.get(kind);
    if (touched === undefined) {
      touched = new Map();
      this.#touched.set(kind, touched);
    }
    if (!touched.has(key)) touched.set(key, this.get(kind, key));
  }

  #restore(kind: RecordKind, touched: Touched = new Map()): void {
    for (const [key, before] of touched) this.#set({ kind, key }, before);
  }

  /** The one place where a record is replaced. */
  #set({ kind, key }: { readonly kind: RecordKind; readonly key: string }, after: BookRecord | undefined): void {
    let byKey = this.#records.get(kind);
    if (byKey === undefined) {
      byKey = new Map();
      this.#records.set(kind, byKey);
    }
    const before = byKey.get(key);
    if (before === after) return;
    if (after === undefined) byKey.delete(key);
    else byKey.set(key, after);
    this.#derive(kind, before, after);
  }

  #derive(kind: RecordKind, before: BookRecord | undefined, after: BookRecord | undefined): void {
    switch (kind) {
      case "lease":
        this.index.setLease(before as LeaseRecord | undefined, after as LeaseRecord | undefined);
        return;
      case "offer":
        this.index.setOffer(before as OfferRecord | undefined, after as OfferRecord | undefined);
        return;
      case "waiter":
        this.index.setWaiter(before as WaiterRecord | undefined, after as WaiterRecord | undefined);
        return;
      case "account":
        this.index.setAccount((before ?? after)?.key ?? "", after as RecordOf<"account"> | undefined);
        return;
      case "cooldown":
        this.index.setCooldown((before ?? after)?.key ?? "", after as RecordOf<"cooldown"> | undefined);
        return;
      case "absence":
        this.index.setAbsent((before ?? after)?.key ?? "", after !== undefined);
        return;
      case "session":
        if (after !== undefined) this.#sessions.add(after as SessionRecord);
        return;
      case "limits":
        this.#derivePolicy();
    }
  }

  #derivePolicy(): void {
    const limits = this.limits;
    if (limits === undefined) {
      this.#policy = undefined;
      return;
    }
    const { policy, live } = limits;
    const slots = this.#head.capacity ?? live?.slots ?? policy.slots;
    const slotsPerBucket = live?.slotsPerBucket ?? policy.slotsPerBucket;
    const isAsGiven = slots === policy.slots && slotsPerBucket === policy.slotsPerBucket;
    const next = isAsGiven ? policy : { ...policy, slots, slotsPerBucket };
    if (next === this.#policy) return;
    this.#policy = next;
    this.index.usePolicy(next);
  }
}

/** Fences start at the time, in microseconds: above those of an earlier life of the host. */
function newHead(now: number, fenceFloor: number): Head {
  return {
    slots: 1,
    fence: Math.max(Math.floor(now * 1000), fenceFloor),
    now,
    progress: 0,
    meterAt: now,
    breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 },
    avgWaitMs: 0,
    isHot: false,
  };
}
