import type { FairQueue } from "@slotkeeper/queue";
import { LONGEST_DELAY_MS } from "slotkeeper/parts";
import type { Logger } from "../log/logger.ts";

/** The steps of a flush, and which of them failed. */
export interface Flushed {
  readonly swept: { readonly [what: string]: number };
  readonly failures: readonly { readonly step: string; readonly error: unknown }[];
}

/** Cleans up the store at intervals, and on demand. A failure is logged, and the next run is not affected. */
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
    this.#timer = setInterval(() => void this.#sweep(), Math.min(intervalMs, LONGEST_DELAY_MS)).unref();
  }

  async #sweep(): Promise<void> {
    try {
      const { failures } = await this.#queue.sweep();
      for (const error of failures) this.#log.warn("cleanup step failed", { error });
    } catch (error) {
      this.#log.warn("cleanup failed", { error });
    }
  }

  /** Ends expired sessions, cleans the store and pushes the metrics. Each step runs even if another one fails. */
  async flush(push: () => Promise<void>): Promise<Flushed> {
    const swept: { [what: string]: number } = {};
    const failures: { step: string; error: unknown }[] = [];
    const step = async (name: string, work: () => Promise<void> | void) => {
      try {
        await work();
      } catch (error) {
        failures.push({ step: name, error });
      }
    };
    await step("session sweep", () => {
      swept["endedHere"] = this.#queue.sweepSessions();
    });
    await step("store cleanup", async () => {
      const { failures: failed, hosts } = await this.#queue.sweep();
      swept["hosts"] = hosts;
      failures.push(...failed.map((error) => ({ step: "store cleanup", error })));
    });
    await step("metrics push", push);
    return { swept, failures };
  }
}
