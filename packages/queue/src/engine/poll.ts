import type { PollAnswer } from "@slotkeeper/protocol";
import type { Session } from "./session.ts";

/**
 * Reports that a caller has left: an `AbortSignal`, or a smaller object of the server. Ten thousand held calls need ten
 * thousand of these.
 */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** One held call. It is answered once: when its session changes, when its window ends, or when its caller leaves. */
export class Poll {
  readonly #session: Session;
  readonly #signal: CallSignal | undefined;
  readonly #onLeft: (session: Session) => void;
  #resolve!: (answer: PollAnswer) => void;
  #reject!: (reason: unknown) => void;
  /** When its window ends. The timer of the session includes this time, so a held call needs no entry in the agenda. */
  readonly until: number;
  readonly answered: Promise<PollAnswer>;

  constructor(session: Session, until: number, signal: CallSignal | undefined, onLeft: (session: Session) => void) {
    this.#session = session;
    this.#signal = signal;
    this.#onLeft = onLeft;
    this.until = until;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    session.addPoll(this);
    signal?.addEventListener("abort", this.#leave);
  }

  answer(answer: PollAnswer): void {
    this.#close();
    this.#resolve(answer);
  }

  fail(reason: unknown): void {
    this.#close();
    this.#reject(reason);
  }

  readonly #leave = (): void => {
    this.fail(this.#signal?.reason);
    this.#onLeft(this.#session);
  };

  #close(): void {
    this.#session.removePoll(this);
    this.#signal?.removeEventListener("abort", this.#leave);
  }
}
