import type { Demand, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { Due } from "slotkeeper/parts";
import type { LeaseRecord, WaiterRecord } from "../book/records.ts";
import type { Input, Joining } from "../inputs.ts";
import type { Host } from "./host.ts";

const NO_CALLS: readonly Call[] = [];
/** A token is signed again only if its time is older than this. */
const PENDING_STEP_MS = 1_000;

/**
 * A session at this instance, exactly while it waits here, its arrival is on its way, or a lease made here is
 * undelivered. Everything else about the session is in the book of its host. Only `Sessions` changes an entry.
 */
export class Entry implements Due {
  readonly host: Host;
  readonly #whenDue: (entry: Entry) => void;
  #claims: SessionClaims;
  /** Usually one. An array that is replaced needs less memory than a collection that changes. */
  #calls: readonly Call[] = NO_CALLS;
  /** When a call was last answered, or its caller left. Undefined: the client does not have the token yet. */
  lastAnswerAt: number | undefined;
  /** The fence of a lease that a commit of this instance made and that no call has taken yet. */
  undelivered: number | undefined;
  /** The number of arrivals that are on their way. */
  joins = 0;
  dueAt = 0;
  agendaAt = -1;

  constructor(host: Host, claims: SessionClaims, whenDue: (entry: Entry) => void) {
    this.host = host;
    this.#claims = claims;
    this.#whenDue = whenDue;
  }

  get id(): string {
    return this.#claims.id;
  }

  /** The content of its token. */
  get claims(): SessionClaims {
    return this.#claims;
  }

  get calls(): readonly Call[] {
    return this.#calls;
  }

  /** A call is open that takes a slot. */
  get isPolled(): boolean {
    return this.#calls.some(({ isFirst }) => !isFirst);
  }

  addCall(call: Call): void {
    this.#calls = this.#calls.length === 0 ? [call] : [...this.#calls, call];
  }

  removeCall(call: Call): void {
    this.#calls = this.#calls.length === 1 ? NO_CALLS : this.#calls.filter((other) => other !== call);
  }

  /** A repeated first call continues the session of the book, with its first arrival. */
  follow(record: WaiterRecord | LeaseRecord): void {
    const { arrivedAt, deadlineAt } = this.#claims;
    const first = record.kind === "waiter" ? record.arrivedAt : Math.min(arrivedAt, record.grantedAt);
    const until = record.kind === "waiter" ? record.deadlineAt : record.keepUntil;
    if (first !== arrivedAt || until !== deadlineAt)
      this.#claims = { ...this.#claims, arrivedAt: first, deadlineAt: until };
  }

  /** A call has the token of the session: it knows more than a first call that repeats it with other demands. */
  continueAs(claims: SessionClaims): void {
    this.#claims = claims;
  }

  /** The session had not ended at the time `at`. Its next token says so (END3 of `standing.ts`). */
  wasPendingAt(at: number): void {
    const { arrivedAt, pendingAt = arrivedAt } = this.#claims;
    if (at >= pendingAt + PENDING_STEP_MS) this.#claims = { ...this.#claims, pendingAt: at };
  }

  due(): void {
    this.#whenDue(this);
  }
}

/** The part of an `arrive` or `return` that describes the session. */
export function joining(
  host: Host,
  { id, bucket, arrivedAt, deadlineAt, throttleWindowMs, demand }: SessionClaims,
): Joining {
  const { configured } = host;
  const openMs = throttleWindowMs ?? configured.policy.breaker.openMs;
  return { session: id, bucket, weight: configured.weightOf(bucket), arrivedAt, deadlineAt, openMs, demand };
}

/** The input that ends a session. `at`: when the client called, or the session timed out. */
export function endOf(claims: SessionClaims, end: "timeout" | "canceled", at: number): Input {
  const { id: session, bucket, arrivedAt, deadlineAt: keepUntil, pendingAt } = claims;
  return { kind: "end", session, bucket, arrivedAt, end, keepUntil, pendingAt, at };
}

/**
 * Reports that a caller has left: an `AbortSignal`, or a smaller object of the server. Ten thousand held calls need ten
 * thousand of these.
 */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface CallInit {
  /** What the call asks for: another call of the same session may have asked for something else. */
  readonly demand: Demand | undefined;
  readonly cameAt: number;
  /** How many calls of the store its host had sent (`HostCache.sent`). */
  readonly cameAfter: number;
  /** When its window ends. The timer of the entry includes this time, so a held call needs no timer of its own. */
  readonly until: number;
  /** A first call that does not wait for a slot. It is never `granted`, as callers of the original service expect. */
  readonly isFirst: boolean;
  readonly signal: CallSignal | undefined;
}

/** One held call. It is answered once: when its session changes, when its window ends, or when its caller leaves. */
export class Call {
  readonly #entry: Entry;
  readonly #signal: CallSignal | undefined;
  readonly #onLeft: (entry: Entry) => void;
  #resolve!: (answer: PollAnswer) => void;
  #reject!: (reason: unknown) => void;
  readonly demand: Demand | undefined;
  readonly cameAt: number;
  readonly cameAfter: number;
  readonly until: number;
  readonly isFirst: boolean;
  readonly answered: Promise<PollAnswer>;

  constructor(entry: Entry, init: CallInit, onLeft: (entry: Entry) => void) {
    const { demand, cameAt, cameAfter, until, isFirst, signal } = init;
    this.#entry = entry;
    this.#signal = signal;
    this.#onLeft = onLeft;
    this.demand = demand;
    this.cameAt = cameAt;
    this.cameAfter = cameAfter;
    this.until = until;
    this.isFirst = isFirst;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    entry.addCall(this);
    signal?.addEventListener("abort", this.#leave);
  }

  /** Its window is over. A call that does not wait is always due, even if the store's clock was set back. */
  isDue(now: number): boolean {
    return this.until <= Math.max(now, this.cameAt);
  }

  answer(answer: PollAnswer): void {
    this.#close();
    this.#resolve(answer);
  }

  fail(reason: unknown): void {
    this.#close();
    this.#reject(reason);
  }

  readonly #leave = (): void => {
    this.fail(this.#signal?.reason);
    this.#onLeft(this.#entry);
  };

  #close(): void {
    this.#entry.removeCall(this);
    this.#signal?.removeEventListener("abort", this.#leave);
  }
}
