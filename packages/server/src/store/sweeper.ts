import type { FairQueue } from "@slotkeeper/queue";
import type { Logger } from "../log/logger.ts";

/** The longest interval the host's timers know. */
const LONGEST_MS = 2 ** 31 - 1;

/** Sweeps the store at intervals. A sweep that fails is logged, and the next one comes. */
export class Sweeper {
  readonly #queue: FairQueue;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: FairQueue, log: Logger) {
    this.#queue = queue;
    this.#log = log;
  }

  /** Undefined: never. */
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
