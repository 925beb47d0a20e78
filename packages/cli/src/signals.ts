import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";

const CAUGHT = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const satisfies NodeJS.Signals[];
/** The signals that a key of the terminal sends to each process of the foreground group. */
const OF_KEYS: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);

/** The exit code that a shell reports for a process that a signal ended. */
export function exitOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/**
 * Signals to this process end its wait, so that it leaves the queue, and go to the command that it runs. The command is
 * in the same process group, so it has got a signal of the terminal already.
 */
export class Signals {
  readonly #wait = new AbortController();
  readonly #listeners = CAUGHT.map((signal) => [signal, () => this.#on(signal)] as const);
  received: NodeJS.Signals | undefined;
  child: Pick<ChildProcess, "kill"> | undefined;

  constructor() {
    for (const [signal, listener] of this.#listeners) process.on(signal, listener);
  }

  get waiting(): AbortSignal {
    return this.#wait.signal;
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #on(signal: NodeJS.Signals): void {
    this.received = signal;
    this.#wait.abort();
    if (!(OF_KEYS.has(signal) && isInForeground())) this.child?.kill(signal);
  }
}

/** Whether this process is in the foreground group of its terminal. Fields 5 and 8 of `stat` follow the name. */
function isInForeground(): boolean {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[2] === fields[5];
  } catch {
    // Without `/proc`: on a terminal.
    return process.stdin.isTTY;
  }
}
