import {
  type Demand,
  type DemandDifference,
  differenceOf,
  type PollAnswer,
  type SessionClaims,
} from "@slotkeeper/protocol";
import { CapacityMismatchError } from "slotkeeper";
import { type Standing, standingOf } from "../book/standing.ts";
import type { Note, Outcome } from "../inputs.ts";
import {
  answerOf,
  DEADLINE,
  DemandMismatchError,
  FORGOTTEN,
  ImpossibleRequestError,
  pendingAnswer,
} from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { SILENT_MS } from "./cycle-waits.ts";
import { Entries } from "./entries.ts";
import { Call, type CallSignal, Entry, endOf, joining } from "./entry.ts";
import type { Host } from "./host.ts";

/**
 * How long an instance of a fleet waits before it records an absent client in the book. On busy machines the time
 * between two polls is often longer than `collectMs`, and each commit costs all instances.
 * Until then only this instance knows of the absence: its decisions skip the client, and a slot that another instance
 * offers goes to the next waiter immediately.
 */
const UNSENT_MS = 5_000;

/**
 * The sessions of this instance. The book is the only truth about them: this class sends to the host what clients do,
 * and answers their held calls from the committed book.
 *
 * SESSIONS1 No answer is read from a decision in progress. A call that comes, or whose window ends, while a commit is on
 *   its way is answered with that commit, or after `SILENT_MS` as in an outage.
 * SESSIONS2 A slot is answered only by the commit that made its lease, or after an `arrive`: in a shared store the slot
 *   may have ended at another instance, and an `arrive` is decided on a book that was compared with the store. A call
 *   that came after that comparison was sent needs another one.
 * SESSIONS3 A held call that reaches the deadline of its session is answered with `timeout`. A lease that is being
 *   committed then is given back.
 * SESSIONS4 If no call takes a lease within `collectMs` of the commit that made it, its slot goes to the next waiter. A
 *   slot that was found by a repeated call is never taken back: its client may use it.
 */
export class Sessions {
  readonly #engine: EngineContext;
  readonly entries = new Entries();
  #isClosed = false;
  /** The number of sessions that this instance has ended at their deadline or as idle. */
  #expired = 0;
  /** For decisions. They are functions of this class, so that a decision creates no closures. See `DecideContext`. */
  readonly isPolledHere = (id: string): boolean => this.entries.find(id)?.isPolled === true;
  readonly isUndelivered = (id: string, fence: number): boolean => this.entries.find(id)?.undelivered === fence;
  readonly isTokenSent = (id: string): boolean => this.entries.find(id)?.lastAnswerAt !== undefined;
  readonly awayHere = (id: string): number | undefined => {
    const { time, options } = this.#engine;
    const { calls, joins = 1, lastAnswerAt } = this.entries.find(id) ?? {};
    if (joins > 0 || calls?.length !== 0 || lastAnswerAt === undefined) return undefined;
    return lastAnswerAt <= time.now() - options.collectMs ? lastAnswerAt : undefined;
  };

  constructor(engine: EngineContext) {
    this.#engine = engine;
  }

  get expired(): number {
    return this.#expired;
  }

  /** Creates the entry of a session and sends its arrival. The caller must call `hold` next. */
  open(claims: SessionClaims, host: Host, isReturning: boolean): Entry {
    const entry = new Entry(host, claims, this.#onDue);
    this.entries.add(entry);
    this.#join(entry, isReturning);
    return entry;
  }

  /** Holds a call until the state of the session changes, at most for `waitMs`. */
  hold(entry: Entry, waitMs: number, isFirst: boolean, signal: CallSignal | undefined): Promise<PollAnswer> {
    const { host, id, claims, joins, undelivered } = entry;
    const cameAt = this.#engine.time.now();
    const isLate = cameAt >= claims.deadlineAt;
    const until = isLate || this.#isClosed ? cameAt : Math.min(cameAt + waitMs, claims.deadlineAt);
    const call = new Call(
      entry,
      { demand: claims.demand, cameAt, cameAfter: host.cache.sent, until, isFirst, signal },
      this.#left,
    );
    if (joins === 0 && (isLate || (undelivered !== undefined && !isFirst))) this.#join(entry, true);
    else if (host.book.get("waiter", id)?.awayAt !== undefined)
      host.send({ kind: "client", session: id, awayAt: undefined });
    if (!isFirst && host.book.get("offer", id) !== undefined) host.cycle.wake();
    this.answerDue(entry);
    return call.answered;
  }

  /** A commit of this instance has granted the slot. */
  granted({ session, fence }: Note & { kind: "granted" }): void {
    const entry = this.entries.find(session);
    if (entry !== undefined) entry.undelivered = fence;
  }

  /** The committed state of the session may have changed. */
  changed(id: string): void {
    const entry = this.entries.find(id);
    if (entry !== undefined) this.#follow(entry, false);
  }

  /** Answers the calls whose window is over, if the committed book can answer them now. Otherwise they wait for it. */
  answerDue(entry: Entry): void {
    if (!this.entries.has(entry)) return;
    const { host } = entry;
    const now = this.#engine.time.now();
    for (const call of entry.calls) {
      if (!call.isDue(now)) continue;
      const isSilent = now >= call.until + SILENT_MS || host.isStoreDown;
      if (isSilent || this.#isClosed || this.#isAnswerable(entry, call)) {
        call.answer(pendingAnswer(entry, now, isSilent));
        entry.lastAnswerAt = now;
      } else host.awaitCommit(entry);
    }
    this.#reschedule(entry, now);
  }

  /** The store does not answer. Calls that wait for it get the answer of an outage. */
  storeFailed(host: Host): void {
    for (const entry of Array.from(host.entries)) if (entry.calls.length > 0) this.answerDue(entry);
  }

  /** Answers every held call, and holds none any more. */
  close(): void {
    this.#isClosed = true;
    const now = this.#engine.time.now();
    for (const entry of this.entries.values()) this.#answerAll(entry, pendingAnswer(entry, now));
  }

  /**
   * A first call that does not wait need not know the decision about its arrival, unless it may be a refusal: for a
   * semaphore, for several slots, a cost or keys, for a host that requires keys, or if the cached breaker is too old. An
   * offer is collected first.
   */
  #isAnswerable({ host, id, joins, claims }: Entry, { isFirst }: Call): boolean {
    if (host.cache.isOpen) return false;
    const isPlain = claims.limit === undefined && claims.demand === undefined && !host.requiresKeys;
    if (isFirst) return joins === 0 || (isPlain && host.isFresh);
    return joins === 0 && host.book.get("offer", id) === undefined;
  }

  #join(entry: Entry, isReturning: boolean): void {
    const { host, claims } = entry;
    const { limit, pendingAt } = claims;
    entry.joins++;
    const { session, bucket, weight, arrivedAt, deadlineAt, openMs, demand } = joining(host, claims);
    // A literal, because it is created for every session.
    host.send(
      {
        kind: "arrive",
        limit,
        isReturning,
        session,
        bucket,
        weight,
        arrivedAt,
        deadlineAt,
        openMs,
        demand,
        pendingAt,
      },
      (outcome) => this.#joined(entry, demand, outcome),
    );
  }

  #joined(entry: Entry, demand: Demand | undefined, outcome: Outcome): void {
    entry.joins--;
    if (!this.entries.has(entry)) return;
    if (outcome.kind === "mismatch") this.#refuse(entry, this.#mismatch(entry, outcome.capacity));
    else if (outcome.kind === "impossible") this.#refuse(entry, new ImpossibleRequestError(outcome));
    else if (outcome.kind === "other-demands") this.#refuseDemand(entry, demand, outcome);
    else if (outcome.kind === "forgotten") this.#finish(entry, FORGOTTEN);
    else this.#follow(entry, true);
  }

  /** The session has not begun. */
  #refuse(entry: Entry, refusal: Error): void {
    for (const call of entry.calls) call.fail(refusal);
    this.#drop(entry);
  }

  /** The session exists with other demands. A call that came with its token asks for those, and continues it. */
  #refuseDemand(entry: Entry, refused: Demand | undefined, other: DemandDifference): void {
    const isRefused = ({ demand }: Call) => differenceOf(demand, refused) === undefined;
    for (const call of entry.calls) if (isRefused(call)) call.fail(new DemandMismatchError(other));
    if (entry.calls.length === 0) this.#drop(entry);
    else this.#join(entry, true);
  }

  #mismatch({ host, claims }: Entry, capacity: number): Error {
    const semaphore = host.hostname ?? host.key;
    return new CapacityMismatchError({ semaphore, capacity, requested: claims.limit ?? capacity });
  }

  /** `isCompared`: this follows an `arrive`. While one is on its way, the book may have an old state. */
  #follow(entry: Entry, isCompared: boolean): void {
    if (this.#isClosed) return;
    const { host, id } = entry;
    const now = this.#engine.time.now();
    const standing = standingOf(host.book, id, now);
    // The slot has ended, or another instance has delivered it.
    if (standing.kind !== "held" || standing.lease.instance !== this.#engine.instance) entry.undelivered = undefined;
    if (entry.joins > 0) return;
    if (standing.kind === "held") this.#followHeld(entry, standing, isCompared, now);
    else if (standing.kind === "ended") this.#finish(entry, answerOf(standing, entry, now));
    else if (standing.kind === "waiting") this.#followWaiting(entry, standing, isCompared, now);
    // The book dropped the session because this instance was considered dead, or the store lost its last commits.
    else if (now < entry.claims.deadlineAt) this.#join(entry, true);
    else this.#giveUp(entry);
  }

  #followHeld(entry: Entry, standing: Standing & { kind: "held" }, isCompared: boolean, now: number): void {
    const { lease } = standing;
    const { deadlineAt } = entry.claims;
    const isOwn = entry.undelivered === lease.fence;
    // The slot of a later session with the same id.
    if (now >= deadlineAt && lease.keepUntil > deadlineAt) this.#finish(entry, DEADLINE);
    else if (isOwn && !entry.isPolled) this.#uncollected(entry, lease.keepUntil, now);
    else {
      if (isOwn || isCompared) this.#deliver(entry, standing, now);
      if (entry.calls.length > 0) this.#join(entry, true);
      else this.#drop(entry);
    }
  }

  /** SESSIONS2. */
  #deliver(entry: Entry, standing: Standing & { kind: "held" }, now: number): void {
    const { store } = this.#engine;
    const compared = store.isShared ? entry.host.cache.compared : Number.POSITIVE_INFINITY;
    entry.follow(standing.lease);
    for (const call of entry.calls) {
      if (call.isFirst) call.answer(pendingAnswer(entry, now));
      else if (call.cameAfter < compared) {
        entry.undelivered = undefined;
        call.answer(answerOf(standing, entry, now));
      }
    }
  }

  /** The client left between the decision and its commit. */
  #uncollected(entry: Entry, deadlineAt: number, now: number): void {
    if (now >= deadlineAt) this.#giveBack(entry);
    else this.answerDue(entry);
  }

  #followWaiting(entry: Entry, standing: Standing & { kind: "waiting" }, isCompared: boolean, now: number): void {
    const { waiter, offer } = standing;
    // Another instance has the session. A client that still waits here gets `pending`, so that it polls again.
    if (waiter.instance !== this.#engine.instance) this.#finish(entry, answerOf(standing, entry, now));
    else {
      if (isCompared) entry.follow(waiter);
      if (now >= waiter.deadlineAt && isCompared) this.#expire(entry);
      // The client can take the offered slot now, or is known to be away.
      else if (offer !== undefined && (entry.isPolled || this.awayHere(entry.id) !== undefined))
        entry.host.cycle.wake();
      this.answerDue(entry);
    }
  }

  readonly #onDue = (entry: Entry): void => {
    const { calls, undelivered, joins, claims, lastAnswerAt = 0 } = entry;
    const now = this.#engine.time.now();
    const isLate = calls.some(({ cameAt }) => cameAt >= claims.deadlineAt);
    if (now >= claims.deadlineAt && !isLate) this.#expire(entry);
    else if (calls.length > 0) this.answerDue(entry);
    else if (undelivered !== undefined) this.#giveBack(entry);
    // Its arrival is on its way. `#joined` sets the next timer.
    else if (joins > 0) return;
    else if (now >= lastAnswerAt + this.#engine.options.idleMs) this.#sendEnd(entry);
    else {
      entry.host.send({ kind: "client", session: entry.id, awayAt: lastAnswerAt });
      this.#engine.agenda.schedule(entry, this.#idleAt(entry));
    }
  };

  /** SESSIONS3. The counted end follows: from the input, or from the arrival that is on its way. */
  #expire(entry: Entry): void {
    this.#answerAll(entry, DEADLINE);
    if (entry.undelivered !== undefined) this.#giveBack(entry);
    else if (entry.joins === 0) this.#sendEnd(entry);
  }

  #sendEnd(entry: Entry): void {
    this.#expired++;
    entry.host.send(endOf(entry.claims, "timeout", this.#engine.time.now()), () => {
      if (this.entries.has(entry)) this.#follow(entry, false);
    });
  }

  /** The book does not have the session, and its deadline has passed. A late call only asked for its slot. */
  #giveUp(entry: Entry): void {
    const isLate = entry.calls.some(({ cameAt }) => cameAt >= entry.claims.deadlineAt);
    if (!isLate) entry.host.send(endOf(entry.claims, "timeout", this.#engine.time.now()));
    this.#finish(entry, DEADLINE);
  }

  /** SESSIONS4. */
  #giveBack(entry: Entry): void {
    const { host, claims, undelivered } = entry;
    if (undelivered === undefined) return;
    const awayAt = this.#engine.time.now() - this.#engine.options.collectMs;
    host.send({ kind: "return", fence: undelivered, awayAt, ...joining(host, claims) }, () => {
      if (!this.entries.has(entry)) return;
      this.#follow(entry, false);
      this.#endReturned(entry);
    });
  }

  /** The session returned to its place, and its deadline passed before the commit was answered. */
  #endReturned(entry: Entry): void {
    const now = this.#engine.time.now();
    const isWaiting = this.entries.has(entry) && entry.undelivered === undefined && entry.joins === 0;
    if (isWaiting && now >= entry.claims.deadlineAt) this.#sendEnd(entry);
  }

  readonly #left = (entry: Entry): void => {
    entry.lastAnswerAt = this.#engine.time.now();
    if (this.entries.has(entry)) this.#reschedule(entry, entry.lastAnswerAt);
  };

  #answerAll(entry: Entry, answer: PollAnswer): void {
    if (entry.calls.length === 0) return;
    for (const call of entry.calls) call.answer(answer);
    entry.lastAnswerAt = this.#engine.time.now();
  }

  /** The session does not wait here any more. */
  #finish(entry: Entry, answer: PollAnswer): void {
    this.#answerAll(entry, answer);
    this.#drop(entry);
  }

  #drop(entry: Entry): void {
    const { agenda, time } = this.#engine;
    agenda.cancel(entry);
    this.entries.drop(entry, time.now());
  }

  /**
   * Sets the next timer: the deadline, the end of a call's window, or the time at which a call has waited too long for
   * the store. Without a call: when the lease is taken back, or the client counts as away, then as idle.
   */
  #reschedule(entry: Entry, now: number): void {
    const { claims, calls, undelivered } = entry;
    const { collectMs } = this.#engine.options;
    const isOver = now >= claims.deadlineAt;
    // Its end is on its way.
    if (this.#isClosed || (isOver && calls.length === 0)) return;
    let dueAt = isOver ? Number.POSITIVE_INFINITY : claims.deadlineAt;
    for (const { until } of calls) dueAt = Math.min(dueAt, until > now ? until : until + SILENT_MS);
    if (calls.length === 0) dueAt = Math.min(dueAt, undelivered === undefined ? this.#awayAt(entry) : now + collectMs);
    this.#engine.agenda.schedule(entry, dueAt);
  }

  /** When the absence of the client is recorded in the book, or the idle time ends. */
  #awayAt(entry: Entry): number {
    const { host, id, lastAnswerAt = 0 } = entry;
    if (host.book.get("waiter", id)?.awayAt !== undefined) return this.#idleAt(entry);
    const unsentMs = this.#engine.store.isShared ? UNSENT_MS : 0;
    return Math.min(lastAnswerAt + this.#engine.options.collectMs + unsentMs, this.#idleAt(entry));
  }

  #idleAt({ claims, lastAnswerAt = 0 }: Entry): number {
    return Math.min(lastAnswerAt + this.#engine.options.idleMs, claims.deadlineAt);
  }
}
