import { Client, type ClientBase, escapeIdentifier } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { explainFailure, MigrateError } from "../failures/explain-failure.ts";
import { type Migration, readMigrations } from "./migration-files.ts";
import { checkSchemaName, createLedger, migrationStep } from "./migration-step.ts";
import { foreignProblem, type MigrationState, readSchemaState, SchemaError, schemaProblem } from "./schema-state.ts";

/**
 * Updates a schema to this version.
 *
 * MIGRATE1 Migrations run in order and once, each in one transaction with its entry in the ledger. A failed one leaves
 *   no changes, and those before it stay applied.
 * MIGRATE2 If two runs start at the same time, the second waits for the first and then finds nothing to do.
 * MIGRATE3 A schema of a newer version, or with an applied migration whose text differs, is refused and not changed.
 * MIGRATE4 It uses one connection, and only locks that end with a transaction, so it works through a transaction
 *   pooler.
 */
export interface MigrateOptions {
  /** The address of the database, with a role that may create tables. */
  readonly dsn: string;
  /** The schema of the tables. Default: `public`. */
  readonly schema?: string | undefined;
  /** Default: the migrations of this package. Tests pass their own. */
  readonly migrations?: readonly Migration[] | undefined;
  /** Called for each migration as soon as it is committed. */
  readonly onApplied?: ((migration: Migration) => void) | undefined;
}

/**
 * Returns the migrations that this call applied. Throws a `MigrateError` or a `SchemaError`.
 *
 * @example
 * ```ts
 * import { migrate } from "@slotkeeper/postgres";
 *
 * const applied = await migrate({ dsn: "postgres://owner:secret@127.0.0.1:5432/slots" });
 * for (const { file } of applied) console.log(file);
 * ```
 */
export function migrate(options: MigrateOptions): Promise<readonly Migration[]> {
  return onDatabase(options, async (client, schema, migrations) => {
    const applied: Migration[] = [];
    for (;;) {
      const next = await applyNext(client, schema, migrations);
      if (next === undefined) return applied;
      applied.push(next);
      options.onApplied?.(next);
    }
  });
}

/** The state of each migration, in order. Changes nothing. */
export function migrationStates(options: MigrateOptions): Promise<readonly MigrationState[]> {
  return onDatabase(options, readSchemaState);
}

/** Throws a `SchemaError` unless the schema has exactly this version. A server calls it before it serves. */
export async function assertSchema(client: ClientBase, schema = "public"): Promise<void> {
  const problem = schemaProblem(schema, await readSchemaState(client, schema, readMigrations()));
  if (problem !== undefined) throw problem;
}

async function onDatabase<T>(
  { dsn, schema = "public", migrations = readMigrations() }: MigrateOptions,
  work: (client: ClientBase, schema: string, migrations: readonly Migration[]) => Promise<T>,
): Promise<T> {
  checkSchemaName(schema);
  const config = { application_name: "slotkeeper migrate", ...parseDsn(dsn) };
  const client = new Client(config);
  // A broken connection rejects the running query. Without this listener the event would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    return await work(client, schema, migrations);
  } catch (error) {
    throw error instanceof SchemaError || error instanceof MigrateError
      ? error
      : explainFailure(error, config, "migrate");
  } finally {
    await client.end().catch(() => {});
  }
}

async function applyNext(
  client: ClientBase,
  schema: string,
  migrations: readonly Migration[],
): Promise<Migration | undefined> {
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock(hashtext('slotkeeper migrate'), hashtext($1))", [schema]);
    const states = await readSchemaState(client, schema, migrations);
    const problem = foreignProblem(schema, states);
    if (problem !== undefined) throw problem;
    const number = states.find(({ state }) => state === "pending")?.number;
    const next = migrations.find((migration) => migration.number === number);
    if (next !== undefined) await apply(client, schema, next);
    await client.query("COMMIT");
    return next;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

async function apply(client: ClientBase, schema: string, migration: Migration): Promise<void> {
  // Not IF NOT EXISTS: that requires the right to create schemas even if the schema exists.
  const { rows } = await client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]);
  if (rows.length === 0) await client.query(`CREATE SCHEMA ${escapeIdentifier(schema)}`);
  try {
    await client.query(`${createLedger(schema)}\n${migrationStep(schema, migration)}`);
  } catch (error) {
    (error as Error).message = `in ${migration.file}: ${(error as Error).message}`;
    throw error;
  }
}
