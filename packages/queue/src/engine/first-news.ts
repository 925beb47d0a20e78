import type { Agenda, Due } from "../agenda.ts";
import type { Session } from "./session.ts";

/** What a first call that does not wait for a slot waits for: that the store has said anything about its session. */
export class FirstNews implements Due {
  #resolve!: () => void;
  dueAt = 0;
  agendaIndex = -1;
  readonly arrived: Promise<void>;

  constructor() {
    this.arrived = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The store has not answered within an interval: the caller is told what is known. */
  onDue(): void {
    this.#resolve();
  }
}

/** Settles when the store has said anything of the session, has failed to, or has been silent until `at`. */
export function firstNews(session: Session, agenda: Agenda, at: number): Promise<void> {
  if (session.news === undefined) {
    session.news = new FirstNews();
    agenda.schedule(session.news, at);
  }
  return session.news.arrived;
}

export function heard(session: Session, agenda: Agenda): void {
  session.isHeard = true;
  if (session.news === undefined) return;
  agenda.cancel(session.news);
  session.news.onDue();
  session.news = undefined;
}
