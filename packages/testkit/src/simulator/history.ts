import type { Clock } from "slotkeeper";

/** The number of lines that are kept: enough to see what led to a violation. */
const LENGTH = 40;

/** The last events, for the person who reads a failure. It stops at the first violation. */
export class History {
  readonly #clock: Clock;
  readonly #startAt: number;
  #lines: string[] = [];
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startAt = clock.now();
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  note(text: string): void {
    if (this.#isClosed) return;
    this.#lines.push(`${(this.#clock.now() - this.#startAt).toFixed(0).padStart(6)} ${text}`);
    if (this.#lines.length > 2 * LENGTH) this.#lines = this.#lines.slice(-LENGTH);
  }

  close(): void {
    this.#isClosed = true;
    this.#lines = this.#lines.slice(-LENGTH);
  }
}
