import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { commandIn, THIS_CHECKOUT } from "./checkout.ts";
import { cleanEnvironment } from "./clean-environment.ts";

const CLOCK_SKEW = new URL("../../bin/clock-skew.mjs", import.meta.url).href;

/** The number of log lines that are kept, to be shown after a failure. */
const KEPT_LINES = 200;

export interface ServeProcessOptions {
  /** By how much the clock of the process is ahead of the machine's, in milliseconds. */
  readonly clockSkewMs?: number;
  /** The checkout whose command runs. Default: this one. */
  readonly checkout?: string;
}

/** One real process of `slotkeeper serve`. It needs a build. */
export class ServeProcess {
  readonly url: string;
  readonly exited: Promise<void>;
  /** The newest lines of its log. */
  readonly log: string[] = [];
  readonly #child: ChildProcess;

  /** Resolves when it listens. */
  static async start(
    configFile: string,
    { clockSkewMs = 0, checkout = THIS_CHECKOUT }: ServeProcessOptions = {},
  ): Promise<ServeProcess> {
    const preload = clockSkewMs === 0 ? [] : ["--import", CLOCK_SKEW];
    const env = { ...cleanEnvironment(), CLOCK_SKEW_MS: `${clockSkewMs}` };
    const args = [...preload, commandIn(checkout), "serve", "-c", configFile, "--json"];
    // In its own process group: a Ctrl-C is for the program that started it, which ends this process itself.
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    endWithThisProcess(child);
    const log: string[] = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      if (log.length > KEPT_LINES) log.shift();
    });
    const url = await addressOf(child);
    if (url === undefined) throw new Error(`An instance did not start:\n${log.join("\n")}`);
    return new ServeProcess(child, url, log);
  }

  private constructor(child: ChildProcess, url: string, log: string[]) {
    this.#child = child;
    this.url = url;
    this.log = log;
    this.exited = new Promise((resolve) => {
      if (this.isRunning) child.once("exit", () => resolve());
      else resolve();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends the process as if the machine had died, even if it is stopped by a signal. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }

  /** Ends the process as a deployment does. */
  async terminate(): Promise<void> {
    this.signal("SIGTERM");
    await this.exited;
  }
}

/** The first address that a process prints on its standard output; `undefined` if it has ended. */
export async function addressOf(child: ChildProcess): Promise<string | undefined> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    const { url } = JSON.parse(line) as { url?: string };
    if (url !== undefined) {
      child.stdout?.resume();
      return url;
    }
  }
  return undefined;
}

const children = new Set<ChildProcess>();

function killAll(): void {
  for (const child of children) child.kill("SIGKILL");
}

/**
 * A process that is left behind would keep the terminal and log forever. There is one listener for all, because a
 * fleet may have many.
 */
function endWithThisProcess(child: ChildProcess): void {
  children.add(child);
  if (children.size === 1) process.once("exit", killAll);
  child.once("exit", () => {
    children.delete(child);
    if (children.size === 0) process.off("exit", killAll);
  });
}
