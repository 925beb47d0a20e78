import type { BeginAnswer, CancelResult, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { Clock } from "slotkeeper";
import { Agenda } from "../agenda.ts";
import { type QueueOptions, resolveOptions } from "../options.ts";
import type { CleanupReply, ReleaseReply, RenewReply, SlotStore } from "../store/slot-store.ts";
import { answerOf, throttledAnswer } from "./answers.ts";
import { type BeginRequest, checkRequest } from "./begin-request.ts";
import { knownThrottle } from "./breaker-check.ts";
import type { EngineContext } from "./context.ts";
import {
  dumpOf,
  glance,
  type HostGlance,
  type HostInspection,
  inspect,
  overviewOf,
  type QueueDump,
  type QueueOverview,
} from "./dump.ts";
import { count, newCounts, type QueueCounts, type QueueEvent } from "./events.ts";
import { firstNews } from "./first-news.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { HostQueue } from "./host-queue.ts";
import { Hosts } from "./hosts.ts";
import { type Operation, operate } from "./operations.ts";
import { Outbox } from "./outbox.ts";
import type { CallSignal } from "./poll.ts";
import { type ReleaseInput, Releases } from "./releases.ts";
import type { Session } from "./session.ts";
import { Sessions } from "./sessions.ts";

export interface FairQueueInit {
  readonly store: SlotStore;
  readonly clock: Clock;
  /** In [0, 1): jitter only, nothing secret. */
  readonly random: () => number;
  /** Names for sessions, unguessable and unique. */
  readonly newSessionId: () => string;
  /** The name of this instance, its own in the fleet. */
  readonly instance: string;
  readonly config?: FairQueueConfig;
  /**
   * Runs a task after what is at hand now; by default after the current turn. Where many callers speak in one turn of the
   * event loop, after that turn: what they ask for is then decided in one call to the store.
   */
  readonly soon?: (task: () => void) => void;
  readonly observe?: (event: QueueEvent) => void;
}

/**
 * The fair queue of one instance: what an HTTP layer, or a program that embeds the service, calls.
 *
 * Q1 nothing here waits for another session, and no call holds anything another call needs: cancel, sweep and polls go
 * through while the store is slow. Q2 a store that fails costs time, never a session. Q3 every call may be repeated.
 * The way of a request: `begin`/`poll` → the host's cycle → `store.tryAcquire(batch)` → verdicts → sessions → answers.
 */
export class FairQueue {
  readonly counts: QueueCounts = newCounts();
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts: Hosts;
  readonly #releases: Releases;
  readonly #heartbeat: Heartbeat;
  readonly #newSessionId: () => string;
  readonly #observe: (event: QueueEvent) => void;
  readonly #stopListening: () => void;
  #options: QueueOptions;
  #lastArrivedAt = 0;
  #isClosed = false;

  constructor(init: FairQueueInit) {
    const { store, clock, random, instance } = init;
    this.#options = resolveOptions(init.config);
    this.#newSessionId = init.newSessionId;
    this.#observe = init.observe ?? (() => {});
    const agenda = new Agenda(clock);
    this.#engine = {
      store,
      clock,
      random,
      instance,
      agenda,
      outbox: new Outbox(
        agenda,
        () => clock.now(),
        () => this.#options.pollIntervalMs,
        ({ operation, host }, error) => this.#emit({ type: "store-error", host, operation, error }),
      ),
      options: () => this.#options,
      emit: (event) => this.#emit(event),
      soon: init.soon ?? ((task) => void Promise.resolve().then(task)),
      wake: (host) => this.#hosts.wake(host),
    };
    this.#sessions = new Sessions(this.#engine, (session) => answerOf(session, this.#engine));
    this.#hosts = new Hosts(this.#engine, this.#sessions);
    this.#releases = new Releases(this.#engine, this.#sessions, this.#hosts);
    this.#heartbeat = new Heartbeat(this.#engine, this.#hosts);
    this.#stopListening = store.onFreed(({ host, bucket }) => this.#hosts.freed(host, bucket));
  }

  /** The first call. Never `granted` without `waitMs`, as callers of the old service expect. */
  async begin(request: BeginRequest): Promise<BeginAnswer> {
    checkRequest(request);
    throwIfLeft(request.signal);
    const { requestId, sessionId, host, bucket = "" } = request;
    const key = requestId === undefined ? undefined : JSON.stringify([host, bucket, requestId]);
    const named = sessionId === undefined ? undefined : this.#sessions.find(sessionId);
    const known = named ?? (key === undefined ? undefined : this.#sessions.findRequest(key));
    const begun = known ?? this.#begin(request, key);
    if ("result" in begun) return begun;
    const { waitMs = 0, signal } = request;
    if (waitMs <= 0) return this.#firstAnswer(begun);
    const answer = await this.#wait(begun, waitMs, signal);
    // The store was slower than the caller has patience; but what it says may be a refusal, and only this call carries one.
    if (answer.result !== "pending" || !this.#needsNews(begun)) return answer;
    await this.#news(begun);
    return this.#wait(begun, 0, signal);
  }

  /** Waits for a change, at most `pollWindowMs`. Any number of polls of one session may be open. */
  async poll(
    claims: SessionClaims,
    { waitMs, signal }: { waitMs?: number; signal?: CallSignal } = {},
  ): Promise<PollAnswer> {
    throwIfLeft(signal);
    const session = this.#sessions.find(claims.id) ?? this.#adopt(claims);
    if (session === undefined) return { result: "timeout", reason: "deadline" };
    return this.#wait(session, waitMs ?? this.#options.pollWindowMs, signal);
  }

  /** Gives back the place and the slot. Never waits: the store is told in the background. */
  cancel(claims: SessionClaims): CancelResult {
    const session = this.#sessions.find(claims.id);
    if (session !== undefined) return this.#sessions.cancel(session);
    if (this.#engine.clock.now() < claims.deadlineAt)
      this.#sessions.withdrawUnknown(this.#hosts.hostOf(claims), claims);
    return "gone";
  }

  /** Answers at once; the store is told in the background, until it has heard or the lease is over anyway. */
  release(input: ReleaseInput): void {
    void this.#releases.release(input);
  }

  /** As `release`, for a caller that wants to know what became of it: undefined when the store never heard. */
  releaseAndWait(input: ReleaseInput): Promise<ReleaseReply | undefined> {
    return this.#releases.release(input);
  }

  /** Undefined: the lease is lost. */
  async renew(slotToken: string): Promise<RenewReply | undefined> {
    const { store, clock } = this.#engine;
    const askedAt = clock.now();
    const reply = await store.renew({ slotToken });
    const session = this.#sessions.findToken(slotToken);
    const leaseUntil = reply === undefined ? 0 : askedAt + reply.leaseMs;
    if (session !== undefined) this.#sessions.setLease(session, leaseUntil);
    const leaseMs = leaseUntil - clock.now();
    return leaseMs > 0 ? { leaseMs } : undefined;
  }

  /** An upstream's answer that came without a slot. */
  async report({ host, hostname, status }: { host: string; hostname?: string; status: number }): Promise<void> {
    const queue = this.#hosts.hostOf({ host, hostname });
    const view = await this.#engine.store.report({ host, policy: queue.policy, status });
    queue.hear(view, this.#engine.clock.now());
    this.#sessions.throttleAll(queue, this.#engine.clock.now());
    this.#hosts.wake(queue);
  }

  /** What an operator asks for by `flush`: everything in the store that time has ended, ended now. */
  async sweep(): Promise<CleanupReply> {
    const swept = await this.#engine.store.cleanup({ waiterTtlMs: this.#options.waiterRowTtlMs });
    if (swept.reclaimed !== undefined && swept.reclaimed > 0) this.#emit({ type: "reclaimed", slots: swept.reclaimed });
    return swept;
  }

  /** The same for what this instance keeps: sessions past their deadline or idle for too long. Says how many went. */
  sweepSessions(): number {
    const before = this.#sessions.size;
    this.#engine.agenda.catchUp();
    return before - this.#sessions.size;
  }

  /** An operator's action; see `operations.ts` for when it is in force where. */
  operate(operation: Operation): Promise<boolean> {
    return operate(operation, this.#engine, this.#hosts, this.#sessions);
  }

  /** New settings, live: sessions keep their places, their polls and their deadlines. */
  async reconfigure(config: FairQueueConfig): Promise<void> {
    this.#options = resolveOptions(config);
    this.#hosts.reconfigure();
    await this.#engine.store.cleanup({ waiterTtlMs: this.#options.waiterRowTtlMs, resetSmoothing: true });
  }

  /** For the person on call. */
  dump(): QueueDump {
    return dumpOf(this.#engine, this.#hosts, this.#sessions, this.counts);
  }

  /** The same without its hosts: cheap however many there are. */
  overview(): QueueOverview {
    return overviewOf(this.#engine, this.#sessions, this.counts);
  }

  /** The hosts this instance knows, by key. */
  hostKeys(): Iterable<string> {
    return this.#hosts.keys();
  }

  /** How many hosts this instance knows. */
  get hostCount(): number {
    return this.#hosts.size;
  }

  /** One host as a row of a table; undefined: not known here. */
  glance(host: string): HostGlance | undefined {
    const known = this.#hosts.find(host);
    return known === undefined ? undefined : glance(known, this.#engine);
  }

  /** One host looked at closely, with everybody's position and what each waits for; undefined: not known here. */
  inspect(host: string): HostInspection | undefined {
    const known = this.#hosts.find(host);
    return known === undefined ? undefined : inspect(known, this.#engine);
  }

  /** Answers every held poll and stops. Slots stay with their holders; sessions live on in the store and their tokens. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopListening();
    this.#sessions.answerAll();
    this.#engine.agenda.close();
  }

  /** A session, or the answer that there will be none. */
  #begin(request: BeginRequest, requestKey: string | undefined): Session | BeginAnswer {
    const bucket = request.bucket ?? "";
    if (!this.#sessions.quota.admits(bucket, this.#options)) {
      this.#emit({ type: "overloaded", host: request.host, bucket });
      return { result: "overloaded", retryAfterMs: this.#retryAfterMs() };
    }
    const host = this.#hosts.hostOf(request, request.limit);
    const openMs = request.throttleWindowMs ?? host.policy.breaker.openMs;
    const throttle = knownThrottle(host, openMs, this.#engine.clock.now(), this.#options.pollIntervalMs);
    if (throttle !== undefined) {
      this.#emit({ type: "throttled", host: host.key, bucket, session: undefined, code: throttle.code });
      return throttledAnswer(throttle.code, throttle.retryInMs);
    }
    return this.#create(this.#newClaims(request, bucket), host, requestKey, false);
  }

  #newClaims(request: BeginRequest, bucket: string): SessionClaims {
    // No two arrive at once: the order inside a bucket is one order, everywhere.
    this.#lastArrivedAt = Math.max(this.#engine.clock.now(), this.#lastArrivedAt + ARRIVAL_STEP_MS);
    return {
      id: request.sessionId ?? this.#newSessionId(),
      host: request.host,
      bucket,
      arrivedAt: this.#lastArrivedAt,
      deadlineAt: this.#engine.clock.now() + (request.maxWaitMs ?? this.#options.maxWaitMs),
      ...(request.hostname === undefined ? {} : { hostname: request.hostname }),
      ...(request.throttleWindowMs === undefined ? {} : { throttleWindowMs: request.throttleWindowMs }),
      ...(request.limit === undefined ? {} : { limit: request.limit }),
    };
  }

  #create(claims: SessionClaims, host: HostQueue, requestKey: string | undefined, isAdopted: boolean): Session {
    const now = this.#engine.clock.now();
    const bucket = host.bucketFor(claims.bucket, now);
    const openMs = claims.throttleWindowMs ?? host.policy.breaker.openMs;
    const session = this.#sessions.create({ claims, host, bucket, openMs, requestKey, isAdopted, now });
    this.#hosts.wake(host);
    this.#heartbeat.start();
    return session;
  }

  /** A session of another instance, or of this one before it was restarted. Past its deadline it is dead. */
  #adopt(claims: SessionClaims): Session | undefined {
    if (this.#engine.clock.now() >= claims.deadlineAt) return undefined;
    return this.#create(claims, this.#hosts.hostOf(claims, claims.limit), undefined, true);
  }

  async #firstAnswer(session: Session): Promise<PollAnswer> {
    await this.#news(session);
    if (session.state.kind !== "granted") return this.#wait(session, 0, undefined);
    return {
      result: "pending",
      session: session.claims,
      position: 1,
      waiters: session.host.pending,
      estimatedWaitMs: undefined,
      blockedBy: undefined,
    };
  }

  /** Waits for the store's first word of the session, where an answer needs it; throws if that is a refusal. */
  async #news(session: Session): Promise<void> {
    if (this.#needsNews(session)) {
      const { agenda, clock } = this.#engine;
      this.#sessions.touch(session);
      await firstNews(session, agenda, clock.now() + this.#options.pollIntervalMs);
    }
    if (session.refusal !== undefined) throw session.refusal;
  }

  /** Whether the store must be heard before a first call is answered: the answer may be `throttled`, or a refusal. */
  #needsNews({ host, claims, isHeard }: Session): boolean {
    if (isHeard || host.isStoreDown || this.#isClosed) return false;
    const isBreakerKnown = this.#engine.clock.now() - host.breakerAt < this.#options.pollIntervalMs;
    return claims.limit !== undefined || !isBreakerKnown;
  }

  #wait(session: Session, waitMs: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    this.#sessions.fetch(session);
    if (session.isPending && waitMs > 0 && !this.#isClosed) {
      const now = this.#engine.clock.now();
      return this.#sessions.hold(session, now + Math.min(waitMs, this.#options.pollWindowMs), signal);
    }
    this.#sessions.touch(session);
    return Promise.resolve(answerOf(session, this.#engine));
  }

  #retryAfterMs(): number {
    return Math.min(MAX_RETRY_AFTER_MS, Math.max(1000, this.#sessions.drain.intervalMs ?? 0));
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

function throwIfLeft(signal: CallSignal | undefined): void {
  if (signal?.aborted === true) throw signal.reason;
}

const ARRIVAL_STEP_MS = 1 / 1024;
const MAX_RETRY_AFTER_MS = 30_000;
