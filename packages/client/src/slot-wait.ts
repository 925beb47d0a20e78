/**
 * One wait for a slot: a session of the service, from the first call to its end.
 *
 * A1  Ends within its wall clock, however the service behaves, with a grant, a pass of the failure policy, or an error.
 * A2  Leaves no session behind: whatever ends it without a grant, the service gets a `cancel`, in the background.
 * A3  Repeats are safe: all calls carry one `requestId`, later ones the session's token. A session that the service no
 *     longer knows is begun anew, within the same wall clock.
 */
import type { AcquireReply, FirstCall } from "@slotkeeper/protocol";
import type { Deliveries } from "./deliveries.ts";
import {
  AcquireTimeoutError,
  CapacityMismatchError,
  OverloadedError,
  RefusedError,
  ThrottledError,
  UnavailableError,
} from "./errors.ts";
import type { FailurePolicy } from "./failure-policy.ts";
import type { NamedHost } from "./host-name.ts";
import type { Pending, ResolvedOptions, WaitUntil } from "./options.ts";
import type { ServiceSlot } from "./slot.ts";
import { backoffMs, sleep } from "./timing.ts";
import { CallFailure, type Transport } from "./transport.ts";

export interface Ask {
  readonly named: NamedHost;
  /** For messages and for the failure policy. */
  readonly hostname: string;
  readonly bucket: string | undefined;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onPending: ((pending: Pending) => void) | undefined;
  readonly waitUntil: WaitUntil | undefined;
  /** Slots of a named semaphore. */
  readonly slots?: number;
  /** Now or never: ends as soon as the service says that something stands in the way. */
  readonly isNow?: boolean;
  /** Where the slot is kept by its id while it is held. */
  readonly held?: Map<string, ServiceSlot>;
  readonly traceparent?: string | undefined;
}

export interface Parts {
  readonly options: ResolvedOptions;
  readonly transport: Transport;
  readonly deliveries: Deliveries;
  readonly policy: FailurePolicy;
}

/** `limit` is absent from services of before 0.2. */
export type Granted = Extract<AcquireReply, { result: "granted" }> & { readonly limit?: number };
type PendingReply = Extract<AcquireReply, { result: "pending" }>;

/** Part of a call's timeout that the service may hold it for; the rest is for the way. */
const HELD_PART = 0.75;
/** A caller that wants to know its place does not wait a whole poll for it. */
const FIRST_PLACE_MS = 200;
const NOW_MS = 20;

export class SlotWait {
  readonly #parts: Parts;
  readonly #ask: Ask;
  readonly #startedAt = Date.now();
  readonly #spacingMs: number;
  readonly #mostAttempts: number;
  #requestId: string = crypto.randomUUID();
  #queryToken: string | undefined;
  #position: number | undefined;
  /** A call went out, and no answer has ended the session. */
  #isOpen = false;
  #attempts = 0;
  #failures = 0;
  #lastFailure: CallFailure | undefined;

  constructor(parts: Parts, ask: Ask) {
    const { maxWaitMs, maxAttempts } = parts.options;
    this.#parts = parts;
    this.#ask = ask;
    this.#spacingMs = maxWaitMs / maxAttempts;
    this.#mostAttempts = Math.max(maxAttempts, Math.ceil(ask.waitMs / this.#spacingMs));
  }

  /** A grant; or a function that gives back the failure policy's pass. */
  async result(): Promise<Granted | (() => void)> {
    const { options, policy } = this.#parts;
    this.#ask.signal?.throwIfAborted();
    const pass = policy.passAtOnce(this.#ask.hostname, options.perRequestTimeoutMs);
    if (pass !== undefined) return pass;
    try {
      for (;;) {
        const end = await this.#step();
        if (end === undefined) continue;
        if (typeof end === "function") this.#abandon();
        return end;
      }
    } catch (error) {
      this.#abandon();
      throw error;
    }
  }

  get #remainingMs(): number {
    return this.#startedAt + this.#ask.waitMs - Date.now();
  }

  async #step(): Promise<Granted | (() => void) | undefined> {
    const { signal } = this.#ask;
    signal?.throwIfAborted();
    if (this.#remainingMs <= 0 || this.#attempts >= this.#mostAttempts) throw this.#gaveUp();
    const askedAt = Date.now();
    const isShort = this.#isShort;
    this.#attempts++;
    try {
      const { reply, retryAfterMs } = await this.#call();
      this.#answered();
      if (reply.result === "granted") return reply;
      this.#read(reply);
      const nextAt = askedAt + (retryAfterMs ?? (isShort ? 0 : this.#spacingMs));
      if (reply.result === "pending") await this.#sleep(nextAt - Date.now());
      return undefined;
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      return this.#failed(error);
    }
  }

  /** The first call is short when the caller wants its place, or an answer now. */
  get #isShort(): boolean {
    return this.#ask.isNow === true || (this.#queryToken === undefined && this.#ask.onPending !== undefined);
  }

  async #call(): Promise<{ reply: AcquireReply & { limit?: number }; retryAfterMs: number | undefined }> {
    const { signal, traceparent, isNow } = this.#ask;
    const timeoutMs = Math.min(this.#parts.options.perRequestTimeoutMs, Math.max(1, this.#remainingMs));
    const isFirst = this.#queryToken === undefined || isNow === true;
    this.#isOpen = true;
    const body = isFirst ? this.#firstCall(timeoutMs * HELD_PART) : { queryToken: this.#queryToken };
    try {
      return await this.#parts.transport.call("acquire", body, { timeoutMs, signal, traceparent });
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      this.#answered();
      this.#isOpen = false;
      throw error.status === 409 ? this.#mismatch(error) : error;
    }
  }

  #firstCall(heldMs: number): FirstCall {
    const { named, bucket, slots, isNow } = this.#ask;
    const waitMs = isNow === true ? NOW_MS : this.#isShort ? Math.min(heldMs, FIRST_PLACE_MS) : heldMs;
    return {
      ...named,
      ...(bucket !== undefined && { ipBucket: bucket }),
      ...(slots !== undefined && { limit: slots, maxWaitMs: Math.max(1, this.#remainingMs) }),
      requestId: this.#requestId,
      waitMs: Math.max(1, Math.floor(waitMs)),
    };
  }

  #answered(): void {
    this.#failures = 0;
    this.#lastFailure = undefined;
    this.#parts.policy.answered();
  }

  #read(reply: Exclude<AcquireReply, { result: "granted" }>): void {
    if (reply.result === "pending") return this.#pending(reply);
    this.#isOpen = false;
    const { hostname } = this.#ask;
    switch (reply.result) {
      case "throttled": {
        const { throttleCode: status, throttleRetryAfter, reason } = reply;
        const why = status === 0 ? "by an operator" : `after status ${status}`;
        throw new ThrottledError(`Requests to "${hostname}" are paused ${why}; try again in ${throttleRetryAfter} s.`, {
          hostname,
          status,
          retryAfterMs: throttleRetryAfter * 1000,
          reason,
        });
      }
      case "overloaded":
        throw this.#overloaded(reply.retryAfter * 1000);
      case "timeout":
        if (reply.reason === "deadline") throw this.#timedOut();
        // The service forgot the session, by a restart or because no poll came for long: ask again.
        this.#requestId = crypto.randomUUID();
        this.#queryToken = undefined;
    }
  }

  #pending({ queryToken, position, waiters, estimatedWaitMs, blockedBy }: PendingReply): void {
    this.#queryToken = queryToken;
    this.#position = position;
    if (this.#ask.isNow === true && blockedBy !== undefined) throw this.#timedOut();
    try {
      this.#ask.onPending?.({ position, waiters, estimatedWaitMs, blockedBy });
    } catch {
      // A listener that throws changes nothing.
    }
  }

  async #failed(failure: CallFailure): Promise<(() => void) | undefined> {
    const { policy } = this.#parts;
    // A poll that our own deadline cut short is no failure of a service that has answered so far.
    const isCut = this.#remainingMs <= 0 && this.#queryToken !== undefined && this.#lastFailure === undefined;
    if (isCut) return undefined;
    this.#lastFailure = failure;
    this.#failures++;
    if (failure.isBusy) policy.answered();
    else policy.failed(this.#remainingMs <= 0 ? Infinity : this.#failures);
    const pass = failure.isBusy ? undefined : policy.pass(this.#ask.hostname);
    if (pass === undefined) await this.#sleep(backoffMs(this.#failures, failure.retryAfterMs));
    return pass;
  }

  #sleep(ms: number): Promise<void> {
    const bounded = Math.min(ms, Math.max(0, this.#remainingMs));
    return bounded > 0 ? sleep(bounded, { signal: this.#ask.signal }) : Promise.resolve();
  }

  /** A2. Without the session's token the same `requestId` finds it: without `waitMs` it is not granted, then it is cancelled. */
  #abandon(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { waitMs: _, ...first } = this.#firstCall(1);
    const { waitUntil, traceparent } = this.#ask;
    this.#parts.deliveries.cancel(this.#queryToken ?? first, { waitUntil, traceparent });
  }

  #gaveUp(): Error {
    const failure = this.#lastFailure;
    if (failure === undefined) return this.#timedOut();
    if (failure.isBusy) return this.#overloaded(failure.retryAfterMs ?? 1000);
    const { hostname } = this.#ask;
    const [attempts, waitedMs] = [this.#attempts, this.#waitedMs];
    const calls = attempts === 1 ? "one call" : `${attempts} calls`;
    return new UnavailableError(
      `The service at ${this.#parts.options.url} is unavailable: ${failure.message} (${calls} in ${waitedMs} ms).`,
      { hostname, attempts, waitedMs },
      failure.cause ?? failure,
    );
  }

  get #waitedMs(): number {
    return Date.now() - this.#startedAt;
  }

  #timedOut(): Error {
    const [position, waitedMs] = [this.#position, this.#waitedMs];
    const { hostname } = this.#ask;
    const place = position === undefined ? "" : ` (position ${position} in the queue)`;
    return new AcquireTimeoutError(`Waited ${waitedMs} ms for a slot of "${hostname}"${place}.`, {
      hostname,
      waitedMs,
      position,
    });
  }

  #overloaded(retryAfterMs: number): Error {
    const { hostname } = this.#ask;
    return new OverloadedError(
      `The service at ${this.#parts.options.url} takes no more waiters for "${hostname}"; try again in ${retryAfterMs / 1000} s.`,
      { hostname, retryAfterMs },
    );
  }

  #mismatch(cause: RefusedError): Error {
    const { hostname, slots = 0 } = this.#ask;
    return new CapacityMismatchError(
      `The semaphore "${hostname}" is in use with another number of slots than ${slots}.`,
      { hostname, requested: slots },
      cause,
    );
  }
}
