import {
  type BeginAnswer,
  type CancelResult,
  type Demand,
  demandOf,
  differenceOf,
  LIMITS,
  type PollAnswer,
  SEMAPHORE_PREFIX,
  type SessionClaims,
} from "@slotkeeper/protocol";
import { throttleFor } from "../book/breaker.ts";
import { otherDemand, type Standing, standingOf } from "../book/standing.ts";
import { DEADLINE, DemandMismatchError, endAnswer, throttledAnswer } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { type CallSignal, type Entry, endOf } from "./entry.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";
import type { Sessions } from "./sessions.ts";

/** No two arrival times of an instance are equal, so the order within a line is the same at every instance. */
const ARRIVAL_STEP_MS = 1 / 1024;
const MAX_RETRY_AFTER_MS = 30_000;
const UNKNOWN: Standing = { kind: "unknown", isBegun: false };

/** The first call of a session, for `FairQueue.begin`. A wrong field is a `TypeError`. */
export interface BeginRequest extends Demand {
  /** The host's key. */
  readonly host: string;
  readonly hostname?: string | undefined;
  readonly bucket?: string | undefined;
  /** Calls with the same id get the same session, until its deadline or while it has its slot. Later the id begins another. */
  readonly requestId?: string | undefined;
  /**
   * An id for the session, chosen by the caller, so that every instance uses the same one. Calls with the same id get
   * the same session.
   */
  readonly sessionId?: string | undefined;
  /** How long the call waits for a slot. Without it, the call does not wait and is never `granted`. */
  readonly waitMs?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly throttleWindowMs?: number | undefined;
  /** The capacity of a named semaphore. */
  readonly limit?: number | undefined;
  readonly signal?: CallSignal | undefined;
}

/** The calls about sessions: first calls, polls and cancellations. */
export class Calls {
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts: Hosts;
  readonly #heartbeat: Heartbeat;
  #lastArrivedAt = 0;

  constructor(hosts: Hosts, heartbeat: Heartbeat) {
    this.#engine = hosts.engine;
    this.#sessions = hosts.sessions;
    this.#hosts = hosts;
    this.#heartbeat = heartbeat;
  }

  async begin(request: BeginRequest): Promise<BeginAnswer> {
    checkRequest(request);
    throwIfLeft(request.signal);
    const id = nameOf(request);
    const found = id === undefined ? undefined : this.#sessions.entries.find(id);
    const other = found && differenceOf(found.claims.demand, demandOf(request));
    if (other !== undefined) throw new DemandMismatchError(other);
    const begun = found ?? this.#begin(request, id);
    if ("result" in begun) return begun;
    const { waitMs = 0, signal } = request;
    return this.#hold(begun, waitMs, waitMs <= 0, signal);
  }

  async poll(claims: SessionClaims, waitMs: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    throwIfLeft(signal);
    const found = this.#sessions.entries.find(claims.id) ?? this.#continue(claims);
    if ("result" in found) return found;
    const { deadlineAt } = found.claims;
    // The same id was used again, for a later session.
    if (claims.deadlineAt < deadlineAt && claims.deadlineAt <= this.#engine.time.now()) return DEADLINE;
    // A first call with other demands is on its way, and is about to be refused.
    if (differenceOf(found.claims.demand, claims.demand) !== undefined) found.continueAs(claims);
    return this.#hold(found, waitMs, false, signal);
  }

  /** Sends the cancellation to the host, and answers from what is known here. The decision goes by the time of this call. */
  cancel(claims: SessionClaims): CancelResult {
    const { time, instance, options } = this.#engine;
    const now = time.now();
    const entry = this.#sessions.entries.find(claims.id);
    const host = entry?.host ?? this.#hosts.open(claims);
    const standing = this.#standing(host, claims.id, now);
    if (standing.kind === "ended") return "noop";
    const lease = standing.kind === "held" && standing.lease.fence !== entry?.undelivered ? standing.lease : undefined;
    if (lease !== undefined && now - lease.grantedAt > options.cancelMs) return "noop";
    if (entry === undefined && standing.kind === "unknown" && now >= claims.deadlineAt) return "gone";
    host.send(endOf(entry?.claims ?? claims, "canceled", now));
    return entry !== undefined || lease?.instance === instance ? "canceled" : "gone";
  }

  /** The state of the session in the committed book, as far as it is known without a call to the store. */
  #standing({ book, cache }: Host, id: string, now: number): Standing {
    return cache.isOpen ? UNKNOWN : standingOf(book, id, now);
  }

  /** Creates a session, or returns the answer if none is created. */
  #begin(request: BeginRequest, id: string | undefined): Entry | BeginAnswer {
    const bucket = request.bucket ?? "";
    if (!this.#sessions.entries.quota.admits(bucket, this.#engine.options)) {
      this.#engine.emit({ type: "overloaded", host: request.host, bucket });
      return { result: "overloaded", retryAfterMs: this.#retryAfterMs() };
    }
    const host = this.#hosts.open(request);
    const now = this.#engine.time.now();
    const standing = id === undefined ? UNKNOWN : this.#standing(host, id, now);
    if (standing.kind === "ended") return endAnswer(standing.record, now);
    const other = otherDemand(standing, demandOf(request), now);
    if (other !== undefined) throw new DemandMismatchError(other);
    const throttled = standing.kind === "unknown" ? this.#knownThrottle(host, request, now) : undefined;
    if (throttled === undefined) return this.#open(this.#newClaims(request, bucket, id), host, false);
    this.#engine.emit({ type: "throttled", host: host.key, bucket, session: undefined, code: throttled.code });
    return throttledAnswer(throttled.code, throttled.retryInMs);
  }

  /** Layer 1, for a caller without a session. Uses the cached breaker if the store confirmed it recently. */
  #knownThrottle(host: Host, { throttleWindowMs }: BeginRequest, now: number): ReturnType<typeof throttleFor> {
    if (!host.isFresh || host.cache.isOpen) return undefined;
    return throttleFor(host.breaker(now), throttleWindowMs ?? host.configured.policy.breaker.openMs);
  }

  /**
   * Continues a session of another instance, of this one before a restart, or one that has its slot. After its deadline
   * the book is read once, for a slot that the session still has.
   */
  #continue(claims: SessionClaims): Entry | PollAnswer {
    const now = this.#engine.time.now();
    const host = this.#hosts.open(claims);
    const standing = this.#standing(host, claims.id, now);
    return standing.kind === "ended" ? endAnswer(standing.record, now) : this.#open(claims, host, true);
  }

  #newClaims(request: BeginRequest, bucket: string, id: string | undefined): SessionClaims {
    const now = this.#engine.time.now();
    const demand = demandOf(request);
    this.#lastArrivedAt = Math.max(now, this.#lastArrivedAt + ARRIVAL_STEP_MS);
    return {
      id: id ?? this.#engine.newSessionId(),
      host: request.host,
      bucket,
      arrivedAt: this.#lastArrivedAt,
      deadlineAt: now + (request.maxWaitMs ?? this.#engine.options.maxWaitMs),
      ...(request.hostname === undefined ? {} : { hostname: request.hostname }),
      ...(request.throttleWindowMs === undefined ? {} : { throttleWindowMs: request.throttleWindowMs }),
      ...(request.limit === undefined ? {} : { limit: request.limit }),
      ...(demand === undefined ? {} : { demand }),
    };
  }

  #open(claims: SessionClaims, host: Host, isReturning: boolean): Entry {
    this.#heartbeat.quicken();
    return this.#sessions.open(claims, host, isReturning);
  }

  #hold(entry: Entry, waitMs: number, isFirst: boolean, signal: CallSignal | undefined): Promise<PollAnswer> {
    const { pollWindowMs } = this.#engine.options;
    return this.#sessions.hold(entry, Math.min(waitMs, pollWindowMs), isFirst, signal);
  }

  #retryAfterMs(): number {
    return Math.min(MAX_RETRY_AFTER_MS, Math.max(1000, this.#sessions.entries.drainIntervalMs ?? 0));
  }
}

/**
 * Calls with the same `sessionId`, or with the same `requestId` of the same host and bucket, get the same session.
 * Undefined: the call begins a session of its own.
 */
function nameOf({ sessionId, requestId, host, bucket = "" }: BeginRequest): string | undefined {
  return sessionId ?? (requestId === undefined ? undefined : JSON.stringify([host, bucket, requestId]));
}

function throwIfLeft(signal: CallSignal | undefined): void {
  if (signal?.aborted === true) throw signal.reason;
}

/** Reports all wrong fields at once. For calls over HTTP, the schema has checked the fields before. */
function checkRequest(request: BeginRequest): void {
  const {
    host,
    hostname,
    bucket,
    requestId,
    waitMs,
    maxWaitMs,
    throttleWindowMs,
    limit,
    cost = {},
    keys = {},
    class: named = "",
  } = request;
  const wrong: [field: keyof BeginRequest, expected: string][] = [];
  if (!isText(host, hostnameLength) || host === "") wrong.push(["host", `a name of 1 to ${hostnameLength} characters`]);
  if (!isText(bucket ?? "", bucketLength)) wrong.push(["bucket", `a string of at most ${bucketLength} characters`]);
  if (!isText(requestId ?? "", requestIdLength))
    wrong.push(["requestId", `a string of at most ${requestIdLength} characters`]);
  if (!isDuration(waitMs)) wrong.push(["waitMs", "a number from 0 up"]);
  if (!isDuration(maxWaitMs)) wrong.push(["maxWaitMs", "a number from 0 up"]);
  if (!isDuration(throttleWindowMs)) wrong.push(["throttleWindowMs", "a number from 0 up"]);
  if (!Object.values(cost).every((amount) => Number.isFinite(amount) && amount >= 0))
    wrong.push(["cost", "an object of numbers from 0 up"]);
  if (!Object.values(keys).every((value) => isText(value, keyValueLength)))
    wrong.push(["keys", `an object of strings of at most ${keyValueLength} characters`]);
  if (!isText(named, classLength)) wrong.push(["class", `a string of at most ${classLength} characters`]);
  for (const field of ["width", "limit"] as const) {
    const { [field]: slots = 1 } = request;
    if (!Number.isInteger(slots) || slots < 1) wrong.push([field, "a whole number from 1 up"]);
    else if (slots > LIMITS.slots) wrong.push([field, `at most ${LIMITS.slots}`]);
  }
  if (limit !== undefined && hostname?.startsWith(SEMAPHORE_PREFIX) !== true)
    wrong.push(["limit", `absent for a host not named "${SEMAPHORE_PREFIX}…"`]);
  if (wrong.length === 0) return;
  const problems = wrong.map(
    ([field, expected]) => `Expected \`${field}\` to be ${expected}, got ${JSON.stringify(request[field])}`,
  );
  throw new TypeError(problems.join("\n"));
}

const { hostnameLength, bucketLength, requestIdLength, keyValueLength, classLength } = LIMITS;

function isDuration(value: number | undefined): boolean {
  return value === undefined || value >= 0;
}

/** Counts code points, as the schema of the HTTP contract does. */
function isText(value: unknown, most: number): boolean {
  return typeof value === "string" && (value.length <= most || Array.from(value).length <= most);
}
