import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";

const CAUGHT = ["SIGINT", "SIGTERM", "SIGHUP"] as const satisfies NodeJS.Signals[];

/** The exit code that a shell reports for a process that a signal ended. */
export function exitOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** Signals to this process end its wait, so that it leaves the queue, and go to the command that it runs. */
export class Signals {
  readonly #wait = new AbortController();
  readonly #listeners = CAUGHT.map((signal) => [signal, () => this.#on(signal)] as const);
  received: NodeJS.Signals | undefined;
  child: ChildProcess | undefined;

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
    this.child?.kill(signal);
  }
}
