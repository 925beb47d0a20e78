import { DatabaseError, explainFailure, MigrateError, parseDsn } from "@slotkeeper/postgres";
import { ConfigError } from "./config/config-error.ts";
import type { Backend } from "./config/settings.ts";

/** Makes of what opening the store threw something that a person can act on, from the table that `migrate` goes by, too. */
export function explainStart(error: unknown, backend: Backend): unknown {
  if (backend.mode === "postgrest" && error instanceof DatabaseError) {
    const { state, cause } = error;
    const reason = cause instanceof Error ? cause.message : error.message;
    return new MigrateError(state, `Cannot use the database through PostgREST at ${backend.baseUrl}: ${reason}`);
  }
  if (backend.mode !== "postgres") return error;
  // Nothing else of opening it is a misuse; and it never quotes what was given.
  if (error instanceof TypeError) return new ConfigError([`\`backend.postgres.dsn\`: ${error.message}`]);
  return error instanceof DatabaseError ? explainFailure(error.cause, parseDsn(backend.dsn), "serve") : error;
}
