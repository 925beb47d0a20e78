import type { PollAnswer } from "@slotkeeper/protocol";
import type { Agenda, Due } from "../agenda.ts";
import type { Session } from "./session.ts";

/** One held call. It is answered once: by a change of its session, by the end of its window, or by its caller leaving. */
export class Poll implements Due {
  readonly #session: Session;
  readonly #agenda: Agenda;
  readonly #signal: AbortSignal | undefined;
  readonly #onWindowEnd: (poll: Poll) => void;
  readonly #onLeft: (session: Session) => void;
  #resolve!: (answer: PollAnswer) => void;
  #reject!: (reason: unknown) => void;
  dueAt = 0;
  agendaIndex = -1;
  readonly answered: Promise<PollAnswer>;

  constructor(init: PollInit) {
    this.#session = init.session;
    this.#agenda = init.agenda;
    this.#signal = init.signal;
    this.#onWindowEnd = init.onWindowEnd;
    this.#onLeft = init.onLeft;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    init.session.polls.add(this);
    init.agenda.schedule(this, init.until);
    init.signal?.addEventListener("abort", this.#leave, { once: true });
  }

  get session(): Session {
    return this.#session;
  }

  answer(answer: PollAnswer): void {
    this.#close();
    this.#resolve(answer);
  }

  fail(reason: unknown): void {
    this.#close();
    this.#reject(reason);
  }

  onDue(): void {
    this.#onWindowEnd(this);
  }

  readonly #leave = (): void => {
    this.fail(this.#signal?.reason);
    this.#onLeft(this.#session);
  };

  #close(): void {
    this.#session.polls.delete(this);
    this.#agenda.cancel(this);
    this.#signal?.removeEventListener("abort", this.#leave);
  }
}

interface PollInit {
  readonly session: Session;
  readonly agenda: Agenda;
  readonly signal: AbortSignal | undefined;
  readonly until: number;
  readonly onWindowEnd: (poll: Poll) => void;
  readonly onLeft: (session: Session) => void;
}
