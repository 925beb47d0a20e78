import type { Due } from "../agenda.ts";

/** A first call that does not wait for a slot waits for the decision about its arrival. */
export class ArrivalWait implements Due {
  #resolve!: () => void;
  dueAt = 0;
  agendaIndex = -1;
  readonly decided: Promise<void>;

  constructor() {
    this.decided = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Also runs if the store does not answer within a poll interval. Then the caller gets an answer from what is known. */
  onDue(): void {
    this.#resolve();
  }
}
