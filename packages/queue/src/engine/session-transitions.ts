import type { CancelResult } from "@slotkeeper/protocol";
import { CapacityMismatchError } from "slotkeeper";
import type { LeaseRecord } from "../book/records.ts";
import { answerOf } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { DrainMeter } from "./drain-meter.ts";
import type { Host } from "./host.ts";
import {
  DEADLINE,
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
 * Every arrow of a session's life at this instance (the table in `session.ts`), with its answers, timers and counts.
 *
 * SESSIONS1 a session ends once: `#end` is the only way out, and moves only what has not ended. SESSIONS2 it is counted in its host exactly
 * while pending. SESSIONS3 a held poll is answered in the same turn in which its session leaves `pending`. SESSIONS4 whatever ends here
 * without a fetched slot is sent to the host as ended. SESSIONS5 nothing is granted past a deadline.
 * SESSIONS6 an end is counted once in the fleet: a grant by the instance that committed it, when its client fetches it or another instance
 * has taken it over; any other end by the instance whose commit ends it (ENDS2), whichever instance has the session. The others say
 * `moved`. A failover that loses commits may make it twice; a crash none, and so does a stop before the store has the end.
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
    if (!isFetched) session.setOwnGrant({ fence, grantedAt });
    this.register.addToken(slotToken, session);
    this.answerPolls(session);
  }

  /** A granted session's slot reaches its client. */
  fetch(session: Session): void {
    const { state } = session;
    if (state.kind !== "granted" || state.isFetched) return;
    session.become({ ...state, isFetched: true });
    this.#keepFor(session);
    session.takeOwnGrant();
    this.#events.granted(session, state);
  }

  /** A slot it had before it came here, or that another instance has taken over before this one knew of its own grant. */
  repeat(session: Session, lease: LeaseRecord): void {
    this.give(session, lease, true);
    this.endedElsewhere(session);
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
  grantedAway(session: Session): void {
    if (session.state.kind === "canceled") return;
    if (session.isPending) this.#part(session, MOVED);
    this.endedElsewhere(session);
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

  /** It was turned away, and the book has no record of that: no other instance knows of it. */
  turnAway(session: Session, code: number, retryAt: number): void {
    if (this.#end(session, { kind: "throttled", code, retryAt }, undefined)) this.#events.throttled(session, code);
  }

  /** The book says that it ended. */
  endAs(session: Session, record: Ended): void {
    if (this.#end(session, endState(record), undefined)) this.#closed(session, record);
  }

  /** It had ended before it came here. */
  repeatEnd(session: Session, record: Ended | undefined): void {
    if (record?.end !== "released") session.takeOwnGrant();
    const state = record === undefined ? DEADLINE : endState(record);
    if (!session.isPending || this.#end(session, state, undefined)) this.endedElsewhere(session);
  }

  /** The named semaphore it asked for has another capacity: it never was. */
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

  /** Another instance has it: a client that still waits here is answered `pending`, so that it asks again. */
  moved(session: Session): void {
    if (!session.isPending || session.isJoining) return;
    this.#part(session, MOVED);
    this.endedElsewhere(session);
  }

  /** It is over here, and counted elsewhere or before: reported once. A slot that this instance granted is counted here. */
  endedElsewhere(session: Session): void {
    const grant = session.takeOwnGrant();
    if (!session.close()) return;
    if (grant === undefined) this.#events.moved(session);
    else this.#events.granted(session, grant);
  }

  /** The decision that ends it counts it. */
  sendEnd(session: Session, end: "timeout" | "canceled"): void {
    const { host, claims } = session;
    const current = this.register.find(claims.id);
    // Its client came back while the store was away, after this copy had been given up: the session goes on.
    if (current !== undefined && current !== session && end === "timeout") this.endedElsewhere(session);
    else
      host.send(endOf(claims, end), ({ kind }) => {
        if (kind === "missing") this.#closed(session, host.book.get("session", claims.id));
      });
  }

  /** Its end was reported with the commit that ended it, if that was one of this instance. */
  #closed(session: Session, record: Ended | undefined): void {
    const isOfThisLife = record !== undefined && record.keepUntil >= session.claims.deadlineAt;
    // Its slot was taken from it before its client fetched it.
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
    const { time, agenda } = this.#engine;
    const { state: was } = session;
    if (was.kind === "granted" && was.leaseUntil > time.now() && state.kind === "canceled")
      this.register.dropToken(was.slotToken);
    else if (!session.isPending) return false;
    else this.#leave(session);
    session.become(state);
    // One that was delivered has been counted as granted.
    if (was.kind === "granted" && was.isFetched) session.host.send(endOf(session.claims, "canceled"));
    else if (end === "canceled" || (end === "timeout" && !session.isJoining)) this.sendEnd(session, end);
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

  /** It is no longer this instance's, and not kept either. A client that still waits here is answered, and asks again. */
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
    if (!session.host.hasPending) session.host.positions.forget();
  }
}
