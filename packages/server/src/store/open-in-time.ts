import { DatabaseError, explainFailure, MigrateError, parseDsn } from "@slotkeeper/postgres";
import type { Backend } from "../config/settings.ts";
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
  const waitMs = "startWaitMs" in backend ? backend.startWaitMs : 0;
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

/** Turns an error of opening the store into a message that a person can act on. `migrate` uses the same table. */
export function explainStart(error: unknown, backend: Backend): unknown {
  if (backend.mode === "postgrest" && error instanceof DatabaseError) {
    const { state, cause } = error;
    const { what = error.message, fix } = cause as Partial<Pick<MigrateError, "what" | "fix">>;
    return new MigrateError(state, `Cannot use the database through PostgREST at ${backend.baseUrl}: ${what}`, fix);
  }
  if (backend.mode !== "postgres") return error;
  return error instanceof DatabaseError ? explainFailure(error.cause, parseDsn(backend.dsn), "serve") : error;
}
