import { Client, type ClientBase, escapeIdentifier } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { type Migration, readMigrations } from "./migration-files.ts";
import {
  ledgerOf,
  type MigrationState,
  readSchemaState,
  refuseForeignSchema,
  refuseOtherSchema,
} from "./schema-state.ts";

/**
 * Brings a schema to this version.
 *
 * M1 in order, each migration once, each in a transaction with its entry in the ledger: a failure leaves the ones before
 *    it applied and nothing of its own. M2 runs at the same time take turns, and the second finds nothing to do.
 * M3 a schema of a newer version, or with an applied migration that reads otherwise, is refused and not touched.
 * M4 needs one connection and only locks that end with a transaction: it works through a transaction pooler.
 */
export interface MigrateOptions {
  readonly dsn: string;
  readonly schema?: string | undefined;
  /** Those of this package, unless a test brings its own. */
  readonly migrations?: readonly Migration[] | undefined;
}

/** Returns what was applied now. */
export function migrate(options: MigrateOptions): Promise<readonly Migration[]> {
  const { schema, migrations } = resolved(options);
  return withClient(options.dsn, async (client) => {
    const applied: Migration[] = [];
    for (;;) {
      const next = await applyNext(client, schema, migrations);
      if (next === undefined) return applied;
      applied.push(next);
    }
  });
}

export function migrationStates(options: MigrateOptions): Promise<readonly MigrationState[]> {
  const { schema, migrations } = resolved(options);
  return withClient(options.dsn, (client) => readSchemaState(client, schema, migrations));
}

/** Throws a `SchemaError` unless the schema is exactly this version's. */
export async function assertSchema(client: ClientBase, schema = "public"): Promise<void> {
  refuseOtherSchema(schema, await readSchemaState(client, schema, readMigrations()));
}

/** Everything `migrate` runs on an empty database, for a person to read or to run; an applied migration refuses to run again. */
export function migrationScript({
  schema = "public",
  migrations = readMigrations(),
}: Omit<MigrateOptions, "dsn">): string {
  const steps = migrations.map((migration) => `BEGIN;\n${stepOf(schema, migration)}\nCOMMIT;\n`);
  return [createLedger(schema), ...steps].join("\n");
}

function resolved({ schema = "public", migrations = readMigrations() }: MigrateOptions) {
  if (schema === "" || schema.length > 63 || schema.includes("\0")) {
    throw new TypeError(`Expected \`schema\` to be an identifier of 1 to 63 characters, got ${JSON.stringify(schema)}`);
  }
  return { schema, migrations };
}

async function withClient<T>(dsn: string, work: (client: ClientBase) => Promise<T>): Promise<T> {
  const client = new Client({ application_name: "slotkeeper migrate", ...parseDsn(dsn) });
  try {
    await client.connect();
    return await work(client);
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
    refuseForeignSchema(schema, states);
    const number = states.find(({ state }) => state === "pending")?.number;
    const next = migrations.find((migration) => migration.number === number);
    if (next !== undefined) await client.query(`${createLedger(schema)}\n${stepOf(schema, next)}`);
    await client.query("COMMIT");
    return next;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

function createLedger(schema: string): string {
  return `CREATE SCHEMA IF NOT EXISTS ${escapeIdentifier(schema)};
CREATE TABLE IF NOT EXISTS ${ledgerOf(schema)} (
  number int PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);`;
}

/** The search path is part of the step: functions keep it with SET search_path FROM CURRENT. */
function stepOf(schema: string, { number, name, checksum, sql }: Migration): string {
  return `-- ${String(number).padStart(4, "0")}_${name}
SET LOCAL search_path = ${escapeIdentifier(schema)}, pg_temp;
SET LOCAL client_min_messages = warning;
INSERT INTO ${ledgerOf(schema)} (number, name, checksum) VALUES (${number}, '${name}', '${checksum}');
${sql}`;
}
