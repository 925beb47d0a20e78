import type { FairQueue } from "@slotkeeper/queue";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";

/**
 * From this difference of clocks on, an operator should act: leases and deadlines stay correct, but logs of two machines
 * cannot be compared.
 */
export const SKEW_WARN_MS = 1_000;
const SKEW_WARN_EVERY_MS = 600_000;

/**
 * By how much the store's clock is ahead of this machine's, from the last answers. The error is at most one round trip.
 */
export function clockSkewMs(queue: Pick<FairQueue, "now">): number {
  return queue.now() - Date.now();
}

/** Warns of a large difference, at most once in ten minutes. */
export class SkewWarning {
  readonly #log: Logger;
  readonly #throttle = new LogThrottle({ burst: 1, everyMs: SKEW_WARN_EVERY_MS });

  constructor(log: Logger) {
    this.#log = log;
  }

  check(queue: Pick<FairQueue, "now">): void {
    const skewMs = Math.round(clockSkewMs(queue));
    if (Math.abs(skewMs) <= SKEW_WARN_MS || this.#throttle.take() === undefined) return;
    this.#log.warn(
      "the clock of this machine differs from the clock of the store: leases and waits use the store's, the times in this log do not",
      { skewMs },
    );
  }
}
