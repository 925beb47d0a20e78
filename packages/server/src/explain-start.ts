import { DatabaseError, explainFailure, MigrateError, parseDsn } from "@slotkeeper/postgres";
import type { Backend } from "./config/settings.ts";

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
