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
 * The sessions of this instance and the books of their hosts. What becomes of a session is decided in the book; here it is read
 * from there (`settle`), and what its client does is sent there.
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

  /** The caller must call `hold`, `touch` or `expect` next: that schedules its first timer. */
  create(init: SessionInit): Session {
    const session = this.transitions.begin(init, this.#presence.onDue);
    this.#join(session);
    return session;
  }

  /** Holds a call until the session's state changes, at most until `until`. */
  hold(session: Session, until: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    return this.#presence.hold(session, until, signal);
  }

  /** The client was here and got its answer at once. */
  touch(session: Session): void {
    this.#presence.touch(session);
  }

  /** The client is here, and gets its answer when the arrival was decided. */
  expect(session: Session): void {
    this.#presence.reschedule(session);
  }

  /** What the book says of the session, done here. */
  settle(session: Session): void {
    // While its arrival is on its way the book may say what was before: `#joined` comes back here.
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

  /** Whether its client takes an offered slot now, or is known not to. */
  #isDecided({ isPolled, claims }: Session): boolean {
    return isPolled || this.awayHere(claims.id) !== undefined;
  }

  moved(session: Session): void {
    this.transitions.moved(session);
  }

  /** Answers first calls with what is known: they are pending. */
  storeFailed(host: Host): void {
    for (const session of host.waiting) session.arrivalDecided(this.#engine.agenda);
  }

  /** Every held poll is answered with what is so now. */
  answerAll(): void {
    for (const session of this.register.values()) {
      this.transitions.answerPolls(session);
      session.arrivalDecided(this.#engine.agenda);
    }
  }

  #join(session: Session): void {
    const { host, claims, openMs, isAdopted, isArrivalDecided } = session;
    const { id, bucket, arrivedAt, deadlineAt, limit } = claims;
    session.setJoining(true);
    // Written out, not composed: it is made for every session.
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
    };
    host.send(arrival, (outcome) => this.#joined(session, outcome));
  }

  /** The book has lost it, because this instance was taken for dead or the store lost its tail; or it ended at its deadline. */
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
    // Its client got its token after this was decided: it is decided again, so that the book has its end.
    if (this.#isRemembered(session)) this.settle(session);
    else if (session.isPending && session.isTokenSent) this.#join(session);
    else this.transitions.turnAway(session, code, retryAt);
  }

  /** A slot that its client has through another instance is not ours to take back. */
  #endedMeanwhile(session: Session, { kind }: Outcome): void {
    if (kind === "held") this.transitions.endedElsewhere(session);
    else if (kind === "ended") this.#repeatEnd(session);
    else if (kind !== "throttled" || !this.#isRemembered(session)) this.transitions.sendEnd(session, "timeout");
  }

  #grant(session: Session, lease: LeaseRecord): void {
    const { time, options, agenda, instance } = this.#engine;
    const now = time.now();
    if (lease.instance !== instance) {
      // Another instance answers for it; a client that asks here has it moved here first.
      if (session.isPolled) this.#join(session);
      else this.moved(session);
    } else if (now >= session.claims.deadlineAt) this.#giveBack(session);
    else {
      if (!session.isPolled) agenda.schedule(session, now + options().collectMs);
      this.transitions.give(session, lease, false);
    }
  }

  /** It had ended before it came here. Past its deadline the book need not have its end any more. */
  #repeatEnd(session: Session): void {
    const standing = standingOf(session.host.book, session.claims.id, this.#engine.time.now());
    this.transitions.repeatEnd(session, standing.kind === "ended" ? standing.record : undefined);
  }

  /**
   * It had a slot before it came here: its client gets that answer, and it was counted there. Its client may know of the slot: that
   * this answer is not fetched is no reason to take it back. Not so for a slot that this instance granted while the arrival was on its
   * way.
   */
  #repeatGrant(session: Session, { isOwnGrant = false }: Known): void {
    const standing = standingOf(session.host.book, session.claims.id, this.#engine.time.now());
    const isFreshGrant = isOwnGrant && standing.kind === "held" && standing.lease.fence === session.ownGrant?.fence;
    if (session.isPending && standing.kind === "held" && !isFreshGrant)
      this.transitions.repeat(session, standing.lease);
    else this.settle(session);
  }

  /** A slot that its client did not fetch goes to the next waiter, and the session to its place. */
  #uncollected(session: Session, state: Granted): void {
    this.transitions.waitAgain(session, state);
    this.#giveBack(session);
    this.#presence.reschedule(session);
  }

  /** Unless another instance has the slot by now, or it is over: then it counts as granted. */
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

  /** Another instance has its slot now, or had it until it was over. */
  #isStillGranted({ host, claims }: Session): boolean {
    const standing = standingOf(host.book, claims.id, this.#engine.time.now());
    return standing.kind === "held" || (standing.kind === "ended" && standing.record.end === "released");
  }
}
