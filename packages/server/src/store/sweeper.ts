import type { FairQueue } from "@slotkeeper/queue";
import type { Logger } from "../log/logger.ts";

/** The longest interval that timers of the host support. */
const LONGEST_MS = 2 ** 31 - 1;

/** Cleans up the store at intervals. A failure is logged, and the next run is not affected. */
export class Sweeper {
  readonly #queue: FairQueue;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: FairQueue, log: Logger) {
    this.#queue = queue;
    this.#log = log;
  }

  /** `undefined` stops the clean-up. */
  every(intervalMs: number | undefined): void {
    clearInterval(this.#timer);
    if (intervalMs === undefined) return;
    this.#timer = setInterval(() => void this.#sweep(), Math.min(intervalMs, LONGEST_MS)).unref();
  }

  async #sweep(): Promise<void> {
    try {
      const { failures } = await this.#queue.sweep();
      for (const error of failures) this.#log.warn("cleanup step failed", { error });
    } catch (error) {
      this.#log.warn("cleanup failed", { error });
    }
  }
}
