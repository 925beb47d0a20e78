import type { BeginAnswer, CancelResult, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import { throttleFor } from "../book/breaker.ts";
import { answerOf, throttledAnswer } from "./answers.ts";
import { type BeginRequest, checkRequest } from "./begin-request.ts";
import type { EngineContext } from "./context.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";
import type { CallSignal } from "./poll.ts";
import { endOf, type Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** The calls about sessions: first calls, polls and cancellations. */
export class Calls {
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts: Hosts;
  readonly #newSessionId: () => string;
  readonly #onWaiting: () => void;
  #lastArrivedAt = 0;
  #isClosed = false;

  constructor(
    engine: EngineContext,
    parts: { readonly sessions: Sessions; readonly hosts: Hosts },
    newSessionId: () => string,
    onWaiting: () => void,
  ) {
    this.#engine = engine;
    this.#sessions = parts.sessions;
    this.#hosts = parts.hosts;
    this.#newSessionId = newSessionId;
    this.#onWaiting = onWaiting;
  }

  async begin(request: BeginRequest): Promise<BeginAnswer> {
    checkRequest(request);
    throwIfLeft(request.signal);
    const begun = this.#current(this.#known(request)) ?? this.#begin(request);
    if ("result" in begun) return begun;
    const { waitMs = 0, signal } = request;
    if (waitMs <= 0) return this.#firstAnswer(begun);
    const answer = await this.#wait(begun, waitMs, signal);
    // The wait is over before the store answered. Its answer may still be a refusal, which only the first call can
    // return.
    if (answer.result !== "pending" || !this.#mustAwaitArrival(begun)) return answer;
    await this.#awaitArrival(begun);
    return this.#wait(begun, 0, signal);
  }

  async poll(claims: SessionClaims, waitMs: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    throwIfLeft(signal);
    const session = this.#current(this.#sessions.register.find(claims.id)) ?? this.#adopt(claims);
    if (session === undefined) return { result: "timeout", reason: "deadline" };
    return this.#wait(session, waitMs, signal);
  }

  cancel(claims: SessionClaims): CancelResult {
    const session = this.#sessions.register.find(claims.id);
    if (session !== undefined) return this.#sessions.transitions.cancel(session);
    const now = this.#engine.time.now();
    if (now >= claims.deadlineAt) return "gone";
    const host = this.#hosts.open(claims);
    const lease = host.book.leaseOf(claims.id);
    if (lease !== undefined && now - lease.grantedAt > this.#engine.options().cancelMs) return "noop";
    host.send(endOf(claims, { end: "canceled", at: now, isUndelivered: false }));
    return "gone";
  }

  close(): void {
    this.#isClosed = true;
  }

  #known({ requestId, sessionId, host, bucket = "" }: BeginRequest): Session | undefined {
    const named = sessionId === undefined ? undefined : this.#sessions.register.find(sessionId);
    return (
      named ??
      (requestId === undefined ? undefined : this.#sessions.register.findRequest(requestKey(host, bucket, requestId)))
    );
  }

  /**
   * The session has a slot: its client repeats a call, or did not wait for the answer to the last one. In a shared store
   * the slot may have ended meanwhile, at another instance or by a direct SQL caller. Or the session ended here because
   * its client made no call, but the client may have made one at another instance. So the session joins again, and the
   * answer comes from the book. After its deadline it cannot join any more, and the answer is what this instance knows.
   */
  #current(session: Session | undefined): Session | undefined {
    if (session === undefined || this.#engine.store.clock !== "shared") return session;
    const { state, claims, host, requestKey } = session;
    const now = this.#engine.time.now();
    const isIdle = state.kind === "timeout" && state.reason === "idle";
    const hasSlot = state.kind === "granted" && state.leaseUntil > now;
    if (!(isIdle || hasSlot) || now >= claims.deadlineAt) return session;
    if (state.kind === "granted" && !state.isFetched) {
      this.#sessions.joinAgain(session, state);
      return session;
    }
    this.#sessions.transitions.forget(session);
    return this.#create(claims, host, requestKey, true);
  }

  /** Creates a session, or returns the answer if none is created. */
  #begin(request: BeginRequest): Session | BeginAnswer {
    const bucket = request.bucket ?? "";
    if (!this.#sessions.register.quota.admits(bucket, this.#engine.options())) {
      this.#engine.emit({ type: "overloaded", host: request.host, bucket });
      return { result: "overloaded", retryAfterMs: this.#retryAfterMs() };
    }
    const host = this.#hosts.open(request);
    const openMs = request.throttleWindowMs ?? host.configured.policy.breaker.openMs;
    const throttled = this.#knownThrottle(host, openMs);
    if (throttled !== undefined) {
      this.#engine.emit({ type: "throttled", host: host.key, bucket, session: undefined, code: throttled.code });
      return throttledAnswer(throttled.code, throttled.retryInMs);
    }
    const { requestId } = request;
    const key = requestId === undefined ? undefined : requestKey(host.key, bucket, requestId);
    return this.#create(this.#newClaims(request, bucket), host, key, false);
  }

  /**
   * Layer 1, for a caller without a session. Uses the cached breaker if the store confirmed it within the last poll
   * interval.
   */
  #knownThrottle(host: Host, openMs: number): ReturnType<typeof throttleFor> {
    if (!this.#isFresh(host)) return undefined;
    return throttleFor(host.breaker(this.#engine.time.now()), openMs);
  }

  #newClaims(request: BeginRequest, bucket: string): SessionClaims {
    const now = this.#engine.time.now();
    // No two arrival times are equal, so the order within a bucket is the same at every instance.
    this.#lastArrivedAt = Math.max(now, this.#lastArrivedAt + ARRIVAL_STEP_MS);
    return {
      id: request.sessionId ?? this.#newSessionId(),
      host: request.host,
      bucket,
      arrivedAt: this.#lastArrivedAt,
      deadlineAt: now + (request.maxWaitMs ?? this.#engine.options().maxWaitMs),
      ...(request.hostname === undefined ? {} : { hostname: request.hostname }),
      ...(request.throttleWindowMs === undefined ? {} : { throttleWindowMs: request.throttleWindowMs }),
      ...(request.limit === undefined ? {} : { limit: request.limit }),
    };
  }

  #create(claims: SessionClaims, host: Host, requestKey: string | undefined, isAdopted: boolean): Session {
    const openMs = claims.throttleWindowMs ?? host.configured.policy.breaker.openMs;
    const now = this.#engine.time.now();
    this.#onWaiting();
    return this.#sessions.create({ claims, host, openMs, requestKey, isAdopted, now });
  }

  /** Continues a session of another instance, or of this one before a restart. A session past its deadline has ended. */
  #adopt(claims: SessionClaims): Session | undefined {
    if (this.#engine.time.now() >= claims.deadlineAt) return undefined;
    return this.#create(claims, this.#hosts.open(claims), undefined, true);
  }

  /** Never `granted`: callers of the original service expect that. */
  async #firstAnswer(session: Session): Promise<PollAnswer> {
    await this.#awaitArrival(session);
    const answer = await this.#wait(session, 0, undefined, false);
    if (answer.result !== "granted") return answer;
    const { claims, host } = session;
    return {
      result: "pending",
      session: claims,
      position: 1,
      waiters: Math.max(1, host.book.size("waiter")),
      estimatedWaitMs: undefined,
      blockedBy: undefined,
    };
  }

  /** Waits for the decision about the arrival. Throws if the session was refused. */
  async #awaitArrival(session: Session): Promise<void> {
    if (this.#mustAwaitArrival(session)) {
      const { agenda, time, options } = this.#engine;
      this.#sessions.expect(session);
      await session.awaitArrival(agenda, time.now() + options().pollIntervalMs);
    }
    if (session.refusal !== undefined) throw session.refusal;
  }

  /** Whether a first call must wait for the decision about its arrival, because the answer may be `throttled` or a refusal. */
  #mustAwaitArrival({ host, claims, isArrivalDecided }: Session): boolean {
    if (isArrivalDecided || host.isStoreDown || this.#isClosed) return false;
    return claims.limit !== undefined || !this.#isFresh(host);
  }

  /** Whether the cached state of the breaker is at most one poll interval old. */
  #isFresh({ cache }: Host): boolean {
    return this.#engine.time.now() - cache.verifiedAt < this.#engine.options().pollIntervalMs;
  }

  /** `isFetching`: this answer delivers a granted slot to the client. */
  #wait(session: Session, waitMs: number, signal: CallSignal | undefined, isFetching = true): Promise<PollAnswer> {
    if (isFetching) this.#sessions.transitions.fetch(session);
    const now = this.#engine.time.now();
    if (session.isPending && waitMs > 0 && !this.#isClosed) {
      return this.#sessions.hold(session, now + Math.min(waitMs, this.#engine.options().pollWindowMs), signal);
    }
    this.#sessions.touch(session);
    return Promise.resolve(answerOf(session, now));
  }

  #retryAfterMs(): number {
    return Math.min(MAX_RETRY_AFTER_MS, Math.max(1000, this.#sessions.transitions.drainIntervalMs ?? 0));
  }
}

/** The same `requestId` from a different bucket is a different request. */
function requestKey(host: string, bucket: string, requestId: string): string {
  return JSON.stringify([host, bucket, requestId]);
}

function throwIfLeft(signal: CallSignal | undefined): void {
  if (signal?.aborted === true) throw signal.reason;
}

const ARRIVAL_STEP_MS = 1 / 1024;
const MAX_RETRY_AFTER_MS = 30_000;
