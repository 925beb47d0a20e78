import type { BeginAnswer, CancelResult, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import { isCounted } from "../book/breaker.ts";
import { resolveHost } from "../host-policy.ts";
import type { CleanupReply } from "../store/host-store.ts";
import type { BeginRequest } from "./begin-request.ts";
import type { CallSignal } from "./call.ts";
import * as Dump from "./dump.ts";
import { Engine, type FairQueueInit } from "./engine.ts";
import type { QueueCounts } from "./events.ts";
import { type Operation, operate } from "./operations.ts";
import { type HostQuotas, quotasOf } from "./quotas.ts";
import type { ReleaseAccepted, ReleaseInput, RenewReply } from "./releases.ts";

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
  readonly #engine: Engine;
  #isClosed = false;

  constructor(init: FairQueueInit) {
    this.#engine = new Engine(init);
  }

  /** How many sessions began and ended in each way since the start. */
  get counts(): QueueCounts {
    return this.#engine.counts;
  }

  /** Reads the store's clock and reports that this instance is alive. Calls are allowed before it settles. */
  async start(): Promise<void> {
    await this.#engine.heartbeat.beat();
    this.#engine.options.restamp();
  }

  /** The first call of a session. Without `waitMs` it is never `granted`, as callers of the original service expect. */
  begin(request: BeginRequest): Promise<BeginAnswer> {
    return this.#engine.calls.begin(request);
  }

  /** Waits for a change of the session, at most `pollWindowMs`. A session may have any number of open polls. */
  poll(claims: SessionClaims, call: { waitMs?: number; signal?: CallSignal } = {}): Promise<PollAnswer> {
    const { pollWindowMs } = this.#engine.options.current;
    return this.#engine.calls.poll(claims, call.waitMs ?? pollWindowMs, call.signal);
  }

  /** Gives up the place in the queue and the slot. Returns immediately; the store is updated later. */
  cancel(claims: SessionClaims): CancelResult {
    return this.#engine.calls.cancel(claims);
  }

  /**
   * Returns immediately; the store is updated later. If this process is killed before that, the lease ends at its own
   * time. `onAccepted` runs when the caller need not repeat the release: immediately or, if another instance is alive
   * that could take the repeated call or `used` must be checked, when the store has the release.
   */
  release(input: ReleaseInput, onAccepted?: (accepted: ReleaseAccepted) => void): void {
    this.#engine.releases.release(input, onAccepted);
  }

  /** Undefined: the lease has ended. */
  renew(slotToken: string): Promise<RenewReply | undefined> {
    return this.#engine.releases.renew(slotToken);
  }

  /**
   * Reports an answer of the upstream to a request without a slot. Settles when the store has it. A status that does not
   * count creates no host.
   */
  report({ status, ...named }: { host: string; hostname?: string; status: number }): Promise<void> {
    const { hosts, options } = this.#engine;
    const isKnown = hosts.find(named.host) !== undefined;
    if (!isKnown && !isCounted(status, resolveHost(options.current, named.hostname).policy.breaker))
      return Promise.resolve();
    return new Promise((resolve) => hosts.open(named).send({ kind: "report", status }, () => resolve()));
  }

  /** The action `flush` of operators: updates the hosts of this instance and deletes what other instances left behind. */
  sweep(): Promise<CleanupReply> {
    const { hosts, context, options } = this.#engine;
    hosts.inTurns(({ cycle }) => cycle.wake());
    return context.store.cleanup({ idleMs: options.current.idleMs });
  }

  /** Ends the sessions of this instance that are past their deadline or idle for too long. Returns their number. */
  sweepSessions(): number {
    const { sessions, context } = this.#engine;
    const before = sessions.expired;
    context.agenda.catchUp();
    return sessions.expired - before;
  }

  /** Carries out an action of an operator. `false`: the host or slot does not exist. */
  operate(operation: Operation): Promise<boolean> {
    return operate(operation, this.#engine.hosts);
  }

  /** Applies new settings while the queue runs. Sessions keep their places, their polls and their deadlines. */
  reconfigure(config: FairQueueConfig): void {
    this.#engine.options.load(config);
    this.#engine.hosts.configure();
  }

  /** The current store time, as far as this instance knows it. */
  now(): number {
    return this.#engine.context.time.now();
  }

  /** The state of this instance, for operators. */
  dump(): Dump.QueueDump {
    return Dump.dumpOf(this.#engine);
  }

  /** The part of `dump` that costs little. */
  overview(): Dump.QueueOverview {
    return Dump.overviewOf(this.#engine);
  }

  /** The sessions of this instance by state. Reads all its cached books. */
  sessions(): Dump.SessionTotals {
    return Dump.sessionTotals(this.#engine);
  }

  /** The hosts this instance knows, by key. */
  hostKeys(): Iterable<string> {
    return this.#engine.hosts.keys();
  }

  /** The hosts of this instance that the store does not have, as far as this instance knows. */
  *newHostKeys(): Iterable<string> {
    for (const { key, cache } of this.#engine.hosts.values()) if (cache.tag === undefined) yield key;
  }

  /** How many hosts this instance knows. */
  get hostCount(): number {
    return this.#engine.hosts.size;
  }

  /** One host as a row of a table. Undefined: this instance does not know the host. */
  glance(host: string): Dump.HostGlance | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined ? undefined : Dump.glance(known, this.#engine.context);
  }

  /** What is left of the limits of a host. Undefined: this instance does not know the host, or it has no budgets. */
  quotas(host: string): HostQuotas | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined ? undefined : quotasOf(known, this.now());
  }

  /** One host with the position of each session and what it waits for. Undefined: this instance does not know the host. */
  inspect(host: string): Dump.HostInspection | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined ? undefined : Dump.inspect(known, this.#engine.context);
  }

  /** The cached book, for the checks of the simulator. Undefined: the host is not known here, or a decision is in progress. */
  bookOf(host: string): Book | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined || known.cache.isOpen ? undefined : known.book;
  }

  /** Reports to the fleet that this instance stops, so that the others do not wait for its waiters. */
  leave(): Promise<void> {
    return this.#engine.heartbeat.leave();
  }

  /** Answers every held poll and stops. Clients keep their slots. Sessions stay in the store, and their tokens stay valid. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#engine.close();
  }
}
