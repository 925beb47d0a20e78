import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { type BreakerView, viewBreaker } from "../book/breaker.ts";
import type { Changes } from "../book/records.ts";
import type { DecideContext } from "../decide/deciding.ts";
import { type ResolvedHost, resolveHost } from "../host-policy.ts";
import type { Input, Note, Outcome } from "../inputs.ts";
import type { QueueOptions } from "../options.ts";
import { SmallMap } from "../small-map.ts";
import type { CommitNotice } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";
import { Cycle } from "./cycle.ts";
import { DrainMeter } from "./entries.ts";
import type { Entry } from "./entry.ts";
import { eventOf } from "./events.ts";
import { HostCache, type Touched } from "./host-cache.ts";
import type { Hosts } from "./hosts.ts";
import { type Place, Positions } from "./positions.ts";
import type { Sessions } from "./sessions.ts";

/** One host at this instance: its cycle, the cached book, and the sessions that wait here. */
export class Host {
  readonly key: string;
  readonly cache: HostCache;
  readonly cycle: Cycle;
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #owner: Hosts;
  /** The sessions of this instance. */
  readonly #entries = new SmallMap<Entry, Entry>();
  /** Those with calls that wait for a commit. */
  #awaiting: Set<Entry> | undefined;
  readonly #drain = new DrainMeter();
  /** Created when first needed: many hosts never have a waiter, and a new host should cost little. */
  #positions: Positions | undefined;
  #hostname: string | undefined;
  /** The limits that are configured for the host, with the name and the options that they were made from. */
  #resolved:
    | { readonly hostname: string | undefined; readonly options: QueueOptions; readonly limits: ResolvedHost }
    | undefined;
  #isStoreDown = false;
  #lastFence = 0;
  /** Notices that arrived during a decision. */
  readonly #notices: CommitNotice[] = [];

  constructor(key: string, hostname: string | undefined, owner: Hosts) {
    const { engine, sessions } = owner;
    this.key = key;
    this.#hostname = hostname;
    this.#owner = owner;
    this.#engine = engine;
    this.#sessions = sessions;
    this.cache = new HostCache(key, engine);
    this.cycle = new Cycle(this, engine);
  }

  get book(): Book {
    return this.cache.book;
  }

  /** The name of the host as a caller of this instance wrote it, otherwise of another instance. Undefined: no caller sent it. */
  get hostname(): string | undefined {
    return this.#hostname ?? this.book.head.hostname;
  }

  get pending(): number {
    return this.#entries.size;
  }

  get hasPending(): boolean {
    return this.#entries.size > 0;
  }

  get entries(): Iterable<Entry> {
    return this.#entries.keys();
  }

  /** Whether the cached state of the breaker is at most one poll interval old. */
  get isFresh(): boolean {
    return this.#engine.time.now() - this.cache.verifiedAt < this.#engine.options.pollIntervalMs;
  }

  /** A request without keys may be refused. */
  get requiresKeys(): boolean {
    const { policy } = this.book.limits === undefined ? this.configured : this.book;
    return policy.keys?.some(({ isRequired, isShadow }) => isRequired === true && isShadow !== true) === true;
  }

  get isStoreDown(): boolean {
    return this.#isStoreDown;
  }

  /** The place of the session in the committed book. See `Positions`. */
  placeOf(session: string, now: number): Place {
    this.#positions ??= new Positions();
    return this.#positions.of(session, this.cache.isOpen ? undefined : this.book, now);
  }

  /** The average time between two grants by any instance, while a session waits. */
  get grantIntervalMs(): number | undefined {
    return this.#drain.intervalMs;
  }

  get isSemaphore(): boolean {
    return this.hostname?.startsWith(SEMAPHORE_PREFIX) === true;
  }

  /**
   * The limits that this instance has configured for the name. The limits in force are those in the book. New settings
   * are looked up when the host next needs them: they may change for a hundred thousand hosts at once.
   */
  get configured(): ResolvedHost {
    const { hostname } = this;
    const options = this.#engine.options;
    if (this.#resolved?.hostname !== hostname || this.#resolved?.options !== options)
      this.#resolved = { hostname, options, limits: resolveHost(options, hostname) };
    return this.#resolved.limits;
  }

  /** The state of the breaker in the book. */
  breaker(now: number): BreakerView {
    return viewBreaker(this.book.head.breaker, now);
  }

  /** A call sent the name of a host that was known only by its hash. */
  learnName(hostname: string | undefined): void {
    if (hostname !== undefined) this.#hostname = hostname;
  }

  send(input: Input, done?: (outcome: Outcome) => void): void {
    this.cycle.send(input, done);
  }

  add(entry: Entry): void {
    this.#entries.set(entry, entry);
    if (this.#entries.size === 1) this.#owner.onWaiting(this);
  }

  remove(entry: Entry): void {
    this.#entries.delete(entry);
    this.cycle.schedule();
    if (this.hasPending) return;
    this.#owner.onRest(this);
    // Old positions would keep ended sessions in memory.
    this.#positions = undefined;
  }

  /** Calls of the entry are answered when the present or the next commit is. */
  awaitCommit(entry: Entry): void {
    this.#awaiting ??= new Set();
    this.#awaiting.add(entry);
  }

  decideContext(): DecideContext {
    const { time, instance, newSecret, seenAt, mostEnds, loadedAt, options } = this.#engine;
    const { isPolledHere, awayHere, isTokenSent, isUndelivered } = this.#sessions;
    const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = options;
    return {
      now: time.now(),
      instance,
      limits: { policy: this.configured.policy, loadedAt, hostname: this.hostname },
      isSemaphore: this.isSemaphore,
      collectMs,
      cancelMs,
      pollIntervalMs,
      idleMs,
      mostEnds,
      scheduler,
      newSecret,
      isPolledHere,
      awayHere,
      isTokenSent,
      isUndelivered,
      seenAt,
    };
  }

  /** Records have changed. Updates the sessions of this instance. */
  changed(touched: Touched): void {
    this.#measureGrants(touched);
    this.#positions?.stale();
    if (this.#notices.length > 0) for (const notice of this.#notices.splice(0)) this.receive(notice);
    if (touched === "all") for (const { id } of Array.from(this.#entries.keys())) this.#sessions.changed(id);
    else if (this.hasPending) for (const changes of touched) this.#recordsChanged(changes);
  }

  #recordsChanged({ puts, dels }: Changes): void {
    for (const record of puts) {
      if (record.kind === "lease") this.#sessions.changed(record.session);
      else if (record.kind === "waiter" || record.kind === "offer" || record.kind === "ending")
        this.#sessions.changed(record.key);
    }
    for (const [kind, key] of dels) if (kind === "waiter") this.#sessions.changed(key);
  }

  /** Another instance sent a notice of its commit. */
  receive(notice: CommitNotice): void {
    if (this.cache.isOpen) {
      this.#notices.push(notice);
      return;
    }
    const touched = this.cache.take(notice);
    if (touched === undefined) this.cycle.refresh();
    else if (touched.length > 0) {
      this.changed(touched);
      // An instance hands out a freed slot in the same commit. A direct caller does not.
      if (this.cache.book.free > 0 && this.hasPending) this.cycle.wake();
      this.cycle.caughtUp();
    }
  }

  note(note: Note): void {
    this.#engine.emit(eventOf(this.key, note));
    if (note.kind === "granted") this.#sessions.granted(note);
  }

  /** The store answered or failed. If it failed, callers get answers from what is known. */
  storeAnswered(isAnswered: boolean): void {
    this.#isStoreDown = !isAnswered;
    if (!isAnswered) this.#sessions.storeFailed(this);
  }

  /** The outcomes of a decision were reported. Answers calls that waited for them. */
  answered(): void {
    const awaiting = this.#awaiting;
    this.#awaiting = undefined;
    if (awaiting !== undefined) for (const entry of awaiting) this.#sessions.answerDue(entry);
  }

  /** The store has forgotten the host, or this instance no longer needs it. */
  drop(): void {
    const { isShared } = this.#engine.store;
    if (this.hasPending || this.cycle.unsent > 0 || (this.book.tag !== undefined && !isShared)) return;
    this.#close();
  }

  /**
   * Drops the cached book. Its content is in the store, and is read again when needed. Returns false if a call is in
   * progress.
   */
  evict(): boolean {
    if (this.hasPending || this.cycle.unsent > 0 || this.cycle.isBusy) return false;
    this.#close();
    return true;
  }

  #close(): void {
    this.cycle.close();
    this.#owner.onDropped(this);
  }

  /** Recognizes new grants of any instance by their fences: a renewal or a new owner also writes the lease. */
  #measureGrants(touched: Touched): void {
    const before = this.#lastFence;
    this.#lastFence = Math.max(before, this.book.head.fence);
    if (touched === "all") return;
    for (const { puts } of touched) {
      for (const record of puts) if (record.kind === "lease" && record.fence > before) this.#drain.step(this.book.now);
    }
    if (this.book.size("waiter") === 0) this.#drain.rest();
  }
}
