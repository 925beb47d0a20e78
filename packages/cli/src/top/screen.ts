import type { Line } from "./draw-hosts.ts";

const ESC = "\u001b[";
const ENTER = `${ESC}?1049h${ESC}?25l`;
const LEAVE = `${ESC}?25h${ESC}?1049l`;
/** Terminals that support these codes show each picture in one piece; others ignore them. */
const [BEGIN, END] = [`${ESC}?2026h`, `${ESC}?2026l`];

const LOOKS: { readonly [look in NonNullable<Line["look"]>]: string } = {
  title: `${ESC}1m`,
  heading: `${ESC}2m`,
  chosen: `${ESC}7m`,
  warning: `${ESC}33m`,
  quiet: `${ESC}2m`,
};

/** The terminal while `top` uses it: the alternate screen, no cursor, single keys. It is always restored. */
export class Screen {
  readonly #hasColours: boolean;
  #isOpen = false;
  readonly #close = () => this.close();

  constructor(hasColours: boolean) {
    this.#hasColours = hasColours;
  }

  open(onKeys: (input: string) => void, onResize: () => void): void {
    this.#isOpen = true;
    process.stdout.write(ENTER);
    process.stdin.setRawMode(true);
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", onKeys);
    process.stdin.resume();
    process.stdout.on("resize", onResize);
    process.on("exit", this.#close);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.stdin.setRawMode(false);
    process.stdin.removeAllListeners("data");
    process.stdin.pause();
    process.stdout.removeAllListeners("resize");
    process.stdout.write(LEAVE);
    process.removeListener("exit", this.#close);
  }

  show(lines: readonly Line[]): void {
    if (!this.#isOpen) return;
    const text = lines.map((line) => `${this.#dressed(line)}${ESC}K`).join("\r\n");
    process.stdout.write(`${BEGIN}${ESC}H${text}${ESC}J${END}`);
  }

  /** Without colours, the selected line is still highlighted. */
  #dressed({ text, look }: Line): string {
    if (look === undefined || (!this.#hasColours && look !== "chosen")) return text;
    return `${LOOKS[look]}${text}${ESC}0m`;
  }
}
