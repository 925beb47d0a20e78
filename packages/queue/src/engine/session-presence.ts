import type { PollAnswer } from "@slotkeeper/protocol";
import { answerOf } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { type CallSignal, Poll } from "./poll.ts";
import type { Granted, Session } from "./session.ts";
import type { SessionTransitions } from "./session-transitions.ts";

/**
 * How long the book of a fleet is not changed for a client that is away. A poll that ends and the next one are often more than
 * `collectMs` apart where machines are busy, and each commit costs all instances. Until then this instance knows by itself:
 * its decisions pass the client over, and a slot that another instance offers is passed on at once.
 */
const UNSENT_MS = 5_000;

/**
 * Whether a session's client is there: held polls, the end of their windows, and what becomes of a session whose client stays
 * away. Each session has one moment in the agenda, the next at which any of this matters.
 */
export class SessionPresence {
  readonly #engine: EngineContext;
  readonly #transitions: SessionTransitions;
  readonly #onUncollected: (session: Session, state: Granted) => void;

  constructor(
    engine: EngineContext,
    transitions: SessionTransitions,
    onUncollected: (session: Session, state: Granted) => void,
  ) {
    this.#engine = engine;
    this.#transitions = transitions;
    this.#onUncollected = onUncollected;
  }

  /** Holds a call until the session's state changes, at most until `until`. */
  hold(session: Session, until: number, signal: CallSignal | undefined): Promise<PollAnswer> {
    const poll = new Poll(session, until, signal, this.#left);
    this.#came(session);
    if (session.isOffered) session.host.cycle.wake();
    this.reschedule(session);
    return poll.answered;
  }

  /** The client was here and got its answer at once. */
  touch(session: Session): void {
    this.#came(session);
    this.#left(session);
  }

  /**
   * A pending session's next moment: its deadline, the end of a held call's window, or without one the end of its client's
   * presence, then the end of patience with its silence.
   */
  reschedule(session: Session): void {
    if (!session.isPending) return;
    const { collectMs, idleMs } = this.#engine.options();
    const presentMs = collectMs + (this.#engine.store.clock === "shared" ? UNSENT_MS : 0);
    let dueAt = session.claims.deadlineAt;
    for (const { until } of session.polls) dueAt = Math.min(dueAt, until);
    if (!session.isPolled)
      dueAt = Math.min(dueAt, session.lastAnswerAt + (session.isAway ? idleMs : Math.min(presentMs, idleMs)));
    this.#engine.agenda.schedule(session, dueAt);
  }

  readonly onDue = (session: Session): void => {
    const now = this.#engine.time.now();
    const { state } = session;
    if (state.kind === "granted" && !state.isFetched) this.#onUncollected(session, state);
    else if (!session.isPending) this.#transitions.drop(session);
    else if (now >= session.claims.deadlineAt) this.#transitions.timeout(session, "deadline");
    else if (session.isPolled) this.#endWindows(session, now);
    else if (now >= session.lastAnswerAt + this.#engine.options().idleMs) this.#transitions.timeout(session, "idle");
    else {
      if (!session.isAway) this.#setAway(session, true);
      this.reschedule(session);
    }
  };

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

  readonly #left = (session: Session): void => {
    session.answeredAt(this.#engine.time.now());
    if (!session.isPolled) this.reschedule(session);
  };

  #endWindows(session: Session, now: number): void {
    for (const poll of session.polls) {
      if (poll.until > now) continue;
      poll.answer(answerOf(session, now));
      session.answeredAt(now);
    }
    this.reschedule(session);
  }
}
