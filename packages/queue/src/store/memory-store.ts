import type { Clock } from "slotkeeper";
import { isBreakerOpen, isPaused, isSpaced, mayForget } from "../book/host-use.ts";
import type { BookImage, Changes, Head } from "../book/records.ts";
import {
  type Beat,
  type BeatReply,
  CLOCK_SLACK_MS,
  type CleanupReply,
  type CleanupRequest,
  type Commit,
  type CommitNotice,
  type CommitReply,
  type HostStore,
  type InstanceAbout,
  type InstanceView,
  RESERVED_MS,
  RESERVES_AFTER,
  type ReadReply,
  type Refusal,
  type StoreTotals,
  type Tag,
} from "./host-store.ts";
import { refusesFirst, StoredHost } from "./stored-host.ts";

/** How many hosts are counted or cleaned up between two pauses. */
const HOSTS_PER_TURN = 500;

/** Options of a `MemoryStore`. */
export interface MemoryStoreOptions {
  /** The clock of the store. */
  readonly clock: Clock;
  /** Set it if several engines with their own clocks share the store. Default: one process with one clock. */
  readonly isShared?: boolean;
  /** Hosts that an earlier process left behind. */
  readonly hosts?: Iterable<KeptHost>;
  /** The highest fence of forgotten hosts. */
  readonly fenceFloor?: number;
  /** How long the instances of an earlier process count as alive, so that their waiters keep their places. */
  readonly graceMs?: number;
  /**
   * Waits until other work of the process had its turn. Calls that go through all hosts await it now and then. Default:
   * they do not pause.
   */
  readonly pause?: () => Promise<void>;
  /** Called for a commit that will be accepted, before it changes anything. If it throws, the commit fails with its error. */
  readonly beforeCommit?: (commit: Commit) => void;
  /** Called for every accepted commit, before `commit` returns. */
  readonly onCommit?: (kept: KeptCommit) => void;
}

/** A whole host, for `hosts` and `images`. */
export interface KeptHost extends BookImage {
  readonly host: string;
  readonly tag: Tag;
}

/** An accepted commit, for `onCommit`. */
export interface KeptCommit {
  readonly host: string;
  readonly tag: Tag;
  readonly changes: Changes;
  /** The host's head before the commit. Undefined: the host was not known. */
  readonly before: Head | undefined;
}

/**
 * The store for one process. It keeps every promise of the interface, because each call runs to its end without a
 * pause.
 */
export class MemoryStore implements HostStore {
  readonly isShared: boolean;
  readonly #clock: Clock;
  readonly #hosts = new Map<string, StoredHost>();
  readonly #board = new InstanceBoard();
  readonly #watchers = new Map<string, Set<(notice: CommitNotice) => void>>();
  readonly #beforeCommit: ((commit: Commit) => void) | undefined;
  readonly #onCommit: ((kept: KeptCommit) => void) | undefined;
  readonly #pause: (() => Promise<void>) | undefined;
  #counting: Promise<StoreTotals> | undefined;
  #fenceFloor: number;

  constructor(options: MemoryStoreOptions) {
    const { clock, isShared = false, hosts = [], fenceFloor = 0, graceMs = 0, pause, beforeCommit, onCommit } = options;
    this.#pause = pause;
    this.#clock = clock;
    this.isShared = isShared;
    this.#beforeCommit = beforeCommit;
    this.#onCommit = onCommit;
    this.#fenceFloor = fenceFloor;
    for (const { host, tag, head, records } of hosts) {
      this.#hosts.set(host, new StoredHost(tag, head, records));
      for (const record of records) {
        if (record.kind === "waiter") this.#board.put(record.instance, graceMs, {}, clock.now());
      }
    }
  }

  /** The highest fence of forgotten hosts. */
  get fenceFloor(): number {
    return this.#fenceFloor;
  }

  /** Every host, for a journal that starts a new file. */
  *images(): Iterable<KeptHost> {
    for (const [host, stored] of this.#hosts) yield { host, tag: stored.tag, ...stored.image() };
  }

  async read(host: string, since: Tag | undefined): Promise<ReadReply> {
    return this.#read(host, since);
  }

  commit(commit: Commit): CommitReply | Promise<CommitReply> {
    const stored = this.#hosts.get(commit.host);
    const now = this.#now(stored);
    const refusal = this.#refusal(commit, stored, now);
    if (refusal !== undefined && refusal !== "known")
      return { isOk: false, reason: refusal, ...this.#read(commit.host, commit.base) };
    if (refusal === undefined) {
      try {
        this.#beforeCommit?.(commit);
      } catch (error) {
        return Promise.reject(error);
      }
      this.#apply(commit, stored);
    }
    return { isOk: true, now };
  }

  async beat({ instance, ttlMs, about, hosts }: Beat): Promise<BeatReply> {
    const now = this.#clock.now();
    this.#board.put(instance, ttlMs, about, now);
    const changed = hosts.filter(([host, tag]) => this.#hosts.get(host)?.tag !== tag).map(([host]) => host);
    return { now, instances: this.#board.read(now), changed };
  }

  watch(instance: string, listener: (notice: CommitNotice) => void): () => void {
    const listeners = this.#watchers.get(instance) ?? new Set();
    this.#watchers.set(instance, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#watchers.delete(instance);
    };
  }

  async peek(hosts: readonly string[]): Promise<ReadonlyMap<string, BookImage>> {
    const images = new Map<string, BookImage>();
    for (const host of hosts) {
      const stored = this.#hosts.get(host);
      if (stored !== undefined) images.set(host, stored.image());
    }
    return images;
  }

  async hostKeys(): Promise<readonly string[]> {
    return [...this.#hosts.keys()];
  }

  /** Callers that ask while the hosts are being counted get the same result. */
  totals(): Promise<StoreTotals> {
    this.#counting ??= this.#count().finally(() => {
      this.#counting = undefined;
    });
    return this.#counting;
  }

  async #count(): Promise<StoreTotals> {
    const now = this.#clock.now();
    const totals = { hosts: 0, slots: 0, inFlight: 0, waiting: 0, open: 0, spaced: 0, paused: 0 };
    for (const stored of this.#hosts.values()) {
      if (totals.hosts % HOSTS_PER_TURN === HOSTS_PER_TURN - 1) await this.#pause?.();
      totals.hosts++;
      totals.slots += stored.head.slots;
      totals.inFlight += stored.inFlight(now);
      totals.waiting += stored.waiting(now);
      if (isBreakerOpen(stored, now)) totals.open++;
      if (isSpaced(stored, now)) totals.spaced++;
      if (isPaused(stored)) totals.paused++;
    }
    return totals;
  }

  async instances(): Promise<readonly InstanceView[]> {
    return this.#board.read(this.#clock.now());
  }

  async cleanup({ idleMs }: CleanupRequest): Promise<CleanupReply> {
    let [seen, hosts] = [0, 0];
    for (const [host, stored] of this.#hosts) {
      if (seen++ % HOSTS_PER_TURN === HOSTS_PER_TURN - 1) await this.#pause?.();
      const now = this.#clock.now();
      // Between turns the host may have been used, or forgotten.
      if (this.#hosts.get(host) !== stored || stored.head.now + idleMs > now || !mayForget(stored, now)) continue;
      this.#forget(host, stored);
      hosts++;
    }
    return { hosts, failures: [] };
  }

  /** Why the commit is refused. Undefined: it may be applied. `known`: it was already applied. */
  #refusal(commit: Commit, stored: StoredHost | undefined, clock: number): Refusal | "known" | undefined {
    const { instance, base, tag, now, conflicts } = commit;
    const isReserved = stored?.reservedBy !== undefined && stored.reservedUntil > clock;
    if (isReserved && stored.reservedBy !== instance) return stored.has(tag) ? "known" : "reserved";
    if (stored?.tag !== base) {
      if (stored?.has(tag) === true) return "known";
      if (stored !== undefined && conflicts + 1 >= RESERVES_AFTER) stored.reserve(instance, clock + RESERVED_MS);
      return "conflict";
    }
    if (now > clock || now < clock - CLOCK_SLACK_MS) return "clock";
    return stored === undefined ? refusesFirst(commit, this.#fenceFloor) : stored.refuses(commit);
  }

  #apply(commit: Commit, stored: StoredHost | undefined): void {
    const { host, base, tag, changes, wake } = commit;
    const before = stored?.head;
    if (changes.head === undefined) {
      if (stored !== undefined) this.#forget(host, stored, tag);
      return;
    }
    if (stored === undefined) {
      const created = new StoredHost(tag, changes.head);
      created.apply(commit);
      this.#hosts.set(host, created);
    } else {
      stored.apply(commit);
    }
    this.#onCommit?.({ host, tag, changes, before });
    for (const instance of wake) this.#notify(instance, { host, base, tag, changes });
  }

  /** Runs after the commit itself is answered. */
  #notify(instance: string, notice: CommitNotice): void {
    for (const listener of this.#watchers.get(instance) ?? []) void Promise.resolve().then(() => listener(notice));
  }

  #forget(host: string, { head, tag: last }: StoredHost, tag = last): void {
    this.#hosts.delete(host);
    this.#fenceFloor = Math.max(this.#fenceFloor, head.fence);
    this.#onCommit?.({ host, tag, changes: { head: undefined, puts: [], dels: [] }, before: head });
  }

  #read(host: string, since: Tag | undefined): ReadReply {
    const stored = this.#hosts.get(host);
    const now = this.#now(stored);
    if (stored !== undefined) return { now, tag: stored.tag, tail: stored.tail(since) };
    return { now, tag: undefined, tail: { kind: "book", book: undefined }, fenceFloor: this.#fenceFloor };
  }

  /** P5. */
  #now(stored: StoredHost | undefined): number {
    return Math.max(this.#clock.now(), stored?.head.now ?? 0);
  }
}

/** The last beat of each instance, and how long it is valid. */
class InstanceBoard {
  readonly #beats = new Map<
    string,
    { readonly seenAt: number; readonly until: number; readonly about: InstanceAbout }
  >();

  /** `ttlMs` 0: the instance stops. */
  put(instance: string, ttlMs: number, about: InstanceAbout, now: number): void {
    if (ttlMs <= 0) this.#beats.delete(instance);
    else this.#beats.set(instance, { seenAt: now, until: now + ttlMs, about });
  }

  read(now: number): InstanceView[] {
    const views: InstanceView[] = [];
    for (const [instance, { seenAt, until, about }] of this.#beats) {
      if (until <= now) this.#beats.delete(instance);
      else views.push({ instance, seenAgoMs: now - seenAt, about });
    }
    return views;
  }
}
