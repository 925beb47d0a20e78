import type { CancelResult, PollAnswer } from "@slotkeeper/protocol";
import { CapacityMismatchError } from "slotkeeper";
import type { LeaseRecord } from "../book/records.ts";
import { standingOf } from "../book/standing.ts";
import type { Input, Outcome } from "../inputs.ts";
import { answerOf } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { DrainMeter } from "./drain-meter.ts";
import type { Host, HostListener } from "./host.ts";
import { type CallSignal, Poll } from "./poll.ts";
import { type Ended, endState, PENDING, Session, type SessionInit, type SessionState } from "./session.ts";
import { SessionEvents } from "./session-events.ts";
import { SessionRegister } from "./session-register.ts";

/**
 * The sessions of this instance: polls, deadlines, answers. What becomes of a session is decided in its host's book; here it is
 * read from there, and what its client does is sent there.
 *
 * L1 a session ends once: `#end` is the only way out, and moves only what has not ended. L2 it is counted in its host exactly
 * while pending. L3 a held poll is answered in the same turn in which its session leaves `pending`. L4 whatever ends here
 * without a fetched slot is sent to the host as ended. L5 nothing is granted past a deadline.
 */
export class Sessions implements HostListener {
  readonly #engine: EngineContext;
  readonly #events: SessionEvents;
  readonly register = new SessionRegister();
  readonly #drain = new DrainMeter();

  constructor(engine: EngineContext) {
    this.#engine = engine;
    this.#events = new SessionEvents(engine);
  }

  /** Average time between two sessions that stop waiting here. */
  get drainIntervalMs(): number | undefined {
    return this.#drain.intervalMs;
  }

  find(id: string): Session | undefined {
    return this.register.find(id);
  }

  /** The caller must call `hold`, `touch` or `awaitNews` next: that schedules its first timer. */
  create(init: SessionInit): Session {
    const session = new Session(init, this.#onDue);
    this.register.add(session);
    session.host.remember(session);
    this.register.countPending(session, 1);
    this.#events.created(session);
    this.#join(session);
    return session;
  }

  /** Holds a call until the session's state changes, at most until `until`. */
  hold(session: Session, until: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    const poll = new Poll(session, until, signal, this.#closed);
    this.#came(session);
    if (session.isOffered) session.host.cycle.wake();
    this.#reschedule(session);
    return poll.answered;
  }

  /** The client was here and got its answer at once. */
  touch(session: Session): void {
    this.#came(session);
    this.#closed(session);
  }

  /** What the book says of the session, done here. */
  settle(session: Session): void {
    const { host, claims } = session;
    const standing = standingOf(host.book, claims.id, this.#engine.time.now());
    session.setOffered(standing.kind === "waiting" && standing.offer !== undefined);
    // While its arrival is on its way the book may say what was before: `#joined` comes back here.
    if (!session.isPending || session.isJoining) return;
    if (standing.kind === "held") this.#grant(session, standing.lease);
    else if (standing.kind === "ended") this.#endAs(session, standing.record);
    else if (standing.kind === "waiting" && standing.waiter.instance !== this.#engine.instance) this.moved(session);
    else if (standing.kind === "waiting" && session.isOffered && session.isPolled) host.cycle.wake();
    else if (standing.kind === "unknown") this.#rejoin(session);
  }

  /** A granted session's slot reaches its client. */
  fetch(session: Session): void {
    const { state } = session;
    if (state.kind !== "granted" || state.isFetched) return;
    session.become({ ...state, isFetched: true });
    const { agenda, time, options } = this.#engine;
    agenda.schedule(session, time.now() + options().grantedKeepMs);
    this.#events.granted(session);
  }

  /** The lease was renewed, or is over (0): what a repeated poll is told. */
  setLease(session: Session, leaseUntil: number): void {
    if (session.state.kind === "granted") session.become({ ...session.state, leaseUntil });
  }

  /** Its slot is over and the book knows: a repeated poll is answered from there. */
  forget(session: Session): void {
    const isKept = this.register.find(session.claims.id) === session;
    if (!isKept || session.state.kind !== "granted" || !session.state.isFetched) return;
    this.#engine.agenda.cancel(session);
    this.#drop(session);
  }

  /** The slot was taken away: a repeated poll must not promise it again. */
  forgetLease(host: Host, fence: number): void {
    for (const session of this.register.holders()) {
      const { state } = session;
      if (session.host === host && state.kind === "granted" && state.fence === fence) this.setLease(session, 0);
    }
  }

  cancel(session: Session): CancelResult {
    if (!this.#end(session, { kind: "canceled" }, "canceled")) return "noop";
    this.#events.canceled(session);
    return "canceled";
  }

  /** Every held poll is answered with what is so now. */
  answerAll(): void {
    for (const session of this.register.values()) {
      this.#answerPolls(session);
      session.heard(this.#engine.agenda);
    }
  }

  /** First calls are told what is known: they are pending. */
  storeFailed(host: Host): void {
    for (const session of host.waiting) session.heard(this.#engine.agenda);
  }

  #join(session: Session): void {
    const { host, claims, isAdopted, isHeard } = session;
    session.setJoining(true);
    const isReturning = isAdopted || isHeard;
    const arrival: Input = { kind: "arrive", limit: claims.limit, isReturning, ...this.#joining(session) };
    host.send(arrival, (outcome) => this.#joined(session, outcome));
  }

  /** The book has lost it, because this instance was taken for dead or the store lost its tail. */
  #rejoin(session: Session): void {
    if (this.#engine.time.now() < session.claims.deadlineAt) this.#join(session);
    else this.#timeout(session, "deadline", true);
  }

  #joining({ claims, host, openMs }: Session) {
    const { id, bucket, arrivedAt, deadlineAt } = claims;
    return { session: id, bucket, weight: host.configured.weightOf(bucket), arrivedAt, deadlineAt, openMs };
  }

  #joined(session: Session, outcome: Outcome): void {
    session.setJoining(false);
    // It ended here meanwhile. A slot that its client has through another instance is not ours to take back.
    if (session.state.kind === "timeout") {
      if (outcome.kind === "held") this.#events.moved(session);
      else this.#sendEnd(session, "timeout");
    }
    if (outcome.kind === "throttled") this.#throttle(session, outcome.code, outcome.retryAt);
    else if (outcome.kind === "mismatch") this.#refuse(session, outcome.capacity);
    else if (outcome.kind === "held") this.#repeat(session);
    else if (outcome.kind === "ended") this.#repeatEnd(session);
    else this.settle(session);
    session.heard(this.#engine.agenda);
  }

  #grant(session: Session, lease: LeaseRecord): void {
    const { time, options, agenda, instance } = this.#engine;
    const now = time.now();
    if (lease.instance !== instance) {
      // Another instance answers for it; a client that asks here has it moved here first.
      if (session.isPolled) this.#join(session);
      else this.moved(session);
      return;
    }
    if (now >= session.claims.deadlineAt) {
      this.#timeout(session, "deadline");
      return;
    }
    if (!session.isPolled) agenda.schedule(session, now + options().collectMs);
    this.#give(session, lease, false);
  }

  /** A slot it was given before. Its client may know of it: that this answer is not fetched is no reason to take it back. */
  #repeat(session: Session): void {
    const standing = standingOf(session.host.book, session.claims.id, this.#engine.time.now());
    if (!session.isPending || standing.kind !== "held") {
      this.settle(session);
      return;
    }
    this.#give(session, standing.lease, true);
    this.#events.moved(session);
    const { agenda, time, options } = this.#engine;
    agenda.schedule(session, time.now() + options().grantedKeepMs);
  }

  /** It had ended before it came here: its client is told, and nothing is counted. */
  #repeatEnd(session: Session): void {
    const standing = standingOf(session.host.book, session.claims.id, this.#engine.time.now());
    if (standing.kind !== "ended") this.settle(session);
    else if (this.#end(session, endState(standing.record), undefined)) this.#events.moved(session);
  }

  #give(session: Session, lease: LeaseRecord, isFetched: boolean): void {
    this.#leave(session, this.#engine.time.now());
    const { key: slotToken, fence, grantedAt, endsAt: leaseUntil } = lease;
    session.become({ kind: "granted", slotToken, fence, grantedAt, leaseUntil, isFetched });
    this.register.addToken(slotToken, session);
    this.#answerPolls(session);
  }

  #throttle(session: Session, code: number, retryAt: number): void {
    if (!this.#end(session, { kind: "throttled", code, retryAt }, undefined)) return;
    this.#events.throttled(session, code);
  }

  /** Counted when the book has it: another instance may have the session, and then this end is not one. */
  #timeout(session: Session, reason: string, isStored = false): void {
    if (!this.#end(session, { kind: "timeout", reason }, isStored ? undefined : "timeout")) return;
    if (isStored) this.#events.timeout(session);
  }

  /** The named semaphore it asked for has another capacity: it never was. */
  #refuse(session: Session, capacity: number): void {
    const { host, claims } = session;
    if (!session.isPending) return;
    const semaphore = host.hostname ?? host.key;
    const refusal = new CapacityMismatchError({ semaphore, capacity, requested: claims.limit ?? capacity });
    this.#leave(session, this.#engine.time.now());
    this.#engine.agenda.cancel(session);
    this.#drop(session);
    session.refuse(refusal);
    for (const poll of session.polls) poll.fail(refusal);
    this.#events.canceled(session);
  }

  /** The book says that it ended: nothing is sent. */
  #endAs(session: Session, record: Ended): void {
    const state = endState(record);
    // Granted and over: the instance that delivered the slot has counted it.
    if (record.end === "released") {
      if (this.#end(session, state, undefined)) this.#events.moved(session);
    } else if (state.kind === "throttled") this.#throttle(session, state.code, state.retryAt);
    else if (state.kind === "timeout") this.#timeout(session, state.reason, true);
  }

  /** Another instance has it: a client that still waits here asks again, and is told to. */
  moved(session: Session): void {
    if (!session.isPending || session.isJoining) return;
    this.#answerPolls(session);
    this.#leave(session, this.#engine.time.now());
    this.#engine.agenda.cancel(session);
    this.#drop(session);
    session.heard(this.#engine.agenda);
    this.#events.moved(session);
  }

  #end(session: Session, state: SessionState, end: "timeout" | "canceled" | undefined): boolean {
    const { time, agenda, options } = this.#engine;
    const now = time.now();
    const { state: was } = session;
    if (was.kind === "granted" && was.leaseUntil > now && state.kind === "canceled")
      this.register.dropToken(was.slotToken);
    else if (!session.isPending) return false;
    else this.#leave(session, now);
    session.become(state);
    if (end !== undefined && (end === "canceled" || !session.isJoining)) this.#sendEnd(session, end);
    agenda.schedule(session, now + options().grantedKeepMs);
    this.#answerPolls(session);
    session.heard(agenda);
    return true;
  }

  #sendEnd(session: Session, end: "timeout" | "canceled"): void {
    const { host, claims } = session;
    host.send({ kind: "end", session: claims.id, end, keepUntil: claims.deadlineAt }, (outcome) => {
      if (outcome.kind === "done") this.#events.timeout(session);
      else if (end === "timeout") this.#events.moved(session);
    });
  }

  #answerPolls(session: Session): void {
    if (!session.isPolled) return;
    this.fetch(session);
    const answer = answerOf(session, this.#engine.time.now());
    for (const poll of session.polls) poll.answer(answer);
    session.answeredAt(this.#engine.time.now());
  }

  /** A client that comes back may be granted again; one that never left changes nothing. */
  #came(session: Session): void {
    const { host, claims } = session;
    if (session.isAway || host.book.get("waiter", claims.id)?.awayAt !== undefined) this.#setAway(session, false);
  }

  #setAway(session: Session, isAway: boolean): void {
    session.setAway(isAway);
    const awayAt = isAway ? session.lastAnswerAt : undefined;
    session.host.send({ kind: "client", session: session.claims.id, awayAt });
  }

  readonly #closed = (session: Session): void => {
    session.answeredAt(this.#engine.time.now());
    if (!session.isPolled) this.#reschedule(session);
  };

  /**
   * A pending session's next moment: its deadline, the end of a held call's window, or without one the end of its client's
   * presence, then the end of patience with its silence.
   */
  #reschedule(session: Session): void {
    if (!session.isPending) return;
    const { collectMs, idleMs } = this.#engine.options();
    let dueAt = session.claims.deadlineAt;
    for (const { until } of session.polls) dueAt = Math.min(dueAt, until);
    if (!session.isPolled) dueAt = Math.min(dueAt, session.lastAnswerAt + (session.isAway ? idleMs : collectMs));
    this.#engine.agenda.schedule(session, dueAt);
  }

  readonly #onDue = (session: Session): void => {
    const now = this.#engine.time.now();
    const { state } = session;
    if (state.kind === "granted" && !state.isFetched) this.#uncollected(session, state, now);
    else if (!session.isPending) this.#drop(session);
    else if (now >= session.claims.deadlineAt) this.#timeout(session, "deadline");
    else if (session.isPolled) this.#endWindows(session, now);
    else if (now >= session.lastAnswerAt + this.#engine.options().idleMs) this.#timeout(session, "idle");
    else {
      if (!session.isAway) this.#setAway(session, true);
      this.#reschedule(session);
    }
  };

  #endWindows(session: Session, now: number): void {
    for (const poll of session.polls) {
      if (poll.until > now) continue;
      poll.answer(answerOf(session, now));
      session.answeredAt(now);
    }
    this.#reschedule(session);
  }

  /** Its client left between the decision and the answer. The slot goes to the next waiter, the session to its place. */
  #uncollected(session: Session, { slotToken }: SessionState & { kind: "granted" }, now: number): void {
    this.register.dropToken(slotToken);
    session.become(PENDING);
    session.setAway(true);
    session.host.setWaiting(session, true);
    this.register.countPending(session, 1);
    session.setJoining(true);
    session.host.send(
      { kind: "return", awayAt: now - this.#engine.options().collectMs, ...this.#joining(session) },
      () => {
        session.setJoining(false);
        if (session.state.kind === "timeout") this.#sendEnd(session, "timeout");
        this.settle(session);
      },
    );
    this.#reschedule(session);
  }

  #leave(session: Session, now: number): void {
    session.host.setWaiting(session, false);
    this.register.countPending(session, -1);
    this.#drain.step(now);
    if (!session.host.hasPending) session.host.positions.forget();
  }

  #drop(session: Session): void {
    this.register.drop(session);
    session.host.forget();
  }
}
