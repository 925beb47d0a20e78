import type { CancelResult } from "@slotkeeper/protocol";
import { CapacityMismatchError } from "slotkeeper";
import type { LeaseRecord } from "../book/records.ts";
import { answerOf } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { DrainMeter } from "./drain-meter.ts";
import type { Host } from "./host.ts";
import {
  type Ended,
  endOf,
  endState,
  type Granted,
  MOVED,
  PENDING,
  Session,
  type SessionInit,
  type SessionState,
} from "./session.ts";
import { SessionEvents } from "./session-events.ts";
import { SessionRegister } from "./session-register.ts";

/**
 * Every transition of a session at this instance (the table in `session.ts`), with its answers, timers and counts.
 *
 * SESSIONS1 A session ends once: only `#end` ends it, and only if it has not ended before.
 * SESSIONS2 Its host counts it exactly while it is pending.
 * SESSIONS3 A held poll is answered in the same turn in which its session stops being pending.
 * SESSIONS4 If a session ends here without a fetched slot, its end is sent to the host.
 * SESSIONS5 No slot is granted after the deadline.
 * SESSIONS6 An end is counted once in the fleet. A grant is counted by the instance that committed it, when the client
 *   fetches the slot or another instance has taken it over. Any other end is counted by the instance whose commit ends
 *   the session (ENDS2), whichever instance has the session. The other instances report `moved`. After a failover that
 *   loses commits an end may be counted twice. After a crash, or a stop before the store has the end, it may not be
 *   counted at all.
 */
export class SessionTransitions {
  readonly #engine: EngineContext;
  readonly #events: SessionEvents;
  readonly register = new SessionRegister();
  readonly #drain = new DrainMeter();

  constructor(engine: EngineContext) {
    this.#engine = engine;
    this.#events = new SessionEvents(engine);
  }

  /** The average time between two sessions that stop waiting here, while sessions wait. */
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

  /** The arrival was decided. `isNew`: the book did not know the session before, so it begins here. Call it once. */
  begun(session: Session, isNew: boolean): void {
    if (session.announce()) this.#events.created(session, isNew);
  }

  give(session: Session, lease: LeaseRecord, isFetched: boolean): void {
    this.#leave(session);
    const { key: slotToken, fence, grantedAt, endsAt: leaseUntil } = lease;
    session.become({ kind: "granted", slotToken, fence, grantedAt, leaseUntil, isFetched });
    if (!isFetched) session.setOwnGrant({ fence, grantedAt });
    this.register.addToken(slotToken, session);
    this.answerPolls(session);
  }

  /** The slot of a granted session reaches its client. */
  fetch(session: Session): void {
    const { state } = session;
    if (state.kind !== "granted" || state.isFetched) return;
    session.become({ ...state, isFetched: true });
    this.#keepFor(session);
    session.takeOwnGrant();
    this.#events.granted(session, state);
  }

  /**
   * The client gets a slot that it already had from another instance, or that another instance took over before this
   * one knew of its own grant.
   */
  repeat(session: Session, lease: LeaseRecord): void {
    this.give(session, lease, true);
    this.endedElsewhere(session);
    this.#keepFor(session);
  }

  /** The client left between the decision and the answer, or comes back after that. The session waits again. */
  waitAgain(session: Session, { slotToken }: Granted): void {
    this.register.dropToken(slotToken);
    session.become(PENDING);
    session.host.setWaiting(session, true);
    this.register.countPending(session, 1);
  }

  /**
   * This instance wanted to take the slot back, but another instance has it now, or it has ended. So it counts as a
   * grant of this instance.
   */
  grantedAway(session: Session): void {
    if (session.state.kind === "canceled") return;
    if (session.isPending) this.#part(session, MOVED);
    this.endedElsewhere(session);
  }

  /** The lease was renewed, or has ended (0). A repeated poll gets this end. */
  setLease(session: Session, leaseUntil: number): void {
    if (session.state.kind === "granted") session.become({ ...session.state, leaseUntil });
  }

  /** The slot was revoked. A repeated poll must not return it again. */
  forgetLease(host: Host, fence: number): void {
    for (const session of this.register.holders()) {
      const { state } = session;
      if (session.host === host && state.kind === "granted" && state.fence === fence) this.setLease(session, 0);
    }
  }

  /** The slot or the session has ended, and the book has that. A repeated poll is answered from the book. */
  forget(session: Session): void {
    const { state, claims } = session;
    const isOver = state.kind === "timeout" || (state.kind === "granted" && state.isFetched);
    if (!isOver || this.register.find(claims.id) !== session) return;
    this.#engine.agenda.cancel(session);
    this.drop(session);
  }

  cancel(session: Session): CancelResult {
    return this.#end(session, { kind: "canceled" }, "canceled") ? "canceled" : "noop";
  }

  timeout(session: Session, reason: string): void {
    this.#end(session, { kind: "timeout", reason }, "timeout");
  }

  /** The session was refused. The book has no record of that, so no other instance knows of the session. */
  turnAway(session: Session, code: number, retryAt: number): void {
    if (this.#end(session, { kind: "throttled", code, retryAt }, undefined)) this.#events.throttled(session, code);
  }

  /** The book has an end for the session. */
  endAs(session: Session, record: Ended): void {
    if (this.#end(session, endState(record), undefined)) this.#closed(session, record);
  }

  /** The session had ended before it came to this instance. Without a record: the book does not have its end any more. */
  repeatEnd(session: Session, record: Ended | undefined): void {
    if (record?.end !== "released") session.takeOwnGrant();
    const reason = this.#engine.time.now() < session.claims.deadlineAt ? "forgotten" : "deadline";
    const state: SessionState = record === undefined ? { kind: "timeout", reason } : endState(record);
    if (!session.isPending || this.#end(session, state, undefined)) this.endedElsewhere(session);
  }

  /** The named semaphore has a different capacity. The session counts as if it had never begun. */
  refuse(session: Session, capacity: number): void {
    const { host, claims } = session;
    if (!session.isPending) return;
    const semaphore = host.hostname ?? host.key;
    const refusal = new CapacityMismatchError({ semaphore, capacity, requested: claims.limit ?? capacity });
    for (const poll of session.polls) poll.fail(refusal);
    session.refuse(refusal);
    this.#part(session, { kind: "canceled" });
    this.#events.refused(session);
  }

  /** Another instance has the session. A client that still waits here gets `pending`, so that it polls again. */
  moved(session: Session): void {
    if (!session.isPending || session.isJoining) return;
    this.#part(session, MOVED);
    this.endedElsewhere(session);
  }

  /**
   * The session is over here, and was counted elsewhere or before. Reports that once. If this instance granted its
   * slot, counts the grant.
   */
  endedElsewhere(session: Session): void {
    const grant = session.takeOwnGrant();
    if (!session.close()) return;
    if (grant === undefined) this.#events.moved(session);
    else this.#events.granted(session, grant);
  }

  /** Sends the end of a session that got no slot here to the host. The decision that ends the session counts it. */
  sendEnd(session: Session, end: "timeout" | "canceled"): void {
    const { host, claims, isUndelivered } = session;
    const current = this.register.find(claims.id);
    // This copy had ended here, but the client came back while the store was unavailable: the session continues in the
    // newer copy.
    if (current !== undefined && current !== session && end === "timeout") this.endedElsewhere(session);
    else
      host.send(endOf(claims, { end, at: this.#engine.time.now(), isUndelivered }), ({ kind }) => {
        if (kind === "missing") this.#closed(session, host.book.get("session", claims.id));
      });
  }

  /** If a commit of this instance ended the session, its end was already reported with that commit. */
  #closed(session: Session, record: Ended | undefined): void {
    const isOfThisLife = record !== undefined && record.keepUntil >= session.claims.deadlineAt;
    // The slot was taken away before its client fetched it.
    if (isOfThisLife && record.end !== "released") session.takeOwnGrant();
    if (!isOfThisLife || record.instance !== this.#engine.instance) this.endedElsewhere(session);
  }

  answerPolls(session: Session): void {
    if (!session.isPolled) return;
    this.fetch(session);
    const now = this.#engine.time.now();
    const answer = answerOf(session, now);
    for (const poll of session.polls) poll.answer(answer);
    session.answeredAt(now);
  }

  drop(session: Session): void {
    this.register.drop(session);
    session.host.forget();
  }

  #end(session: Session, state: SessionState, end: "timeout" | "canceled" | undefined): boolean {
    const { time, agenda, options } = this.#engine;
    const { state: was } = session;
    const now = time.now();
    if (was.kind === "granted" && was.leaseUntil > now && state.kind === "canceled") {
      // After this time the slot is in use, and only its token ends it.
      if (was.isFetched && now - was.grantedAt > options().cancelMs) return false;
      this.register.dropToken(was.slotToken);
    } else if (!session.isPending) return false;
    else this.#leave(session);
    session.become(state);
    // A slot that was delivered is already counted as granted.
    if (was.kind === "granted" && was.isFetched)
      session.host.send(endOf(session.claims, { end: "canceled", at: now, isUndelivered: false }));
    else if (end === "canceled" || (end === "timeout" && !session.isJoining)) this.sendEnd(session, end);
    this.#keepFor(session);
    this.answerPolls(session);
    session.arrivalDecided(agenda);
    return true;
  }

  /** How long a session that has ended is kept for repeated polls. */
  #keepFor(session: Session): void {
    const { agenda, time, options } = this.#engine;
    agenda.schedule(session, time.now() + options().cancelMs);
  }

  /**
   * This instance gives the session up and does not keep it. A client that still waits here gets an answer, and polls
   * again.
   */
  #part(session: Session, state: SessionState): void {
    const { agenda } = this.#engine;
    this.#leave(session);
    session.become(state);
    this.answerPolls(session);
    session.arrivalDecided(agenda);
    agenda.cancel(session);
    this.drop(session);
  }

  #leave(session: Session): void {
    session.host.setWaiting(session, false);
    this.register.countPending(session, -1);
    this.#drain.step(this.#engine.time.now());
    if (this.register.quota.total === 0) this.#drain.rest();
  }
}
