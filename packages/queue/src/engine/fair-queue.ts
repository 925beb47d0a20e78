import type { BeginAnswer, CancelResult, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { Book } from "../book/book.ts";
import type { CleanupReply } from "../store/host-store.ts";
import type { BeginRequest } from "./begin-request.ts";
import * as Dump from "./dump.ts";
import { Engine, type FairQueueInit } from "./engine.ts";
import type { QueueCounts } from "./events.ts";
import { type Operation, operate } from "./operations.ts";
import type { CallSignal } from "./poll.ts";
import type { ReleaseInput, RenewReply } from "./releases.ts";

/**
 * The fair queue of one instance: what an HTTP layer, or a program that embeds the service, calls.
 *
 * FAIRQ1 no call holds anything another call needs: cancel, sweep and polls go through while the store is slow. FAIRQ2 a store that
 * fails costs time, never a session. FAIRQ3 every call may be repeated.
 * The way of a request: `begin`/`poll` → session → the host's cycle → `decide` → `store.commit` → sessions → answers.
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
 *   random: Math.random,
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

  /** Reads the store's clock and reports that this instance is alive. Callers may come before it has settled. */
  async start(): Promise<void> {
    await this.#engine.heartbeat.beat();
    this.#engine.options.restamp();
  }

  /** The first call. Never `granted` without `waitMs`, as callers of the old service expect. */
  begin(request: BeginRequest): Promise<BeginAnswer> {
    return this.#engine.calls.begin(request);
  }

  /** Waits for a change, at most `pollWindowMs`. Any number of polls of one session may be open. */
  poll(claims: SessionClaims, call: { waitMs?: number; signal?: CallSignal } = {}): Promise<PollAnswer> {
    const { pollWindowMs } = this.#engine.options.current;
    return this.#engine.calls.poll(claims, call.waitMs ?? pollWindowMs, call.signal);
  }

  /** Gives back the place and the slot. Never waits: the store has it later. */
  cancel(claims: SessionClaims): CancelResult {
    return this.#engine.calls.cancel(claims);
  }

  /** Returns at once: the store has it later, until the lease is over anyway. `onSafe`: when this process may end without losing it. */
  release(input: ReleaseInput, onSafe?: () => void): void {
    this.#engine.releases.release(input, onSafe);
  }

  /** Undefined: the lease is lost. */
  renew(slotToken: string): Promise<RenewReply | undefined> {
    return this.#engine.releases.renew(slotToken);
  }

  /** An upstream's answer that came without a slot. Settles when the store has it. */
  report({ status, ...named }: { host: string; hostname?: string; status: number }): Promise<void> {
    return new Promise((resolve) => {
      this.#engine.hosts.open(named).send({ kind: "report", status }, () => resolve());
    });
  }

  /** What an operator asks for by `flush`: hosts of this instance are brought up to now, leftovers of others deleted. */
  sweep(): Promise<CleanupReply> {
    const { hosts, context, options } = this.#engine;
    for (const { cycle } of hosts.values()) cycle.wake();
    return context.store.cleanup({ idleMs: options.current.idleMs });
  }

  /** The same for what this instance keeps: sessions past their deadline or idle for too long. Says how many went. */
  sweepSessions(): number {
    const { register } = this.#engine.sessions;
    const before = register.size;
    this.#engine.context.agenda.catchUp();
    return before - register.size;
  }

  /** Carries out what an operator asks for. `false`: there is no such host or slot. */
  operate(operation: Operation): Promise<boolean> {
    return operate(operation, this.#engine.hosts, this.#engine.sessions);
  }

  /** New settings, live: sessions keep their places, their polls and their deadlines. */
  reconfigure(config: FairQueueConfig): void {
    this.#engine.options.load(config);
    this.#engine.hosts.configure();
  }

  /** The store's time, as well as this instance knows it. */
  now(): number {
    return this.#engine.context.time.now();
  }

  /** For the person on call. */
  dump(): Dump.QueueDump {
    return Dump.dumpOf(this.#engine);
  }

  /** The same without its hosts. */
  overview(): Dump.QueueOverview {
    return Dump.overviewOf(this.#engine);
  }

  /** The hosts this instance knows, by key. */
  hostKeys(): Iterable<string> {
    return this.#engine.hosts.keys();
  }

  /** How many hosts this instance knows. */
  get hostCount(): number {
    return this.#engine.hosts.size;
  }

  /** One host as a row of a table; undefined: not known here. */
  glance(host: string): Dump.HostGlance | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined ? undefined : Dump.glance(known, this.#engine.context);
  }

  /** One host looked at closely, with the position of each session and what it waits for; undefined: not known here. */
  inspect(host: string): Dump.HostInspection | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined ? undefined : Dump.inspect(known, this.#engine.context);
  }

  /** The cached book, for the checks of the simulator; undefined: not known here, or a decision is open. */
  bookOf(host: string): Book | undefined {
    const known = this.#engine.hosts.find(host);
    return known === undefined || known.cache.isOpen ? undefined : known.book;
  }

  /** Reports to the fleet that this instance leaves: its waiters need not be waited for. */
  leave(): Promise<void> {
    return this.#engine.heartbeat.leave();
  }

  /** Answers every held poll and stops. Slots stay with their holders; sessions live on in the store and their tokens. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#engine.close();
  }
}
