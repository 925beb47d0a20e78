import type { BeginAnswer, CancelResult, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { Clock } from "slotkeeper";
import { Agenda } from "../agenda.ts";
import type { Book } from "../book/book.ts";
import { type QueueOptions, resolveOptions } from "../options.ts";
import type { CleanupReply, HostStore, InstanceAbout } from "../store/host-store.ts";
import type { BeginRequest } from "./begin-request.ts";
import { Calls } from "./calls.ts";
import type { EngineContext } from "./context.ts";
import * as Dump from "./dump.ts";
import { count, newCounts, type QueueCounts, type QueueEvent } from "./events.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Hosts } from "./hosts.ts";
import { type Operation, operate } from "./operations.ts";
import type { CallSignal } from "./poll.ts";
import { type ReleaseInput, Releases, type RenewReply } from "./releases.ts";
import { Sessions } from "./sessions.ts";
import { StoreTime } from "./store-time.ts";

export interface FairQueueInit {
  readonly store: HostStore;
  readonly clock: Clock;
  /** In [0, 1): jitter only, nothing secret. */
  readonly random: () => number;
  /** Names for sessions, unguessable and unique. */
  readonly newSessionId: () => string;
  /** At least 128 random bits without a dot: for slot tokens, and for the tags of commits. */
  readonly newSecret: () => string;
  /** The name of this instance: its own in the fleet, and new with every start. */
  readonly instance: string;
  readonly config?: FairQueueConfig;
  /** What the fleet is told of this instance. */
  readonly about?: () => InstanceAbout;
  /**
   * Runs a task after what is at hand now; by default after the current turn. Where many callers come in one turn of the event
   * loop, after that turn: what they ask for is then decided together.
   */
  readonly soon?: (task: () => void) => void;
  readonly observe?: (event: QueueEvent) => void;
}

/**
 * The fair queue of one instance: what an HTTP layer, or a program that embeds the service, calls.
 *
 * Q1 no call holds anything another call needs: cancel, sweep and polls go through while the store is slow. Q2 a store that
 * fails costs time, never a session. Q3 every call may be repeated.
 * The way of a request: `begin`/`poll` → session → the host's cycle → `decide` → `store.commit` → sessions → answers.
 */
export class FairQueue {
  readonly counts: QueueCounts = newCounts();
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts: Hosts;
  readonly #calls: Calls;
  readonly #releases: Releases;
  readonly #heartbeat: Heartbeat;
  readonly #observe: (event: QueueEvent) => void;
  readonly #stopWatching: () => void;
  #options: QueueOptions;
  #loadedAt: number;
  #isClosed = false;

  constructor(init: FairQueueInit) {
    const { store, clock, random, instance, newSecret } = init;
    const time = new StoreTime(clock, store.clock === "shared");
    this.#options = resolveOptions(init.config);
    this.#loadedAt = time.now();
    this.#observe = init.observe ?? (() => {});
    this.#engine = {
      store,
      time,
      random,
      newSecret,
      instance,
      agenda: new Agenda(time),
      options: () => this.#options,
      loadedAt: () => this.#loadedAt,
      emit: (event) => this.#emit(event),
      soon: init.soon ?? ((task) => void Promise.resolve().then(task)),
      seenAt: (other) => this.#heartbeat.seenAt(other),
    };
    this.#sessions = new Sessions(this.#engine);
    this.#hosts = new Hosts(this.#engine, this.#sessions);
    this.#heartbeat = new Heartbeat(this.#engine, this.#hosts, init.about ?? (() => ({})));
    const parts = { sessions: this.#sessions, hosts: this.#hosts };
    this.#calls = new Calls(this.#engine, parts, init.newSessionId, () => this.#heartbeat.quicken());
    this.#releases = new Releases(this.#engine, this.#sessions, this.#hosts);
    this.#stopWatching = store.watch(instance, (news) => this.#hosts.find(news.host)?.hear(news));
  }

  /** Brings the store's clock, and tells the fleet that this instance lives. Callers may come before it has settled. */
  async start(): Promise<void> {
    await this.#heartbeat.beat();
    this.#loadedAt = this.#engine.time.now();
  }

  /** The first call. Never `granted` without `waitMs`, as callers of the old service expect. */
  begin(request: BeginRequest): Promise<BeginAnswer> {
    return this.#calls.begin(request);
  }

  /** Waits for a change, at most `pollWindowMs`. Any number of polls of one session may be open. */
  poll(claims: SessionClaims, call: { waitMs?: number; signal?: CallSignal } = {}): Promise<PollAnswer> {
    return this.#calls.poll(claims, call.waitMs ?? this.#options.pollWindowMs, call.signal);
  }

  /** Gives back the place and the slot. Never waits: the store has it later. */
  cancel(claims: SessionClaims): CancelResult {
    return this.#calls.cancel(claims);
  }

  /** Answers at once: the store has it later, until the lease is over anyway. */
  release(input: ReleaseInput): void {
    this.#releases.release(input);
  }

  /** Undefined: the lease is lost. */
  renew(slotToken: string): Promise<RenewReply | undefined> {
    return this.#releases.renew(slotToken);
  }

  /** An upstream's answer that came without a slot. Settles when the store has it. */
  report({ status, ...named }: { host: string; hostname?: string; status: number }): Promise<void> {
    return new Promise((resolve) => {
      this.#hosts.open(named).send({ kind: "report", status }, () => resolve());
    });
  }

  /** What an operator asks for by `flush`: hosts of this instance are brought up to now, leftovers of others deleted. */
  sweep(): Promise<CleanupReply> {
    for (const { cycle } of this.#hosts.values()) cycle.wake();
    return this.#engine.store.cleanup({ idleMs: this.#options.idleMs });
  }

  /** The same for what this instance keeps: sessions past their deadline or idle for too long. Says how many went. */
  sweepSessions(): number {
    const before = this.#sessions.register.size;
    this.#engine.agenda.catchUp();
    return before - this.#sessions.register.size;
  }

  operate(operation: Operation): Promise<boolean> {
    return operate(operation, this.#hosts, this.#sessions);
  }

  /** New settings, live: sessions keep their places, their polls and their deadlines. */
  reconfigure(config: FairQueueConfig): void {
    this.#options = resolveOptions(config);
    // Later than before, also within one tick of the clock.
    this.#loadedAt = Math.max(this.#engine.time.now(), this.#loadedAt + 1 / 1024);
    this.#hosts.configure();
  }

  /** The store's time, as well as this instance knows it. */
  now(): number {
    return this.#engine.time.now();
  }

  /** For the person on call. */
  dump(): Dump.QueueDump {
    return Dump.dumpOf(this.#parts);
  }

  /** The same without its hosts. */
  overview(): Dump.QueueOverview {
    return Dump.overviewOf(this.#parts);
  }

  /** The hosts this instance knows, by key. */
  hostKeys(): Iterable<string> {
    return this.#hosts.keys();
  }

  get hostCount(): number {
    return this.#hosts.size;
  }

  /** One host as a row of a table; undefined: not known here. */
  glance(host: string): Dump.HostGlance | undefined {
    const known = this.#hosts.find(host);
    return known === undefined ? undefined : Dump.glance(known, this.#engine);
  }

  /** One host looked at closely, with everybody's position and what each waits for; undefined: not known here. */
  inspect(host: string): Dump.HostInspection | undefined {
    const known = this.#hosts.find(host);
    return known === undefined ? undefined : Dump.inspect(known, this.#engine);
  }

  /** The cached book, for the checks of the simulator; undefined: not known here, or a decision is open. */
  bookOf(host: string): Book | undefined {
    const known = this.#hosts.find(host);
    return known === undefined || known.cache.isOpen ? undefined : known.book;
  }

  /** Tells the fleet that this instance leaves: its waiters need not be waited for. */
  leave(): Promise<void> {
    return this.#heartbeat.leave();
  }

  /** Answers every held poll and stops. Slots stay with their holders; sessions live on in the store and their tokens. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopWatching();
    this.#calls.close();
    this.#heartbeat.close();
    this.#sessions.answerAll();
    this.#engine.agenda.close();
  }

  get #parts() {
    return { engine: this.#engine, hosts: this.#hosts, sessions: this.#sessions, counts: this.counts };
  }

  #emit(event: QueueEvent): void {
    count(this.counts, event);
    try {
      this.#observe(event);
    } catch (error) {
      // A fault of the listener is reported as one, and is not the queue's.
      void Promise.reject(error);
    }
  }
}
