import type { BeginAnswer, CancelResult, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { isCounted } from "../book/breaker.ts";
import { type BudgetView, budgetsOf } from "../book/budget-view.ts";
import { resolveHost } from "../host-policy.ts";
import type { Operation, Outcome } from "../inputs.ts";
import type { CleanupReply } from "../store/host-store.ts";
import { type BeginRequest, Calls } from "./calls.ts";
import { EngineContext, type FairQueueInit } from "./context.ts";
import * as Dump from "./dump.ts";
import type { CallSignal } from "./entry.ts";
import type { QueueCounts } from "./events.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Hosts } from "./hosts.ts";
import { type ReleaseAccepted, type ReleaseInput, Releases, type RenewReply } from "./releases.ts";
import { Sessions } from "./sessions.ts";

/** What is left of the limits of a host with budgets, for the headers of an answer. A decision in progress counts. */
export interface HostQuotas {
  readonly slots: number;
  readonly free: number;
  readonly budgets: readonly BudgetView[];
}

/**
 * The fair queue of one instance, for an HTTP layer or for a program that embeds the service.
 *
 * FAIRQ1 No call blocks another: cancellations, sweeps and polls work while the store is slow.
 * FAIRQ2 A failing store delays sessions, but loses none.
 * FAIRQ3 Every call may be repeated.
 * The path of a request: `begin`/`poll` → session → the host's cycle → `decide` → `store.commit` → sessions → answers.
 *
 * @example
 * ```ts
 * import { randomUUID } from "node:crypto";
 * import { FairQueue, MemoryStore } from "@slotkeeper/queue";
 * import { realClock } from "slotkeeper";
 *
 * const queue = new FairQueue({
 *   store: new MemoryStore({ clock: realClock }),
 *   clock: realClock,
 *   newSessionId: randomUUID,
 *   newSecret: randomUUID,
 *   instance: "one",
 *   config: { maxSlotPerHost: 2 },
 * });
 * await queue.start();
 * const answer = await queue.begin({ host: "api.example.com", bucket: "customer-7", waitMs: 1_000 });
 * if (answer.result === "granted") queue.release({ slotToken: answer.slotToken });
 * await queue.close();
 * ```
 */
export class FairQueue {
  readonly #engine: EngineContext;
  readonly #hosts: Hosts;
  readonly #heartbeat: Heartbeat;
  readonly #calls: Calls;
  readonly #releases: Releases;
  readonly #stopWatching: () => void;
  #isClosed = false;

  constructor(init: FairQueueInit) {
    const { store, instance, about = () => ({}) } = init;
    this.#engine = new EngineContext(init, () => this.#followTime());
    this.#hosts = new Hosts(this.#engine, new Sessions(this.#engine));
    this.#heartbeat = new Heartbeat(this.#hosts, about);
    this.#calls = new Calls(this.#hosts, this.#heartbeat);
    this.#releases = new Releases(this.#hosts);
    this.#stopWatching = store.watch(instance, (notice) => this.#hosts.find(notice.host)?.receive(notice));
  }

  /** How many sessions began and ended in each way since the start. */
  get counts(): QueueCounts {
    return this.#engine.counts;
  }

  /** Reads the store's clock and reports that this instance is alive. Calls are allowed before it settles. */
  async start(): Promise<void> {
    await this.#heartbeat.beat();
    this.#engine.restamp();
  }

  /** The first call of a session. Without `waitMs` it is never `granted`, as callers of the original service expect. */
  begin(request: BeginRequest): Promise<BeginAnswer> {
    return this.#calls.begin(request);
  }

  /** Waits for a change of the session, at most `pollWindowMs`. A session may have any number of open polls. */
  poll(claims: SessionClaims, call: { waitMs?: number; signal?: CallSignal } = {}): Promise<PollAnswer> {
    const { pollWindowMs } = this.#engine.options;
    return this.#calls.poll(claims, call.waitMs ?? pollWindowMs, call.signal);
  }

  /** Gives up the place in the queue and the slot. Returns immediately; the store is updated later. */
  cancel(claims: SessionClaims): CancelResult {
    return this.#calls.cancel(claims);
  }

  /**
   * Returns immediately; the store is updated later. If this process is killed before that, the lease ends at its own
   * time. `onAccepted` runs when the caller need not repeat the release: immediately or, if another instance is alive
   * that could take the repeated call or `used` must be checked, when the store has the release.
   */
  release(input: ReleaseInput, onAccepted?: (accepted: ReleaseAccepted) => void): void {
    this.#releases.release(input, onAccepted);
  }

  /** Undefined: the lease has ended. */
  renew(slotToken: string): Promise<RenewReply | undefined> {
    return this.#releases.renew(slotToken);
  }

  /**
   * Reports an answer of the upstream to a request without a slot. Settles when the store has it. A status that does not
   * count creates no host.
   */
  report({ status, ...named }: { host: string; hostname?: string; status: number }): Promise<void> {
    const isKnown = this.#hosts.find(named.host) !== undefined;
    if (!isKnown && !isCounted(status, resolveHost(this.#engine.options, named.hostname).policy.breaker))
      return Promise.resolve();
    return new Promise((resolve) => this.#hosts.open(named).send({ kind: "report", status }, () => resolve()));
  }

  /** The action `flush` of operators: updates the hosts of this instance and deletes what other instances left behind. */
  sweep(): Promise<CleanupReply> {
    const { store, options } = this.#engine;
    this.#hosts.inTurns(({ cycle }) => cycle.wake());
    return store.cleanup({ idleMs: options.idleMs });
  }

  /** Ends the sessions of this instance that are past their deadline or idle for too long. Returns their number. */
  sweepSessions(): number {
    const { sessions } = this.#hosts;
    const before = sessions.expired;
    this.#engine.agenda.catchUp();
    return sessions.expired - before;
  }

  /**
   * Carries out an action of an operator. It is in force when the promise settles, for all later decisions of every
   * instance. `false`: the slot does not exist.
   */
  async operate(operation: Operation): Promise<boolean> {
    const host = this.#hosts.open(operation);
    const outcome = await new Promise<Outcome>((resolve) => {
      host.send(operation, resolve);
    });
    return outcome.kind !== "missing";
  }

  /** Applies new settings while the queue runs. Sessions keep their places, their polls and their deadlines. */
  reconfigure(config: FairQueueConfig): void {
    this.#engine.load(config);
    this.#hosts.configure();
  }

  /** The current store time, as far as this instance knows it. */
  now(): number {
    return this.#engine.time.now();
  }

  /** The state of this instance, for operators. */
  dump(): Dump.QueueDump {
    return Dump.dumpOf(this.#hosts);
  }

  /** The part of `dump` that costs little. */
  overview(): Dump.QueueOverview {
    return Dump.overviewOf(this.#hosts);
  }

  /** The sessions of this instance by state. Reads all its cached books. */
  sessions(): Dump.SessionTotals {
    return Dump.sessionTotals(this.#hosts);
  }

  /** The hosts this instance knows, by key. */
  hostKeys(): Iterable<string> {
    return this.#hosts.keys();
  }

  /** The hosts of this instance that the store does not have, as far as this instance knows. */
  *newHostKeys(): Iterable<string> {
    for (const { key, cache } of this.#hosts.values()) if (cache.tag === undefined) yield key;
  }

  /** How many hosts this instance knows. */
  get hostCount(): number {
    return this.#hosts.size;
  }

  /** One host as a row of a table. Undefined: this instance does not know the host. */
  glance(host: string): Dump.HostGlance | undefined {
    const known = this.#hosts.find(host);
    return known === undefined ? undefined : Dump.glance(known, this.#engine);
  }

  /** What is left of the limits of a host. Undefined: this instance does not know the host, or it has no budgets. */
  quotas(host: string): HostQuotas | undefined {
    const book = this.#hosts.find(host)?.book;
    if (book?.limits?.policy.budgets === undefined) return undefined;
    return { slots: book.head.slots, free: book.free, budgets: budgetsOf(book, this.now()) };
  }

  /** One host with the position of each session and what it waits for. Undefined: this instance does not know the host. */
  inspect(host: string): Dump.HostInspection | undefined {
    const known = this.#hosts.find(host);
    return known === undefined ? undefined : Dump.inspect(known, this.#engine);
  }

  /** The cached book, for the checks of the simulator. Undefined: the host is not known here, or a decision is in progress. */
  bookOf(host: string): Book | undefined {
    const known = this.#hosts.find(host);
    return known === undefined || known.cache.isOpen ? undefined : known.book;
  }

  /** Reports to the fleet that this instance stops, so that the others do not wait for its waiters. */
  leave(): Promise<void> {
    return this.#heartbeat.leave();
  }

  /** Answers every held poll and stops. Clients keep their slots. Sessions stay in the store, and their tokens stay valid. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopWatching();
    this.#heartbeat.close();
    this.#hosts.sessions.close();
    this.#engine.agenda.close();
  }

  /** The store has set the time: what is scheduled in it must not come late. */
  #followTime(): void {
    this.#heartbeat.followTime();
    this.#engine.agenda.followTime();
  }
}
