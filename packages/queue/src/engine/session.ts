import type { SessionClaims } from "@slotkeeper/protocol";
import type { CapacityMismatchError } from "slotkeeper";
import type { Agenda, Due } from "../agenda.ts";
import type { SessionRecord } from "../book/records.ts";
import type { Input } from "../inputs.ts";
import { ArrivalWait } from "./arrival-wait.ts";
import type { Host } from "./host.ts";
import type { Poll } from "./poll.ts";

/**
 * The states of a session at this instance. Each transition is one method of `SessionTransitions`. A session that has
 * ended never changes again.
 *
 * | from               | event                                                   | to                 |
 * |--------------------|---------------------------------------------------------|--------------------|
 * | –                  | first call, or a poll with a token of another instance  | pending            |
 * | pending            | the book has a lease for it, owned by this instance     | granted, unfetched |
 * | granted, unfetched | a poll is open or comes within `collectMs`              | granted, fetched   |
 * | granted, unfetched | `collectMs` passed: the slot goes to the next waiter    | pending            |
 * | pending            | breaker open / deadline or idle / cancel                | throttled / timeout / canceled |
 * | pending            | the named semaphore has a different capacity            | canceled and forgotten: its first call fails |
 * | pending            | another instance has taken it over                      | moved and forgotten |
 * | granted            | cancel within `cancelMs` of the grant                   | canceled           |
 * | granted, unfetched | a poll, if the store is shared                          | pending: it joins again |
 * | timeout, idle      | a poll before the deadline, if the store is shared      | forgotten; a new session joins with its claims |
 * | granted, fetched   | a repeated call, if the store is shared                 | forgotten; a new session joins with its claims |
 */
export type SessionState =
  | { readonly kind: "pending" }
  | Granted
  | { readonly kind: "throttled"; readonly code: number; readonly retryAt: number }
  | { readonly kind: "timeout"; readonly reason: string }
  | { readonly kind: "canceled" }
  | { readonly kind: "moved" };

export interface Granted {
  readonly kind: "granted";
  readonly slotToken: string;
  readonly fence: number;
  readonly grantedAt: number;
  /** In store time. */
  readonly leaseUntil: number;
  readonly isFetched: boolean;
}

/** The data of a grant for the log. */
export type Grant = Pick<Granted, "fence" | "grantedAt">;

export const PENDING: SessionState = { kind: "pending" };
export const MOVED: SessionState = { kind: "moved" };
const NO_POLLS: readonly Poll[] = [];

/** Only its own methods write its fields. `SessionTransitions` and `Sessions` decide when. */
export class Session implements Due {
  readonly host: Host;
  readonly openMs: number;
  readonly requestKey: string | undefined;
  /** The session came with a token, so another instance, or this one before a restart, has counted it. */
  readonly isAdopted: boolean;
  readonly #whenDue: (session: Session) => void;
  #claims: SessionClaims;
  #state: SessionState = PENDING;
  #isArrivalDecided = false;
  #isAnnounced = false;
  #isClosed = false;
  #ownGrant: Grant | undefined;
  #isTokenSent = false;
  #wasPolled = false;
  #arrivalWait: ArrivalWait | undefined;
  #refusal: CapacityMismatchError | undefined;
  #isAway = false;
  #isOffered = false;
  #isJoining = true;
  #lastAnswerAt: number;
  /** Usually one. An array that is replaced needs less memory than a collection that changes. */
  #polls: readonly Poll[] = NO_POLLS;
  dueAt = 0;
  agendaIndex = -1;

  constructor(init: SessionInit, whenDue: (session: Session) => void) {
    this.#claims = init.claims;
    this.host = init.host;
    this.openMs = init.openMs;
    this.requestKey = init.requestKey;
    this.isAdopted = init.isAdopted;
    this.#lastAnswerAt = init.now;
    this.#whenDue = whenDue;
  }

  /** The content of its token. */
  get claims(): SessionClaims {
    return this.#claims;
  }

  get state(): SessionState {
    return this.#state;
  }

  get isPending(): boolean {
    return this.#state.kind === "pending";
  }

  /** The arrival was decided, or the store failed. Before that it is not known whether the host accepts the session. */
  get isArrivalDecided(): boolean {
    return this.#isArrivalDecided;
  }

  /** The arrival is on its way to the store. */
  get isJoining(): boolean {
    return this.#isJoining;
  }

  /** Why the session was refused. Its first calls fail with this error. */
  get refusal(): CapacityMismatchError | undefined {
    return this.#refusal;
  }

  /** The client has been away for `collectMs`, and the book has that. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** A slot is offered to the session. Its next poll collects it. */
  get isOffered(): boolean {
    return this.#isOffered;
  }

  /** The client has the token of the session, and may use it at any instance. */
  get isTokenSent(): boolean {
    return this.#isTokenSent || this.isAdopted;
  }

  /**
   * No instance has sent a slot to the client. While the session joins, another instance may have, if the session came
   * from there, or if the client has only its token from here. A slot of a client that polls here is one that this
   * instance has just granted.
   */
  get isUndelivered(): boolean {
    const isElsewhere = this.isAdopted || (this.#isTokenSent && !this.#wasPolled);
    return !(isElsewhere && this.#isJoining);
  }

  get lastAnswerAt(): number {
    return this.#lastAnswerAt;
  }

  /** Held calls. */
  get polls(): readonly Poll[] {
    return this.#polls;
  }

  get isPolled(): boolean {
    return this.#polls.length > 0;
  }

  /** When the session was last answered, if it has no held call and the answer was at `before` or earlier. */
  awaySince(before: number): number | undefined {
    return this.isPending && !this.isPolled && !this.#isJoining && this.#lastAnswerAt <= before
      ? this.#lastAnswerAt
      : undefined;
  }

  /** The session had not ended at the time `at`. Its next token says so (END3 of `session-ends.ts`). */
  wasPendingAt(at: number): void {
    const { arrivedAt, pendingAt = arrivedAt } = this.#claims;
    if (at >= pendingAt + PENDING_STEP_MS) this.#claims = { ...this.#claims, pendingAt: at };
  }

  become(state: SessionState): void {
    this.#state = state;
    this.#isOffered = false;
  }

  setAway(isAway: boolean): void {
    this.#isAway = isAway;
  }

  setOffered(isOffered: boolean): void {
    this.#isOffered = isOffered;
  }

  setJoining(isJoining: boolean): void {
    this.#isJoining = isJoining;
  }

  /** Call before its start is reported. False: it was already reported. */
  announce(): boolean {
    const isFirst = !this.#isAnnounced;
    this.#isAnnounced = true;
    return isFirst;
  }

  /** A commit of this instance granted a slot. Kept until the grant is counted or the slot is taken back. */
  setOwnGrant(grant: Grant): void {
    this.#ownGrant = grant;
  }

  get ownGrant(): Grant | undefined {
    return this.#ownGrant;
  }

  takeOwnGrant(): Grant | undefined {
    const grant = this.#ownGrant;
    this.#ownGrant = undefined;
    return grant;
  }

  /** Call before `moved` is reported. False: it was already reported. */
  close(): boolean {
    const isFirst = !this.#isClosed;
    this.#isClosed = true;
    return isFirst;
  }

  refuse(refusal: CapacityMismatchError): void {
    this.#refusal = refusal;
  }

  answeredAt(now: number): void {
    this.#lastAnswerAt = now;
    this.#isTokenSent = true;
  }

  /** Settles when the arrival was decided, or at the time `at`. */
  awaitArrival(agenda: Agenda, at: number): Promise<void> {
    if (this.#arrivalWait === undefined) {
      this.#arrivalWait = new ArrivalWait();
      agenda.schedule(this.#arrivalWait, at);
    }
    return this.#arrivalWait.decided;
  }

  arrivalDecided(agenda: Agenda): void {
    this.#isArrivalDecided = true;
    if (this.#arrivalWait === undefined) return;
    agenda.cancel(this.#arrivalWait);
    this.#arrivalWait.onDue();
    this.#arrivalWait = undefined;
  }

  addPoll(poll: Poll): void {
    this.#wasPolled = true;
    this.#polls = this.#polls.length === 0 ? [poll] : [...this.#polls, poll];
  }

  removePoll(poll: Poll): void {
    this.#polls = this.#polls.length === 1 ? NO_POLLS : this.#polls.filter((other) => other !== poll);
  }

  onDue(): void {
    this.#whenDue(this);
  }
}

/** A token is signed again only if its time is older than this. */
const PENDING_STEP_MS = 1_000;

export interface SessionInit {
  readonly claims: SessionClaims;
  readonly host: Host;
  readonly openMs: number;
  readonly requestKey: string | undefined;
  readonly isAdopted: boolean;
  readonly now: number;
}

/** The input for the host that ends a session by cancellation or timeout, now. */
export function endOf(
  claims: SessionClaims,
  { end, at, isUndelivered }: Pick<Input & { kind: "end" }, "end" | "at" | "isUndelivered">,
): Input {
  const { id: session, bucket, arrivedAt, deadlineAt: keepUntil, pendingAt } = claims;
  return { kind: "end", session, bucket, arrivedAt, end, keepUntil, pendingAt, at, isUndelivered };
}

export type Ended = Omit<SessionRecord, "kind" | "key">;

/** Turns a recorded end into the state of a session. */
export function endState({ end, code = 0, retryAt = 0 }: Ended): SessionState {
  if (end === "throttled") return { kind: "throttled", code, retryAt };
  if (end === "canceled") return { kind: "canceled" };
  return { kind: "timeout", reason: end === "timeout" ? "deadline" : end };
}
