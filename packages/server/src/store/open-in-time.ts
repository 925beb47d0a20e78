import { MigrateError } from "@slotkeeper/postgres";
import type { Backend } from "../config/settings.ts";
import { explainStart } from "../explain-start.ts";
import type { Logger } from "../log/logger.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2_000;
/** An unchanged reason is logged again after this time. */
const SAY_EVERY_MS = 5_000;

export interface OpenInTimeInit {
  readonly backend: Backend;
  readonly log: Logger;
  readonly pause: (ms: number) => Promise<void>;
}

/**
 * Opens the store, and waits for a database that is not there yet: one that is starting, or whose name is not known.
 * Problems that waiting does not solve (a password, a right, a schema of another version) are thrown at once, and so is
 * everything after the deadline.
 */
export async function openInTime<T>(open: () => Promise<T>, { backend, log, pause }: OpenInTimeInit): Promise<T> {
  const waitMs = backend.mode === "memory" ? 0 : backend.startWaitMs;
  const startedAt = performance.now();
  let said = { reason: "", at: Number.NEGATIVE_INFINITY };
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      const opened = await open();
      if (said.reason !== "")
        log.info("the database is reachable", { waitedMs: Math.round(performance.now() - startedAt) });
      return opened;
    } catch (error) {
      const explained = explainStart(error, backend);
      const now = performance.now();
      const leftMs = startedAt + waitMs - now;
      const mayPass = explained instanceof MigrateError && explained.isRetryable;
      if (!mayPass || leftMs <= 0) throw explained;
      if (explained.what !== said.reason || now - said.at >= SAY_EVERY_MS) {
        said = { reason: explained.what, at: now };
        log.warn("waiting for the database", { reason: explained.what, leftSeconds: Math.ceil(leftMs / 1000) });
      }
      await pause(Math.min(pauseMs, leftMs));
    }
  }
}
