import type { Due } from "../agenda.ts";

/** What a first call that does not wait for a slot waits for: that its session's arrival was decided. */
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

  /** Also when the store has not answered within an interval: the caller is answered with what is known. */
  onDue(): void {
    this.#resolve();
  }
}
