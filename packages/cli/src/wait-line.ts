import { fitted } from "./table.ts";

/** Standard error, or a stand-in in tests. */
export interface LineOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const FIRST_MS = 5_000;
const EVERY_MS = 60_000;
const [TO_START, ERASE] = ["\r", "\u001b[K"];

/**
 * Shows why a command waits. On a terminal one line is replaced by each new text, and erased at the end. Otherwise the
 * text is printed after 5 seconds, and then once a minute, for a log.
 */
export class WaitLine {
  readonly #output: LineOutput;
  #text = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(output: LineOutput = process.stderr) {
    this.#output = output;
  }

  show(text: string): void {
    this.#text = text;
    const { isTTY: isTerminal = false, columns = 80 } = this.#output;
    if (isTerminal) this.#output.write(`${TO_START}${fitted(text, columns - 1).trimEnd()}${ERASE}`);
    else this.#timer ??= setTimeout(() => this.#print(), FIRST_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    if (this.#text !== "" && this.#output.isTTY === true) this.#output.write(`${TO_START}${ERASE}`);
    this.#text = "";
  }

  #print(): void {
    this.#output.write(`${this.#text}\n`);
    this.#timer = setTimeout(() => this.#print(), EVERY_MS);
  }
}
