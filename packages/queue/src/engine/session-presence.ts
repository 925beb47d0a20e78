import type { PollAnswer } from "@slotkeeper/protocol";
import { answerOf } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import { type CallSignal, Poll } from "./poll.ts";
import type { Granted, Session } from "./session.ts";
import type { SessionTransitions } from "./session-transitions.ts";

/**
 * How long an instance of a fleet waits before it records an absent client in the book. On busy machines the time
 * between two polls is often longer than `collectMs`, and each commit costs all instances.
 * Until then only this instance knows of the absence: its decisions skip the client, and a slot that another instance
 * offers goes to the next waiter immediately.
 */
const UNSENT_MS = 5_000;

/**
 * Tracks whether the client of a session is present: held polls, the ends of their windows, and what happens if the
 * client stays away. Each session has one entry in the agenda, for the next time at which one of these matters.
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

  /** The client made a call that was answered immediately. */
  touch(session: Session): void {
    this.#came(session);
    this.#left(session);
  }

  /**
   * Sets the next timer of a pending session: its deadline or the end of a held call's window. Without a held call: the
   * time at which the client counts as away, then the end of the idle time.
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

  /** The client is present. If it was recorded as away, it may get a slot again; otherwise nothing changes. */
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
