import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("child.js", import.meta.url));

/** Listeners of a service's events that cost this process nothing. */
export class Listeners {
  readonly #child: ChildProcess;

  constructor(url: string) {
    this.#child = fork(CHILD, [url]);
  }

  /** Sets the number of listeners; returns what all of them have been sent so far. */
  async set(count: number): Promise<{ readonly bytes: number }> {
    this.#child.send(count);
    const [counts] = (await once(this.#child, "message")) as [{ bytes: number }];
    return counts;
  }

  close(): void {
    this.#child.kill();
  }
}
