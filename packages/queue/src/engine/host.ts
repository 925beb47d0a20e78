import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { type BreakerView, viewBreaker } from "../book/breaker.ts";
import type { LeaseRecord } from "../book/records.ts";
import type { DecideContext } from "../decide/deciding.ts";
import { type ResolvedHost, resolveHost } from "../host-policy.ts";
import type { Input, Note, Outcome } from "../inputs.ts";
import type { QueueOptions } from "../options.ts";
import { SmallMap } from "../small-map.ts";
import type { CommitNotice } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";
import { Cycle } from "./cycle.ts";
import type { CycleHost } from "./cycle-host.ts";
import { DrainMeter } from "./drain-meter.ts";
import { eventOf } from "./events.ts";
import { HostCache, type Touched } from "./host-cache.ts";
import { Positions } from "./positions.ts";
import type { Session } from "./session.ts";

/** How a host notifies the sessions of this instance. */
export interface HostListener {
  /** The state of the session in the book may have changed. */
  settle(session: Session): void;
  /** Another instance has taken the session over. */
  moved(session: Session): void;
  find(id: string): Session | undefined;
  /** A commit of this instance has granted the slot. */
  granted(lease: LeaseRecord): void;
  /** For decisions. They are functions of the listener, so that a decision creates no closures. */
  readonly isPolledHere: (id: string) => boolean;
  readonly isTokenSent: (id: string) => boolean;
  /** See `DecideContext`. */
  readonly awayHere: (id: string) => number | undefined;
  /** The store does not answer. */
  storeFailed(host: Host): void;
}

/** The collection that a host belongs to. */
export interface HostOwner {
  readonly engine: EngineContext;
  readonly listener: HostListener;
  /** A session began or ended there. */
  onUsed(host: Host): void;
  /** A session waits there. */
  onWaiting(host: Host): void;
  /** No session waits there any more. */
  onRest(host: Host): void;
  onDropped(host: Host): void;
}

/** One host at this instance: its cycle, the cached book, and the sessions that wait here. */
export class Host implements CycleHost {
  readonly key: string;
  readonly cache: HostCache;
  readonly cycle: Cycle;
  readonly #engine: EngineContext;
  readonly #listener: HostListener;
  readonly #owner: HostOwner;
  /** Pending sessions of this instance. */
  readonly #waiting = new SmallMap<Session, Session>();
  readonly #drain = new DrainMeter();
  /** Created when first needed: many hosts never have a waiter, and a new host should cost little. */
  #positions: Positions | undefined;
  #hostname: string | undefined;
  /** The limits that are configured for the host, with the name and the options that they were made from. */
  #resolved:
    | { readonly hostname: string | undefined; readonly options: QueueOptions; readonly limits: ResolvedHost }
    | undefined;
  /** The number of sessions that this instance keeps for the host, including ended ones. */
  #remembered = 0;
  #isStoreDown = false;
  #lastFence = 0;
  /** Notices that arrived during a decision. */
  readonly #notices: CommitNotice[] = [];

  constructor(key: string, hostname: string | undefined, owner: HostOwner) {
    const { engine, listener } = owner;
    this.key = key;
    this.#hostname = hostname;
    this.#owner = owner;
    this.#engine = engine;
    this.#listener = listener;
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
    return this.#waiting.size;
  }

  get hasPending(): boolean {
    return this.#waiting.size > 0;
  }

  get waiting(): Iterable<Session> {
    return this.#waiting.keys();
  }

  get isStoreDown(): boolean {
    return this.#isStoreDown;
  }

  /** 1 is next. See `Positions`. */
  positionOf(session: string, now: number): number {
    this.#positions ??= new Positions();
    return this.#positions.of(session, this.book, now);
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
    const options = this.#engine.options();
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

  /** This instance keeps sessions of the host, including ended ones. */
  get isRemembered(): boolean {
    return this.#remembered > 0;
  }

  remember(session: Session): void {
    this.#remembered++;
    this.#addWaiting(session);
    if (this.#remembered === 1) this.#owner.onUsed(this);
  }

  /** The session starts or stops waiting. */
  setWaiting(session: Session, isWaiting: boolean): void {
    if (isWaiting) this.#addWaiting(session);
    else if (this.#waiting.delete(session)) this.cycle.schedule();
    if (this.hasPending) return;
    this.#owner.onRest(this);
    // Old positions would keep ended sessions in memory.
    this.#positions = undefined;
  }

  #addWaiting(session: Session): void {
    this.#waiting.set(session, session);
    this.#owner.onWaiting(this);
  }

  forget(): void {
    this.#remembered--;
    if (this.#remembered === 0) this.#owner.onUsed(this);
  }

  decideContext(): DecideContext {
    const { time, instance, newSecret, seenAt } = this.#engine;
    const { isPolledHere, awayHere, isTokenSent } = this.#listener;
    const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = this.#engine.options();
    const { mostEnds } = this.#engine;
    return {
      now: time.now(),
      instance,
      limits: { policy: this.configured.policy, loadedAt: this.#engine.loadedAt(), hostname: this.hostname },
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
      seenAt,
    };
  }

  settle(touched: Touched): void {
    this.#countGrants(touched);
    this.#positions?.stale();
    if (this.#notices.length > 0) for (const notice of this.#notices.splice(0)) this.receive(notice);
    if (touched === "all") {
      for (const session of Array.from(this.#waiting.keys())) this.#listener.settle(session);
      return;
    }
    for (const { puts, dels } of touched) {
      for (const record of puts) {
        if (record.kind === "waiter" && record.instance !== this.#engine.instance) this.#movedAway(record.key);
        else if (record.kind === "lease") this.#settle(record.session);
        else if (record.kind === "waiter" || record.kind === "offer" || record.kind === "session")
          this.#settle(record.key);
      }
      for (const [kind, key] of dels) if (kind === "waiter") this.#settle(key);
    }
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
      this.settle(touched);
      // An instance hands out a freed slot in the same commit. A direct caller does not.
      if (this.cache.book.free > 0 && this.hasPending) this.cycle.wake();
      this.cycle.caughtUp();
    }
  }

  note(note: Note): void {
    this.#engine.emit(eventOf(this.key, note));
  }

  storeAnswered(isAnswered: boolean): void {
    this.#isStoreDown = !isAnswered;
    if (!isAnswered) this.#listener.storeFailed(this);
  }

  drop(): void {
    const isShared = this.#engine.store.clock === "shared";
    if (this.#remembered > 0 || this.cycle.unsent > 0 || (this.book.tag !== undefined && !isShared)) return;
    this.#close();
  }

  /**
   * Drops the cached book. Its content is in the store, and is read again when needed. Returns false if a call is in
   * progress.
   */
  evict(): boolean {
    if (this.#remembered > 0 || this.cycle.unsent > 0 || this.cycle.isBusy) return false;
    this.#close();
    return true;
  }

  #close(): void {
    this.cycle.close();
    this.#owner.onDropped(this);
  }

  /** Recognizes new grants by their fences: a renewal or a new owner also writes the lease. */
  #countGrants(touched: Touched): void {
    const before = this.#lastFence;
    this.#lastFence = Math.max(before, this.book.head.fence);
    if (touched === "all") return;
    for (const { puts } of touched) {
      for (const record of puts) {
        if (record.kind !== "lease" || record.fence <= before) continue;
        this.#drain.step(this.book.now);
        if (record.instance === this.#engine.instance) this.#listener.granted(record);
      }
    }
    if (this.book.size("waiter") === 0) this.#drain.rest();
  }

  /** Another instance reports the later changes of the session. */
  #movedAway(id: string): void {
    const session = this.#listener.find(id);
    if (session !== undefined) this.#listener.moved(session);
  }

  #settle(id: string): void {
    const session = this.#listener.find(id);
    if (session !== undefined) this.#listener.settle(session);
  }
}
