import type { CallLine, CallName, HistoryLine } from "./line.ts";

/** A call that was sent. It becomes a line when it is answered or given up. */
export interface OpenCall {
  answered(status: number, answer: object): void;
  gaveUp(): void;
}

export interface RecorderOptions {
  /** The clock of the clients. Default: `performance.now()`. */
  readonly now?: () => number;
  /** Gets every line as it is finished. Default: the lines are kept in `lines`. */
  readonly write?: (line: HistoryLine) => void;
}

/** Writes down what clients see. All of them share its clock. */
export class HistoryRecorder {
  readonly #now: () => number;
  readonly #write: (line: HistoryLine) => void;
  readonly #open = new Set<CallLine>();
  /** The finished lines, unless they are written elsewhere. */
  readonly lines: HistoryLine[] = [];

  constructor({ now = () => performance.now(), write }: RecorderOptions = {}) {
    this.#now = now;
    this.#write = write ?? ((line) => this.lines.push(line));
  }

  now(): number {
    return this.#now();
  }

  /** Writes a line that is no call. */
  note(line: Exclude<HistoryLine, CallLine>): void {
    this.#write(line);
  }

  /** A call that is being sent. */
  sent(call: CallName, ask: object, client?: string): OpenCall {
    const line: CallLine = { kind: "call", ...(client !== undefined && { client }), call, sentAt: this.#now(), ask };
    this.#open.add(line);
    const end = (more: Partial<CallLine>) => {
      if (this.#open.delete(line)) this.#write({ ...line, ...more });
    };
    return {
      answered: (status, answer) => end({ answeredAt: this.#now(), status, answer }),
      gaveUp: () => end({ gaveUpAt: this.#now() }),
    };
  }

  /** Writes the calls that are still open, without an answer. */
  close(): void {
    for (const line of this.#open) this.#write(line);
    this.#open.clear();
  }
}
