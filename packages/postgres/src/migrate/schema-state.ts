import { type ClientBase, escapeIdentifier } from "pg";
import type { Migration } from "./migration-files.ts";
import { SchemaError } from "./schema-error.ts";

/** Whether a migration is applied. */
export interface MigrationState {
  readonly number: number;
  readonly name: string;
  /** `changed`: applied with a different text. `unknown`: applied by a newer version. */
  readonly state: "applied" | "pending" | "changed" | "unknown";
  readonly appliedAt: Date | undefined;
}

interface AppliedRow {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly applied_at: Date;
}

/** The qualified name of the table that lists the applied migrations. */
export function ledgerOf(schema: string): string {
  return `${escapeIdentifier(schema)}.slotkeeper_migration`;
}

/** The state of each migration in this database. Only reads. */
export async function readSchemaState(
  client: ClientBase,
  schema: string,
  migrations: readonly Migration[],
): Promise<readonly MigrationState[]> {
  const ledger = ledgerOf(schema);
  const { rows: found } = await client.query("SELECT WHERE to_regclass($1) IS NOT NULL", [ledger]);
  const applied =
    found.length === 0
      ? []
      : (await client.query<AppliedRow>(`SELECT number, name, checksum, applied_at FROM ${ledger}`)).rows;
  return [...migrations.map((migration) => stateOf(migration, applied)), ...unknownTo(migrations, applied)].sort(
    (a, b) => a.number - b.number,
  );
}

function stateOf({ number, name, checksum }: Migration, applied: readonly AppliedRow[]): MigrationState {
  const row = applied.find((candidate) => candidate.number === number);
  if (row === undefined) return { number, name, state: "pending", appliedAt: undefined };
  return { number, name, state: row.checksum === checksum ? "applied" : "changed", appliedAt: row.applied_at };
}

function unknownTo(migrations: readonly Migration[], applied: readonly AppliedRow[]): readonly MigrationState[] {
  const known = new Set(migrations.map(({ number }) => number));
  return applied
    .filter(({ number }) => !known.has(number))
    .map(({ number, name, applied_at }) => ({ number, name, state: "unknown", appliedAt: applied_at }));
}

/** Throws unless every applied migration belongs to this version and is unchanged. */
export function refuseForeignSchema(schema: string, states: readonly MigrationState[]): void {
  const unknown = states.filter(({ state }) => state === "unknown");
  if (unknown.length > 0) {
    throw new SchemaError(
      "SCHEMA_NEW",
      schema,
      `The schema ${escapeIdentifier(schema)} was migrated by a newer version of slotkeeper (it has ${list(unknown)}). Nothing was changed. Use that version, or a later one.`,
    );
  }
  const changed = states.filter(({ state }) => state === "changed");
  if (changed.length > 0) {
    throw new SchemaError(
      "SCHEMA_CHANGED",
      schema,
      `The schema ${escapeIdentifier(schema)} was migrated with other texts of ${list(changed)} than this version has. Nothing was changed. Use the version that applied them.`,
    );
  }
  const skipped = states.filter((state, index) => state.state === "pending" && hasAppliedAfter(states, index));
  if (skipped.length > 0) {
    throw new SchemaError(
      "SCHEMA_CHANGED",
      schema,
      `The schema ${escapeIdentifier(schema)} lacks ${list(skipped)}, though later ones were applied. Nothing was changed. Use the version that applied them.`,
    );
  }
}

/** Throws a `SchemaError` unless the schema has exactly this version. A server calls it before it starts. */
export function refuseOtherSchema(schema: string, states: readonly MigrationState[]): void {
  refuseForeignSchema(schema, states);
  const pending = states.filter(({ state }) => state === "pending");
  if (pending.length === 0) return;
  const isMissing = pending.length === states.length;
  throw new SchemaError(
    isMissing ? "SCHEMA_MISSING" : "SCHEMA_OLD",
    schema,
    `The schema ${escapeIdentifier(schema)} ${isMissing ? "is not set up" : `lacks ${list(pending)}`}. Run: slotkeeper migrate`,
  );
}

/** The same without throwing, for `migrate --status`. */
export function schemaProblem(schema: string, states: readonly MigrationState[]): SchemaError | undefined {
  try {
    refuseOtherSchema(schema, states);
    return undefined;
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
}

function hasAppliedAfter(states: readonly MigrationState[], index: number): boolean {
  return states.slice(index).some(({ state }) => state === "applied");
}

function list(states: readonly MigrationState[]): string {
  return states.map(({ number, name }) => `${String(number).padStart(4, "0")}_${name}`).join(", ");
}
