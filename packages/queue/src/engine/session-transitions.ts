import type { CancelResult } from "@slotkeeper/protocol";
import { CapacityMismatchError } from "slotkeeper";
import type { LeaseRecord, SessionRecord } from "../book/records.ts";
import { answerOf } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { DrainMeter } from "./drain-meter.ts";
import type { Host } from "./host.ts";
import {
  type Ended,
  endState,
  type Granted,
  PENDING,
  Session,
  type SessionInit,
  type SessionState,
} from "./session.ts";
import { SessionEvents } from "./session-events.ts";
import { SessionRegister } from "./session-register.ts";

/**
 * Every arrow of a session's life at this instance (the table in `session.ts`), with its answers, timers and counts.
 *
 * SESSIONS1 a session ends once: `#end` is the only way out, and moves only what has not ended. SESSIONS2 it is counted in its host exactly
 * while pending. SESSIONS3 a held poll is answered in the same turn in which its session leaves `pending`. SESSIONS4 whatever ends here
 * without a fetched slot is sent to the host as ended. SESSIONS5 nothing is granted past a deadline.
 * SESSIONS6 an end is counted once in the fleet: by the instance that the book names as having the session when it ends, or, where that
 * one is gone, by the instance that its client cancels at; and a grant by the instance that committed it. The others say `moved`. A
 * failover that loses commits may make it twice; a crash none, and so does a stop whose deadline passes before the store has the end.
 */
export class SessionTransitions {
  readonly #engine: EngineContext;
  readonly #events: SessionEvents;
  readonly register = new SessionRegister();
  readonly #drain = new DrainMeter();
  /** Ends on their way to the store, of sessions that had not ended when they were sent. */
  readonly #ending = new Map<string, Session>();

  constructor(engine: EngineContext) {
    this.#engine = engine;
    this.#events = new SessionEvents(engine);
  }

  /** Average time between two sessions that stop waiting here, while some wait. */
  get drainIntervalMs(): number | undefined {
    return this.#drain.intervalMs;
  }

  begin(init: SessionInit, whenDue: (session: Session) => void): Session {
    const session = new Session(init, whenDue);
    this.register.add(session);
    session.host.remember(session);
    this.register.countPending(session, 1);
    return session;
  }

  /** Its arrival was decided. `isNew`: the book did not know it before, so that it begins here. Called once. */
  begun(session: Session, isNew: boolean): void {
    if (session.announce()) this.#events.created(session, isNew);
  }

  give(session: Session, lease: LeaseRecord, isFetched: boolean): void {
    this.#leave(session);
    const { key: slotToken, fence, grantedAt, endsAt: leaseUntil } = lease;
    session.become({ kind: "granted", slotToken, fence, grantedAt, leaseUntil, isFetched });
    this.register.addToken(slotToken, session);
    this.answerPolls(session);
  }

  /** A granted session's slot reaches its client. */
  fetch(session: Session): void {
    const { state } = session;
    if (state.kind !== "granted" || state.isFetched) return;
    session.become({ ...state, isFetched: true });
    this.#keepFor(session);
    this.#events.granted(session, state);
  }

  /** A slot it had before it came here: granted, and counted, elsewhere. */
  repeat(session: Session, lease: LeaseRecord): void {
    this.give(session, lease, true);
    this.#events.moved(session);
    this.#keepFor(session);
  }

  /** Its client left between the decision and the answer: it waits again. */
  waitAgain(session: Session, { slotToken }: Granted): void {
    this.register.dropToken(slotToken);
    session.become(PENDING);
    session.setAway(true);
    session.host.setWaiting(session, true);
    this.register.countPending(session, 1);
  }

  /** The slot that was to be taken back is another instance's meanwhile, or over: it stays granted, by this one. */
  grantedAway(session: Session, state: Granted): void {
    if (session.state.kind === "canceled") return;
    if (session.isPending) this.#part(session);
    this.#events.granted(session, state);
  }

  /** The lease was renewed, or is over (0): what a repeated poll is answered. */
  setLease(session: Session, leaseUntil: number): void {
    if (session.state.kind === "granted") session.become({ ...session.state, leaseUntil });
  }

  /** The slot was taken away: a repeated poll must not promise it again. */
  forgetLease(host: Host, fence: number): void {
    for (const session of this.register.holders()) {
      const { state } = session;
      if (session.host === host && state.kind === "granted" && state.fence === fence) this.setLease(session, 0);
    }
  }

  /** Its slot is over and the book knows: a repeated poll is answered from there. */
  forget(session: Session): void {
    const isKept = this.register.find(session.claims.id) === session;
    if (!isKept || session.state.kind !== "granted" || !session.state.isFetched) return;
    this.#engine.agenda.cancel(session);
    this.drop(session);
  }

  cancel(session: Session): CancelResult {
    return this.#end(session, { kind: "canceled" }, "canceled") ? "canceled" : "noop";
  }

  timeout(session: Session, reason: string): void {
    this.#end(session, { kind: "timeout", reason }, "timeout");
  }

  /** The book refused it, or lost it for good: it ends here. */
  endHere(session: Session, state: SessionState): void {
    if (this.#end(session, state, undefined)) this.countEnd(session);
  }

  /** It had ended before it came here, and was counted. */
  repeatEnd(session: Session, record: Ended): void {
    this.#ending.delete(session.claims.id);
    if (this.#end(session, endState(record), undefined)) this.#events.moved(session);
  }

  /** The book says that it ended: nothing is sent. It is counted by the instance that had it then. */
  endAs(session: Session, record: Ended): void {
    if (!this.#end(session, endState(record), undefined)) return;
    if (record.instance === this.#engine.instance) this.countEnd(session);
    else this.#events.moved(session);
  }

  /** The named semaphore it asked for has another capacity: it never was. */
  refuse(session: Session, capacity: number): void {
    const { host, claims } = session;
    if (!session.isPending) return;
    const semaphore = host.hostname ?? host.key;
    const refusal = new CapacityMismatchError({ semaphore, capacity, requested: claims.limit ?? capacity });
    this.#part(session);
    session.refuse(refusal);
    for (const poll of session.polls) poll.fail(refusal);
    this.#events.ended(session);
  }

  /** Another instance has it: a client that still waits here is answered `pending`, so that it asks again. */
  moved(session: Session): void {
    if (!session.isPending || session.isJoining) return;
    this.answerPolls(session);
    this.#part(session);
    session.arrivalDecided(this.#engine.agenda);
    this.#events.moved(session);
  }

  /** It is over here, and another instance counts how it ended. */
  endedElsewhere(session: Session): void {
    this.#events.moved(session);
  }

  /** Counted when the book has it: another instance may have the session, and then this end is not one. */
  sendEnd(session: Session, end: "timeout" | "canceled"): void {
    const { host, claims } = session;
    const current = this.register.find(claims.id);
    // Its client came back while the store was away, after this copy had been given up: the session goes on.
    if (current !== undefined && current !== session && end === "timeout") {
      this.#events.moved(session);
      return;
    }
    if (!this.#isOwnEnd(session, host.book.kept("session", claims.id))) this.#ending.set(claims.id, session);
    host.send({ kind: "end", session: claims.id, end, keepUntil: claims.deadlineAt }, ({ kind }) => {
      // Another instance may have ended it at its deadline while this end was on its way: it is still this one's to count.
      const isFirst = this.#ending.get(claims.id) === session;
      if (isFirst) this.#ending.delete(claims.id);
      const isOwn = isFirst && this.#isOwnEnd(session, host.book.get("session", claims.id));
      if (kind === "done" || isOwn) this.countEnd(session);
      else this.#events.moved(session);
    });
  }

  countEnd(session: Session): void {
    this.#ending.delete(session.claims.id);
    this.#events.ended(session);
  }

  /** The end in the book is this one's to count. */
  #isOwnEnd({ claims }: Session, record: SessionRecord | undefined): boolean {
    return record?.instance === this.#engine.instance && record.keepUntil >= claims.deadlineAt;
  }

  answerPolls(session: Session): void {
    if (!session.isPolled) return;
    this.fetch(session);
    const answer = answerOf(session, this.#engine.time.now());
    for (const poll of session.polls) poll.answer(answer);
    session.answeredAt(this.#engine.time.now());
  }

  drop(session: Session): void {
    this.register.drop(session);
    session.host.forget();
  }

  #end(session: Session, state: SessionState, end: "timeout" | "canceled" | undefined): boolean {
    const { time, agenda } = this.#engine;
    const { state: was } = session;
    if (was.kind === "granted" && was.leaseUntil > time.now() && state.kind === "canceled")
      this.register.dropToken(was.slotToken);
    else if (!session.isPending) return false;
    else this.#leave(session);
    session.become(state);
    if (end === "canceled" || (end === "timeout" && !session.isJoining)) this.sendEnd(session, end);
    this.#keepFor(session);
    this.answerPolls(session);
    session.arrivalDecided(agenda);
    return true;
  }

  /** So long a session that is over can be asked for. */
  #keepFor(session: Session): void {
    const { agenda, time, options } = this.#engine;
    agenda.schedule(session, time.now() + options().grantedKeepMs);
  }

  /** It is no longer this instance's, and not kept either. */
  #part(session: Session): void {
    this.#leave(session);
    this.#engine.agenda.cancel(session);
    this.drop(session);
  }

  #leave(session: Session): void {
    session.host.setWaiting(session, false);
    this.register.countPending(session, -1);
    this.#drain.step(this.#engine.time.now());
    if (this.register.quota.total === 0) this.#drain.rest();
    if (!session.host.hasPending) session.host.positions.forget();
  }
}
