import type { PollAnswer } from "@slotkeeper/protocol";
import type { LeaseRecord } from "../book/records.ts";
import { standingOf } from "../book/standing.ts";
import type { Input, Known, Outcome } from "../inputs.ts";
import type { EngineContext } from "./context.ts";
import type { Host, HostListener } from "./host.ts";
import type { CallSignal } from "./poll.ts";
import type { Granted, Session, SessionInit } from "./session.ts";
import { SessionPresence } from "./session-presence.ts";
import { SessionTransitions } from "./session-transitions.ts";

/**
 * Connects the sessions of this instance with the books of their hosts. Decisions in the book determine the state of a
 * session: `settle` applies them here. What the client does is sent to the host as inputs.
 */
export class Sessions implements HostListener {
  readonly #engine: EngineContext;
  readonly transitions: SessionTransitions;
  readonly #presence: SessionPresence;
  readonly isPolledHere = (id: string): boolean => this.find(id)?.isPolled === true;
  readonly awayHere = (id: string): number | undefined => {
    const { time, options } = this.#engine;
    const session = this.find(id);
    return session?.isPolled === false ? session.awaySince(time.now() - options().collectMs) : undefined;
  };
  readonly isTokenSent = (id: string): boolean => this.find(id)?.isTokenSent === true;

  constructor(engine: EngineContext) {
    this.#engine = engine;
    this.transitions = new SessionTransitions(engine);
    this.#presence = new SessionPresence(engine, this.transitions, (session, state) =>
      this.#uncollected(session, state),
    );
  }

  get register() {
    return this.transitions.register;
  }

  find(id: string): Session | undefined {
    return this.register.find(id);
  }

  /** The caller must call `hold`, `touch` or `expect` next, which schedules the first timer. */
  create(init: SessionInit): Session {
    const session = this.transitions.begin(init, this.#presence.onDue);
    this.#join(session);
    return session;
  }

  /** The client comes back for a slot that it has not fetched. Another instance may have that slot by now. */
  joinAgain(session: Session, state: Granted): void {
    this.transitions.waitAgain(session, state);
    this.#join(session);
  }

  /** Holds a call until the session's state changes, at most until `until`. */
  hold(session: Session, until: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    return this.#presence.hold(session, until, signal);
  }

  /** The client made a call that was answered immediately. */
  touch(session: Session): void {
    this.#presence.touch(session);
  }

  /** The client waits, and gets its answer when the arrival was decided. */
  expect(session: Session): void {
    this.#presence.reschedule(session);
  }

  /** Applies the state of the session in the book. */
  settle(session: Session): void {
    // While its arrival is on its way, the book may have an old state. `#joined` calls `settle` again.
    if (!session.isPending || session.isJoining) return;
    const { host, claims } = session;
    const standing = standingOf(host.book, claims.id, this.#engine.time.now());
    session.setOffered(standing.kind === "waiting" && standing.offer !== undefined);
    if (standing.kind === "held") this.#grant(session, standing.lease);
    else if (standing.kind === "ended") this.transitions.endAs(session, standing.record);
    else if (standing.kind === "waiting" && standing.waiter.instance !== this.#engine.instance) this.moved(session);
    else if (standing.kind === "waiting" && session.isOffered && this.#isDecided(session)) host.cycle.wake();
    else if (standing.kind === "unknown") this.#rejoin(session);
  }

  granted({ session, fence, grantedAt }: LeaseRecord): void {
    this.find(session)?.setOwnGrant({ fence, grantedAt });
  }

  /** Whether the client can take an offered slot now, or is known to be away. */
  #isDecided({ isPolled, claims }: Session): boolean {
    return isPolled || this.awayHere(claims.id) !== undefined;
  }

  moved(session: Session): void {
    this.transitions.moved(session);
  }

  /** Answers waiting first calls with what is known: the session is pending. */
  storeFailed(host: Host): void {
    for (const session of host.waiting) session.arrivalDecided(this.#engine.agenda);
  }

  /** Answers every held poll with the current state. */
  answerAll(): void {
    for (const session of this.register.values()) {
      this.transitions.answerPolls(session);
      session.arrivalDecided(this.#engine.agenda);
    }
  }

  #join(session: Session): void {
    const { host, claims, openMs, isAdopted, isArrivalDecided } = session;
    const { id, bucket, arrivedAt, deadlineAt, limit, pendingAt } = claims;
    session.setJoining(true);
    // A literal, because it is created for every session.
    const arrival: Input = {
      kind: "arrive",
      limit,
      isReturning: isAdopted || isArrivalDecided,
      session: id,
      bucket,
      weight: host.configured.weightOf(bucket),
      arrivedAt,
      deadlineAt,
      openMs,
      pendingAt,
    };
    host.send(arrival, (outcome) => this.#joined(session, outcome));
  }

  /**
   * The book does not have the session: it dropped it because this instance was considered dead, or the store lost its
   * last commits, or the session ended at its deadline.
   */
  #rejoin(session: Session): void {
    const { host, claims } = session;
    const record = host.book.get("session", claims.id);
    if (record !== undefined && record.keepUntil >= claims.deadlineAt) this.transitions.endAs(session, record);
    else if (this.#engine.time.now() < claims.deadlineAt) this.#join(session);
    else this.transitions.timeout(session, "deadline");
  }

  #joined(session: Session, outcome: Outcome): void {
    session.setJoining(false);
    this.transitions.begun(session, !("isFirst" in outcome) || outcome.isFirst);
    if (session.state.kind === "timeout") this.#endedMeanwhile(session, outcome);
    if (outcome.kind === "throttled") this.#turnedAway(session, outcome.code, outcome.retryAt);
    else if (outcome.kind === "mismatch") this.transitions.refuse(session, outcome.capacity);
    else if (outcome.kind === "ended") this.#repeatEnd(session);
    else if (outcome.kind === "held") this.#repeatGrant(session, outcome);
    else this.settle(session);
    if (!session.isJoining) session.arrivalDecided(this.#engine.agenda);
  }

  #turnedAway(session: Session, code: number, retryAt: number): void {
    // The client got its token after this decision. The arrival is decided again, so that the book records the end.
    if (this.#isRemembered(session)) this.settle(session);
    else if (session.isPending && session.isTokenSent) this.#join(session);
    else this.transitions.turnAway(session, code, retryAt);
  }

  /**
   * The session ended here while its arrival was on its way. A slot that the client has from another instance is not
   * taken back.
   */
  #endedMeanwhile(session: Session, { kind }: Outcome): void {
    if (kind === "held") this.transitions.endedElsewhere(session);
    else if (kind === "ended") this.#repeatEnd(session);
    else if (kind !== "throttled" || !this.#isRemembered(session)) this.transitions.sendEnd(session, "timeout");
  }

  #grant(session: Session, lease: LeaseRecord): void {
    const { time, options, agenda, instance } = this.#engine;
    const now = time.now();
    const isLate = now >= session.claims.deadlineAt;
    // The slot of an earlier session with the same id. After its deadline this session cannot join it.
    if (isLate && lease.keepUntil < session.claims.deadlineAt) this.transitions.timeout(session, "deadline");
    else if (lease.instance !== instance) {
      // Another instance has the session. If the client polls here, it is moved here first.
      if (session.isPolled) this.#join(session);
      else this.moved(session);
    } else if (isLate) this.#giveBack(session);
    else {
      if (!session.isPolled) agenda.schedule(session, now + options().collectMs);
      this.transitions.give(session, lease, false);
    }
  }

  /** The session had ended before it came here. The book may no longer have its end. */
  #repeatEnd(session: Session): void {
    const standing = standingOf(session.host.book, session.claims.id, this.#engine.time.now());
    this.transitions.repeatEnd(session, standing.kind === "ended" ? standing.record : undefined);
  }

  /**
   * The session had a slot before it came here: its client gets that slot as the answer, and the slot was counted
   * there. The client may already use it, so the slot is not taken back if this answer is not fetched. A slot that this
   * instance granted while the arrival was on its way is treated as a new grant.
   */
  #repeatGrant(session: Session, { isOwnGrant = false }: Known): void {
    const standing = standingOf(session.host.book, session.claims.id, this.#engine.time.now());
    const isFreshGrant = isOwnGrant && standing.kind === "held" && standing.lease.fence === session.ownGrant?.fence;
    if (session.isPending && standing.kind === "held" && !isFreshGrant)
      this.transitions.repeat(session, standing.lease);
    else this.settle(session);
  }

  /** The client did not fetch its slot: the slot goes to the next waiter, and the session returns to its place. */
  #uncollected(session: Session, state: Granted): void {
    this.transitions.waitAgain(session, state);
    session.setAway(true);
    this.#giveBack(session);
    this.#presence.reschedule(session);
  }

  /** Takes the slot back, unless another instance has it by now or it has ended: then it counts as granted. */
  #giveBack(session: Session): void {
    const { host, claims, openMs } = session;
    const { id, bucket, arrivedAt, deadlineAt } = claims;
    const awayAt = this.#engine.time.now() - this.#engine.options().collectMs;
    const weight = host.configured.weightOf(bucket);
    session.setJoining(true);
    host.send({ kind: "return", awayAt, session: id, bucket, weight, arrivedAt, deadlineAt, openMs }, (outcome) => {
      session.setJoining(false);
      if (outcome.kind !== "missing") session.takeOwnGrant();
      if (outcome.kind === "missing" && this.#isStillGranted(session)) this.transitions.grantedAway(session);
      else if (session.state.kind === "timeout") this.#endedMeanwhile(session, outcome);
      else this.settle(session);
    });
  }

  #isRemembered({ host, claims }: Session): boolean {
    return (host.book.get("session", claims.id)?.keepUntil ?? 0) >= claims.deadlineAt;
  }

  /** Another instance has the slot, or had it until it ended. */
  #isStillGranted({ host, claims }: Session): boolean {
    const standing = standingOf(host.book, claims.id, this.#engine.time.now());
    return standing.kind === "held" || (standing.kind === "ended" && standing.record.end === "released");
  }
}
