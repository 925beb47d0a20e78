import type { SessionClaims } from "@slotkeeper/protocol";
import type { CapacityMismatchError } from "slotkeeper";
import type { Agenda, Due } from "../agenda.ts";
import type { SessionRecord } from "../book/records.ts";
import type { Input } from "../inputs.ts";
import { ArrivalWait } from "./arrival-wait.ts";
import type { Host } from "./host.ts";
import type { Poll } from "./poll.ts";

/**
 * A session's life at this instance. Every arrow is one method of `SessionTransitions`, and a session that has ended never moves again.
 *
 * | from               | event                                                   | to                 |
 * |--------------------|---------------------------------------------------------|--------------------|
 * | –                  | first call, or a poll with a token of another instance  | pending            |
 * | pending            | the book has a lease for it, owned by this instance     | granted, unfetched |
 * | granted, unfetched | a poll is open or comes within `collectMs`              | granted, fetched   |
 * | granted, unfetched | `collectMs` passed: the slot goes to the next           | pending            |
 * | pending            | breaker open / deadline or idle / cancel                | throttled / timeout / canceled |
 * | pending            | the named semaphore has another capacity                | canceled, and forgotten: its first call fails |
 * | pending            | another instance has taken it over                      | moved, and forgotten |
 * | granted            | cancel while it is still kept                           | canceled           |
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

/** What the log says of a grant. */
export type Grant = Pick<Granted, "fence" | "grantedAt">;

export const PENDING: SessionState = { kind: "pending" };
export const MOVED: SessionState = { kind: "moved" };
export const DEADLINE: SessionState = { kind: "timeout", reason: "deadline" };
const NO_POLLS: readonly Poll[] = [];

/** Only its own methods write its fields; `SessionTransitions` and `Sessions` decide when. */
export class Session implements Due {
  readonly claims: SessionClaims;
  readonly host: Host;
  readonly openMs: number;
  readonly requestKey: string | undefined;
  /** It came by its token: another instance, or this one before a restart, has counted it. */
  readonly isAdopted: boolean;
  readonly #whenDue: (session: Session) => void;
  #state: SessionState = PENDING;
  #isArrivalDecided = false;
  #isAnnounced = false;
  #isClosed = false;
  #ownGrant: Grant | undefined;
  #isTokenSent = false;
  #arrivalWait: ArrivalWait | undefined;
  #refusal: CapacityMismatchError | undefined;
  #isAway = false;
  #isOffered = false;
  #isJoining = true;
  #lastAnswerAt: number;
  /** One, mostly: an array that is replaced is smaller than any collection that changes. */
  #polls: readonly Poll[] = NO_POLLS;
  dueAt = 0;
  agendaIndex = -1;

  constructor(init: SessionInit, whenDue: (session: Session) => void) {
    this.claims = init.claims;
    this.host = init.host;
    this.openMs = init.openMs;
    this.requestKey = init.requestKey;
    this.isAdopted = init.isAdopted;
    this.#lastAnswerAt = init.now;
    this.#whenDue = whenDue;
  }

  get state(): SessionState {
    return this.#state;
  }

  get isPending(): boolean {
    return this.#state.kind === "pending";
  }

  /** Its arrival was decided, or the store failed to: before that it is not known whether the host takes callers at all. */
  get isArrivalDecided(): boolean {
    return this.#isArrivalDecided;
  }

  /** Its arrival is on its way to the store. */
  get isJoining(): boolean {
    return this.#isJoining;
  }

  /** Why it was not let in: what its first calls fail with. */
  get refusal(): CapacityMismatchError | undefined {
    return this.#refusal;
  }

  /** Its client has been away for `collectMs`, and the book says so. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** A slot is set aside for it: its next poll collects it. */
  get isOffered(): boolean {
    return this.#isOffered;
  }

  /** Its client has its token, and may ask with it at any instance. */
  get isTokenSent(): boolean {
    return this.#isTokenSent || this.isAdopted;
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

  /** When it was last answered, if no call of it is held and that was at `before` or earlier. */
  awaySince(before: number): number | undefined {
    return this.isPending && !this.isPolled && !this.#isJoining && this.#lastAnswerAt <= before
      ? this.#lastAnswerAt
      : undefined;
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

  /** Its start is about to be reported. False: it was reported before. */
  announce(): boolean {
    const isFirst = !this.#isAnnounced;
    this.#isAnnounced = true;
    return isFirst;
  }

  /** A commit of this instance has granted it a slot. Until that is counted, or the slot is taken back. */
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

  /** That it is over here, and counted elsewhere, is about to be reported. False: it was reported before. */
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

  /** Settles when the arrival was decided, at the latest at `at`. */
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
    this.#polls = this.#polls.length === 0 ? [poll] : [...this.#polls, poll];
  }

  removePoll(poll: Poll): void {
    this.#polls = this.#polls.length === 1 ? NO_POLLS : this.#polls.filter((other) => other !== poll);
  }

  onDue(): void {
    this.#whenDue(this);
  }
}

export interface SessionInit {
  readonly claims: SessionClaims;
  readonly host: Host;
  readonly openMs: number;
  readonly requestKey: string | undefined;
  readonly isAdopted: boolean;
  readonly now: number;
}

/** Its client, or its time, ends it: what is sent to its host. */
export function endOf(claims: SessionClaims, end: "timeout" | "canceled"): Input {
  const { id: session, bucket, arrivedAt, deadlineAt: keepUntil } = claims;
  return { kind: "end", session, bucket, arrivedAt, end, keepUntil };
}

export type Ended = Omit<SessionRecord, "kind" | "key">;

/** A stored end as the answer to its client. */
export function endState({ end, code = 0, retryAt = 0 }: Ended): SessionState {
  if (end === "throttled") return { kind: "throttled", code, retryAt };
  if (end === "canceled") return { kind: "canceled" };
  return { kind: "timeout", reason: end === "timeout" ? "deadline" : end };
}
