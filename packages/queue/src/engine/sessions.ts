import type { CancelResult, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import { CapacityMismatchError } from "slotkeeper";
import { phaseFor } from "../store/breaker.ts";
import type { GrantedSlot, SessionEnd } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import { DrainMeter } from "./drain-meter.ts";
import { heard } from "./first-news.ts";
import type { HostQueue } from "./host-queue.ts";
import { type CallSignal, Poll } from "./poll.ts";
import { PENDING, Session, type SessionInit, type SessionState } from "./session.ts";
import { SessionQuota } from "./session-quota.ts";
import { Withdrawals } from "./withdrawals.ts";

/**
 * The lives of sessions: every transition of the table in `session.ts` is a method here.
 *
 * L1 a session ends once: `#end` is the only way out, and moves only what has not ended. L2 it is counted in its host
 * exactly while pending. L3 a held poll is answered in the same turn in which its session leaves `pending`. L4 whatever
 * ends here without a fetched slot is withdrawn from the store; and since a try may be slower than the withdrawal, a slot
 * that comes for an ended session is given back (`giveBackUntold`), and one whose answer was lost is withdrawn once more.
 * L5 nobody is granted past his deadline: a store remembers a session's grant until then, so that what it grants before is
 * the session's one slot, and what it grants later might be a second.
 */
export class Sessions {
  readonly #engine: EngineContext;
  readonly #answer: (session: Session) => PollAnswer;
  readonly #withdrawals: Withdrawals;
  readonly #byId = new Map<string, Session>();
  readonly #byRequest = new Map<string, Session>();
  readonly #byToken = new Map<string, Session>();
  /** How fast sessions of this instance stop waiting. */
  readonly drain = new DrainMeter();
  /** Those that wait, by bucket. */
  readonly quota = new SessionQuota();

  constructor(engine: EngineContext, answer: (session: Session) => PollAnswer) {
    this.#engine = engine;
    this.#answer = answer;
    this.#withdrawals = new Withdrawals(engine);
  }

  get size(): number {
    return this.#byId.size;
  }

  values(): Iterable<Session> {
    return this.#byId.values();
  }

  find(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  findRequest(key: string): Session | undefined {
    return this.#byRequest.get(key);
  }

  findToken(slotToken: string): Session | undefined {
    return this.#byToken.get(slotToken);
  }

  /** The caller holds it, touches it, or has it wait for news: that gives it its first moment. */
  create(init: SessionInit): Session {
    const session = new Session(init, this.#onDue);
    const { id, bucket } = session.claims;
    this.#byId.set(id, session);
    if (session.requestKey !== undefined) this.#byRequest.set(session.requestKey, session);
    const { host } = session;
    if (host.pending === 0) host.heat.becameBusy(init.now, this.#engine.options().pollIntervalMs);
    this.quota.add(bucket);
    host.arrive(session);
    host.longestOpenMs = Math.max(host.longestOpenMs, init.openMs);
    this.#engine.emit({ type: "session-created", host: host.key, bucket, session: id, isAdopted: init.isAdopted });
    return session;
  }

  /** Holds a call until the session's state changes, at most until `until`. */
  hold(session: Session, until: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    const poll = new Poll(session, until, signal, this.#closed);
    this.#wakeUp(session);
    this.#reschedule(session);
    return poll.answered;
  }

  /** The client was here and got its answer at once. */
  touch(session: Session): void {
    this.#wakeUp(session);
    this.#closed(session);
  }

  /** The store granted. Asks again whether there is time left, a client, and a lease: the decision took time. */
  grant(session: Session, slot: GrantedSlot, askedAt: number): void {
    if (!session.isPending) return;
    const grantedAt = this.#engine.clock.now();
    const leaseUntil = askedAt + slot.leaseMs;
    // Its timer is late, the process stood still: the withdrawal gives the slot back.
    if (grantedAt >= session.claims.deadlineAt) {
      this.timeout(session, "deadline");
      return;
    }
    session.isAdopted = false;
    if (!session.isAwake || leaseUntil <= grantedAt) {
      this.#giveBack(session, slot);
      return;
    }
    this.#leave(session, grantedAt);
    session.state = { kind: "granted", slot, grantedAt, leaseUntil, isFetched: false };
    this.#byToken.set(slot.slotToken, session);
    if (session.polls.length > 0) this.#answerPolls(session);
    else this.#engine.agenda.schedule(session, grantedAt + this.#engine.options().collectMs);
  }

  /** A granted session's slot reaches its client. */
  fetch(session: Session): void {
    if (session.state.kind !== "granted" || session.state.isFetched) return;
    const now = this.#engine.clock.now();
    const { slot, grantedAt, leaseUntil } = session.state;
    session.state = { kind: "granted", slot, grantedAt, leaseUntil, isFetched: true };
    this.#engine.agenda.schedule(session, now + this.#engine.options().grantedKeepMs);
    const { host, claims } = session;
    const waitedMs = Math.max(0, grantedAt - claims.arrivedAt);
    host.heat.addWait(waitedMs);
    host.drain.left(now);
    const { id, bucket } = claims;
    this.#engine.emit({ type: "granted", host: host.key, bucket, session: id, slot: slot.fence, waitedMs });
  }

  /** The lease was renewed, or is over (0): what a repeated poll is told. */
  setLease(session: Session, leaseUntil: number): void {
    if (session.state.kind !== "granted") return;
    const { slot, grantedAt, isFetched } = session.state;
    session.state = { kind: "granted", slot, grantedAt, leaseUntil, isFetched };
  }

  /** Its slot is over and the store knows: whoever asks for it again is told by the store. */
  forget(session: Session): void {
    const isKept = this.#byId.get(session.claims.id) === session;
    if (!isKept || session.state.kind !== "granted" || !session.state.isFetched) return;
    this.#engine.agenda.cancel(session);
    this.#drop(session);
  }

  /** The slot was taken away: a repeated poll must not promise it again. */
  forgetLease(slot: number): void {
    for (const session of this.#byToken.values()) {
      if (session.state.kind === "granted" && session.state.slot.fence === slot) this.setLease(session, 0);
    }
  }

  throttle(session: Session, code: number, retryInMs: number): void {
    const now = this.#engine.clock.now();
    const end = session.mayBeStored ? "throttled" : undefined;
    if (!this.#end(session, { kind: "throttled", code, retryAt: now + retryInMs }, end)) return;
    const { id, bucket } = session.claims;
    this.#engine.emit({ type: "throttled", host: session.host.key, bucket, session: id, code });
  }

  /**
   * Everybody at the host for whom the breaker is open. Those the store must be asked about first stay, and those it is
   * deciding about: they may have a slot. So does everybody where the news is older than a poll interval: another instance,
   * or an operator there, may have closed it.
   */
  throttleAll(host: HostQueue, now: number): void {
    const { breaker, breakerAt } = host;
    if (breaker.phase === "closed" || now - breakerAt >= this.#engine.options().pollIntervalMs) return;
    const view = { ...breaker, openForMs: breaker.openForMs + now - host.breakerAt };
    if (view.openForMs >= host.longestOpenMs) return;
    for (const session of host.waiting) {
      if (session.isAdopted || session.place === "trying") continue;
      if (phaseFor(view, session.openMs) === "open") this.throttle(session, view.code, session.openMs - view.openForMs);
    }
  }

  /** `isStored`: the store said so, and need not be told. */
  timeout(session: Session, reason: string, isStored = false): void {
    const waitedMs = Math.max(0, this.#engine.clock.now() - session.claims.arrivedAt);
    if (!this.#end(session, { kind: "timeout", reason }, isStored ? undefined : "timeout")) return;
    session.host.heat.addWait(waitedMs);
    const { id, bucket } = session.claims;
    this.#engine.emit({ type: "timeout", host: session.host.key, bucket, session: id, reason, waitedMs });
  }

  cancel(session: Session): CancelResult {
    const isEnded = !this.#end(session, { kind: "canceled" }, "canceled");
    if (isEnded) return "noop";
    const { id, bucket } = session.claims;
    this.#engine.emit({ type: "canceled", host: session.host.key, bucket, session: id, result: "canceled" });
    return "canceled";
  }

  /** The named semaphore it asked for has another capacity: it never was. */
  refuse(session: Session, capacity: number): void {
    const { host, claims } = session;
    const semaphore = host.hostname ?? host.key;
    session.refusal = new CapacityMismatchError({ semaphore, capacity, requested: claims.limit ?? capacity });
    this.#leave(session, this.#engine.clock.now());
    this.#engine.agenda.cancel(session);
    this.#drop(session);
    session.state = { kind: "canceled" };
    for (const poll of session.polls) poll.fail(session.refusal);
    const { id, bucket } = claims;
    this.#engine.emit({ type: "canceled", host: host.key, bucket, session: id, result: "canceled" });
  }

  /** A session not known here: another instance may have it, and the store tells it. */
  withdrawUnknown(host: HostQueue, claims: SessionClaims): void {
    this.#withdrawals.add({ host, claims }, "canceled");
  }

  /** Every held poll is answered with what is so now. */
  answerAll(): void {
    for (const session of this.#byId.values()) {
      this.#answerPolls(session);
      heard(session, this.#engine.agenda);
    }
  }

  #end(session: Session, state: SessionState, end: SessionEnd | undefined): boolean {
    const now = this.#engine.clock.now();
    const isHeld = session.state.kind === "granted" && session.state.leaseUntil > now;
    if (session.state.kind === "granted" && isHeld && state.kind === "canceled") {
      this.#byToken.delete(session.state.slot.slotToken);
    } else if (!session.isPending) return false;
    else this.#leave(session, now);
    session.state = state;
    if (end !== undefined) this.#withdrawals.add(session, end);
    this.#engine.agenda.schedule(session, now + this.#engine.options().grantedKeepMs);
    this.#answerPolls(session);
    heard(session, this.#engine.agenda);
    return true;
  }

  #answerPolls(session: Session): void {
    if (session.polls.length === 0) return;
    this.fetch(session);
    const answer = this.#answer(session);
    for (const poll of session.polls) poll.answer(answer);
    session.lastAnswerAt = this.#engine.clock.now();
  }

  /** The slot goes to the next waiter, the session back to its place. */
  #giveBack(session: Session, slot: GrantedSlot): void {
    session.host.settleReturning(session);
    this.#emitUncollected(session, slot);
    this.#returnSlot(session.host, slot, (isReturned) => this.#gaveBack(session, !isReturned));
    this.#reschedule(session);
  }

  /**
   * The store granted, but the session had ended while it decided. Mostly the withdrawal has taken the slot back already; but
   * it may have reached the store before the try did.
   */
  giveBackUntold(session: Session, slot: GrantedSlot): void {
    this.#returnSlot(session.host, slot, (isReturned) => {
      if (isReturned) this.#emitUncollected(session, slot);
    });
  }

  /** It ended while the store decided, and the answer was lost: nobody knows whether it has a slot. */
  withdrawAgain(session: Session): void {
    const { kind } = session.state;
    if (kind === "pending" || kind === "granted") return;
    // Its request was repeated after it was forgotten here: who has its name now asks the store, and is told of the slot.
    const isSucceeded = this.#byId.get(session.claims.id)?.isPending === true;
    if (!isSucceeded) this.#withdrawals.add(session, kind);
  }

  #returnSlot(host: HostQueue, { slotToken }: GrantedSlot, done: (isReturned: boolean) => void): void {
    const { store, instance, outbox, clock } = this.#engine;
    let isReturned = true;
    outbox.post({
      operation: "release",
      host: host.key,
      giveUpAt: clock.now() + host.policy.leaseMs,
      send: async () => {
        const request = { slotToken, host: host.key, policy: host.policy, hitAgoMs: undefined, status: undefined };
        const reply = await store.release({ ...request, uncollectedBy: instance });
        isReturned = reply.isReleased;
      },
      done: () => done(isReturned),
    });
  }

  #emitUncollected({ host, bucket, claims }: Session, { fence }: GrantedSlot): void {
    this.#engine.emit({ type: "uncollected", host: host.key, bucket: bucket.name, session: claims.id, slot: fence });
  }

  /** Refused: another instance has delivered the slot, or it is over. Whoever asks here again is told by the store. */
  #gaveBack(session: Session, isRefused: boolean): void {
    if (!session.isPending || session.place !== "returning") return;
    if (isRefused && !session.isAwake) {
      const { host, claims } = session;
      this.#leave(session, this.#engine.clock.now());
      this.#engine.agenda.cancel(session);
      this.#drop(session);
      this.#engine.emit({ type: "moved", host: host.key, bucket: claims.bucket, session: claims.id });
      return;
    }
    session.host.makeFresh(session);
    this.#engine.wake(session.host);
  }

  /** A client that comes back may have a free slot waiting; one that never left changes nothing. */
  #wakeUp(session: Session): void {
    if (session.isAwake) return;
    session.host.setAwake(session, true);
    this.#engine.wake(session.host);
  }

  readonly #closed = (session: Session): void => {
    session.lastAnswerAt = this.#engine.clock.now();
    if (session.polls.length === 0) this.#reschedule(session);
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
    if (session.polls.length === 0)
      dueAt = Math.min(dueAt, session.lastAnswerAt + (session.isAwake ? collectMs : idleMs));
    this.#engine.agenda.schedule(session, dueAt);
  }

  readonly #onDue = (session: Session): void => {
    const now = this.#engine.clock.now();
    if (session.state.kind === "granted" && !session.state.isFetched)
      this.#uncollected(session, session.state.slot, now);
    else if (!session.isPending) this.#drop(session);
    else if (now >= session.claims.deadlineAt) this.timeout(session, "deadline");
    else if (session.polls.length === 0 && now >= session.lastAnswerAt + this.#engine.options().idleMs)
      this.timeout(session, "idle");
    else if (session.polls.length === 0) {
      session.host.setAwake(session, false);
      this.#reschedule(session);
    } else this.#endWindows(session, now);
  };

  #endWindows(session: Session, now: number): void {
    for (const poll of session.polls) {
      if (poll.until > now) continue;
      poll.answer(this.#answer(session));
      session.lastAnswerAt = now;
    }
    this.#reschedule(session);
  }

  #uncollected(session: Session, slot: GrantedSlot, now: number): void {
    this.#byToken.delete(slot.slotToken);
    session.state = PENDING;
    session.bucket = session.host.bucketFor(session.claims.bucket, now);
    session.isAwake = false;
    session.host.comeBack(session);
    this.quota.add(session.claims.bucket);
    this.#giveBack(session, slot);
  }

  #leave(session: Session, now: number): void {
    const { host } = session;
    host.leave(session, now, this.#engine.options().idleMs);
    this.quota.remove(session.claims.bucket);
    this.drain.left(now);
    if (host.pending > 0) return;
    host.heat.becameIdle(now);
    host.positions.forget();
  }

  #drop(session: Session): void {
    this.#byId.delete(session.claims.id);
    if (session.requestKey !== undefined) this.#byRequest.delete(session.requestKey);
    if (session.state.kind === "granted") this.#byToken.delete(session.state.slot.slotToken);
    session.host.sessions--;
  }
}
