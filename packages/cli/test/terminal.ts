import { fileURLToPath } from "node:url";
import { type IPty, spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { afterEach } from "vitest";

const BIN = fileURLToPath(new URL("../bin/slotkeeper.mjs", import.meta.url));

interface SessionOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly environment?: object;
  /** Instead of the command. */
  readonly program?: string;
}

/** The command, or another program, in a pseudo-terminal, and what its screen shows. */
export class TerminalSession {
  readonly #pty: IPty;
  readonly #screen: InstanceType<typeof xterm.Terminal>;
  readonly exited: Promise<number>;
  #isOver = false;

  constructor(args: readonly string[], { columns = 100, rows = 24, environment = {}, program }: SessionOptions = {}) {
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SLOTKEEPER_"));
    const shown = { ...Object.fromEntries(kept), TERM: "xterm-256color", ...environment };
    const env = shown as unknown as Record<string, string>;
    const [file, all] = program === undefined ? [process.execPath, [BIN, ...args]] : [program, [...args]];
    this.#pty = spawn(file, all, { cols: columns, rows, env });
    this.#pty.onData((data) => this.#screen.write(data));
    this.exited = new Promise((resolve) =>
      this.#pty.onExit(({ exitCode }) => {
        this.#isOver = true;
        // The screen takes what it got in a later turn. After this it shows everything.
        this.#screen.write("", () => resolve(exitCode));
      }),
    );
    started.add(this);
  }

  press(keys: string): void {
    this.#pty.write(keys);
  }

  resize(columns: number, rows: number): void {
    this.#screen.resize(columns, rows);
    this.#pty.resize(columns, rows);
  }

  kill(signal: NodeJS.Signals): void {
    this.#pty.kill(signal);
  }

  /** The current lines of the screen. */
  get lines(): string[] {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_, row) =>
      (active.getLine(active.viewportY + row)?.translateToString(true, 0, this.#screen.cols) ?? "").trimEnd(),
    );
  }

  get text(): string {
    return this.lines.join("\n");
  }

  get isOnAlternateScreen(): boolean {
    return this.#screen.buffer.active.type === "alternate";
  }

  /** The names in the first column, from top to bottom. */
  get hosts(): string[] {
    return this.lines.map((line) => /^[\w.-]+\.example\b/.exec(line)?.[0]).filter((name) => name !== undefined);
  }

  async end(): Promise<void> {
    if (!this.#isOver) this.#pty.kill("SIGKILL");
    await this.exited;
    this.#screen.dispose();
  }
}

const started = new Set<TerminalSession>();

afterEach(async () => {
  for (const session of started) await session.end();
  started.clear();
});
