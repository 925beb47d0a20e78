import { escapeIdentifier } from "pg";
import { type Migration, readMigrations } from "./migration-files.ts";
import { ledgerOf } from "./schema-state.ts";

/** How long a migration may wait for a lock. Other statements that need the same table wait behind it. */
const LOCK_TIMEOUT = "15s";

/** A search path replaces this name, even a quoted one, by the name of the role. */
const ROLE = "$user";

/** Throws a `TypeError` for a name that PostgreSQL would replace or silently shorten. */
export function checkSchemaName(schema: string): void {
  if (schema !== "" && Buffer.byteLength(schema) <= 63 && !schema.includes("\0") && schema !== ROLE) return;
  throw new TypeError(
    `Expected \`schema\` to be a name of 1 to 63 bytes other than "${ROLE}", got ${JSON.stringify(schema)}`,
  );
}

export function createLedger(schema: string): string {
  return `CREATE TABLE IF NOT EXISTS ${ledgerOf(schema)} (
  number int PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);`;
}

/**
 * One migration with its entry in the ledger. The entry comes first, so a second run fails before it changes anything.
 * The search path belongs to the step, because functions store it with SET search_path FROM CURRENT.
 */
export function migrationStep(schema: string, { number, name, file, checksum, sql }: Migration): string {
  return `-- ${file}
SET LOCAL search_path = ${escapeIdentifier(schema)}, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL lock_timeout = '${LOCK_TIMEOUT}';
INSERT INTO ${ledgerOf(schema)} (number, name, checksum) VALUES (${number}, '${name}', '${checksum}');

${sql}`;
}

/**
 * Everything that `migrate` runs on an empty database, in the same order. A person can read it, or run it instead of
 * `migrate`, which then finds nothing to do.
 */
export function migrationScript(schema = "public", migrations: readonly Migration[] = readMigrations()): string {
  checkSchemaName(schema);
  const steps = migrations.map((migration) => `BEGIN;\n${migrationStep(schema, migration)}\nCOMMIT;\n`);
  return [`CREATE SCHEMA IF NOT EXISTS ${escapeIdentifier(schema)};\n${createLedger(schema)}\n`, ...steps].join("\n");
}
