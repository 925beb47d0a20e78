import type { Agenda, Due } from "../agenda.ts";

/** A call that must reach the store though nobody waits for it. */
interface Letter {
  readonly operation: string;
  readonly host: string | undefined;
  /** Past this the store has ended the matter by itself. */
  readonly giveUpAt: number;
  send(): Promise<void>;
  /** Sent, or given up. */
  done(): void;
}

/** Sends at once, and again every interval until it succeeds or the matter is over. Order does not matter to a store. */
export class Outbox {
  readonly #agenda: Agenda;
  readonly #now: () => number;
  readonly #retryMs: () => number;
  readonly #onError: (letter: Letter, error: unknown) => void;
  #size = 0;

  constructor(
    agenda: Agenda,
    now: () => number,
    retryMs: () => number,
    onError: (letter: Letter, error: unknown) => void,
  ) {
    this.#agenda = agenda;
    this.#now = now;
    this.#retryMs = retryMs;
    this.#onError = onError;
  }

  /** Letters not yet sent. */
  get size(): number {
    return this.#size;
  }

  post(letter: Letter): void {
    this.#size++;
    void this.#deliver(letter);
  }

  async #deliver(letter: Letter): Promise<void> {
    try {
      await letter.send();
    } catch (error) {
      this.#onError(letter, error);
      if (this.#now() < letter.giveUpAt) {
        this.#later(letter);
        return;
      }
    }
    this.#size--;
    letter.done();
  }

  #later(letter: Letter): void {
    const retry: Due = { agendaIndex: -1, dueAt: 0, onDue: () => void this.#deliver(letter) };
    this.#agenda.schedule(retry, this.#now() + this.#retryMs());
  }
}
