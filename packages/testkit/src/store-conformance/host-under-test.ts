import type {
  AccountRecord,
  BookImage,
  BookRecord,
  Changes,
  Commit,
  CommitReply,
  EndingRecord,
  Head,
  HostStore,
  LeaseRecord,
  OfferRecord,
  ReadReply,
  RecordName,
  WaiterRecord,
} from "@slotkeeper/queue";
import type { StoreUnderTest } from "./store-under-test.ts";

/** The fields of a commit that a test sets; the others are filled in. */
export interface GivenCommit {
  readonly head?: Partial<Head>;
  readonly puts?: readonly BookRecord[];
  readonly dels?: readonly RecordName[];
  readonly base?: string | undefined;
  readonly tag?: string;
  readonly now?: number;
  readonly instance?: string;
  readonly hasOthers?: boolean;
  readonly wake?: readonly string[];
  readonly conflicts?: number;
  readonly store?: HostStore;
}

/** A host with what an instance would remember about it. Each test has its own. */
export class HostUnderTest {
  static #hosts = 0;
  readonly host = `conformance-${process.pid}-${HostUnderTest.#hosts++}`;
  readonly store: HostStore;
  readonly other: HostStore;
  /** The tag of the last accepted commit. */
  tag: string | undefined;
  head: Head;
  readonly #subject: StoreUnderTest;
  #tags = 0;

  private constructor(subject: StoreUnderTest, now: number) {
    this.#subject = subject;
    this.store = subject.store;
    this.other = subject.other;
    this.head = headOf(now);
  }

  static async on(subject: StoreUnderTest): Promise<HostUnderTest> {
    const host = new HostUnderTest(subject, 0);
    await host.startAfresh();
    return host;
  }

  /** The store's clock. */
  async now(): Promise<number> {
    return (await this.store.read(this.host, undefined)).now;
  }

  /** Creates a head for the first commit, or for the first one after the host was forgotten. */
  async startAfresh(): Promise<void> {
    const reply = await this.store.read(this.host, undefined);
    this.head = { ...headOf(reply.now), fence: firstFence(reply) };
  }

  /** Moves the clock of the store, also backwards. */
  pass(ms: number): Promise<void> {
    return this.#subject.pass(ms);
  }

  /** As an engine makes it: the count of the last tag plus one, and a random part. */
  newTag(): string {
    return `${Number.parseInt(this.tag ?? "0", 10) + 1}.${this.host}-${this.#tags++}`;
  }

  async send({ store = this.store, ...given }: GivenCommit = {}): Promise<CommitReply> {
    return store.commit(await this.commitOf(given));
  }

  /** A commit that follows the last one, at the time of the store. */
  async commitOf({ head, puts = [], dels = [], ...given }: GivenCommit): Promise<Commit> {
    const now = given.now ?? (await this.now());
    const changes: Changes = { head: { ...this.head, now: Math.max(now, this.head.now), ...head }, puts, dels };
    const rest = {
      host: this.host,
      instance: "one",
      base: this.tag,
      tag: this.newTag(),
      hasOthers: true,
      wake: [],
      conflicts: 0,
    };
    return { ...rest, ...given, now, changes };
  }

  /** Sends a commit that must be accepted, and remembers it. Returns its tag. */
  async accept(given: GivenCommit = {}): Promise<string> {
    const { store = this.store, ...rest } = given;
    const commit = await this.commitOf(rest);
    const reply = await store.commit(commit);
    if (!reply.isOk) throw new Error(`Expected the commit to be accepted, got ${reply.reason}`);
    this.tag = commit.tag;
    if (commit.changes.head !== undefined) this.head = commit.changes.head;
    return commit.tag;
  }

  /** Accepts a commit with one more lease for each name, each with the next fence. */
  async grant(...names: readonly string[]): Promise<LeaseRecord[]> {
    const now = await this.now();
    const leases = names.map((name, at) => leaseOf(name, this.head.fence + 1 + at, now));
    await this.accept({ head: { fence: this.head.fence + names.length }, puts: leases, now });
    return leases;
  }

  async forget(): Promise<void> {
    const commit = await this.commitOf({});
    const reply = await this.store.commit({ ...commit, changes: { head: undefined, puts: [], dels: [] } });
    if (!reply.isOk) throw new Error(`Expected the host to be forgotten, got ${reply.reason}`);
    this.tag = undefined;
  }

  async book(store = this.store): Promise<BookImage | undefined> {
    const { tail } = await store.read(this.host, undefined);
    if (tail.kind !== "book") throw new Error("Expected the whole book");
    return tail.book;
  }

  /** The kinds and keys of all records in the store. */
  async names(): Promise<string[]> {
    return ((await this.book())?.records ?? []).map(({ kind, key }) => `${kind} ${key}`).sort();
  }
}

/** The first fence of an unknown host: the time of the store in microseconds, above the fences of forgotten hosts. */
export function firstFence({ now, fenceFloor = 0 }: ReadReply): number {
  return Math.max(Math.floor(now * 1000), fenceFloor);
}

export function headOf(now: number): Head {
  return {
    hostname: "host.example",
    slots: 2,
    fence: Math.floor(now * 1000),
    now,
    progress: 0.1 + 0.2,
    meterAt: now,
    breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 },
    avgWaitMs: 12.75,
  };
}

export function leaseOf(name: string, fence: number, now: number, more: Partial<LeaseRecord> = {}): LeaseRecord {
  const times = { grantedAt: now, endsAt: now + 30_000, keepUntil: now + 60_000 };
  const rest = {
    session: `s-${name}`,
    bucket: `b-${name}`,
    instance: "one",
    isReleased: false,
    isProbe: false,
    width: 1,
  };
  return { kind: "lease", key: `slot_${name}`, fence, ...rest, ...times, ...more };
}

export function offerOf(name: string, now: number, lapsesAt = now + 50): OfferRecord {
  const rest = { bucket: `b-${name}`, instance: "two", offeredAt: now, isProbe: false, width: 1 };
  return { kind: "offer", key: `s-${name}`, ...rest, lapsesAt };
}

export function waiterOf(name: string, now: number, more: Partial<WaiterRecord> = {}): WaiterRecord {
  const rest = { instance: "one", bucket: `b-${name}`, weight: 1, openMs: 60_000, isInside: true };
  return { kind: "waiter", key: `s-${name}`, ...rest, arrivedAt: now, deadlineAt: now + 20_000, ...more };
}

export function accountOf(bucket: string, now: number, usedMs = 0): AccountRecord {
  return { kind: "account", key: bucket, weight: 1, usedMs, asOf: now };
}

export function sessionOf(name: string, keepUntil: number, endedAt?: number): EndingRecord {
  return {
    kind: "ending",
    key: `s-${name}`,
    end: "released",
    keepUntil,
    ...(endedAt === undefined ? {} : { endedAt }),
  };
}
