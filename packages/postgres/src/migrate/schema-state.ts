import { type ClientBase, escapeIdentifier } from "pg";
import type { Migration } from "./migration-files.ts";

/** How a schema differs from this version's. */
export type SchemaProblem =
  /** No migration was applied. */
  | "SCHEMA_MISSING"
  /** Some migrations of this version are not applied. */
  | "SCHEMA_OLD"
  /** A newer version migrated the schema. */
  | "SCHEMA_NEW"
  /** An applied migration differs from the one that this version has with the same number. */
  | "SCHEMA_CHANGED";

/** The schema of the database does not have this version. The message says what to do. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  /** How the schema differs. */
  readonly code: SchemaProblem;
  /** The name of the schema. */
  readonly schema: string;

  constructor(code: SchemaProblem, schema: string, message: string) {
    super(message);
    this.code = code;
    this.schema = schema;
  }
}

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

/** Why this version cannot work with the applied migrations: one is not of this version, or has changed. */
export function foreignProblem(schema: string, states: readonly MigrationState[]): SchemaError | undefined {
  const problem = (code: SchemaProblem, what: string, advice: string) =>
    new SchemaError(code, schema, `The schema ${escapeIdentifier(schema)} ${what}. Nothing was changed. ${advice}.`);
  const unknown = states.filter(({ state }) => state === "unknown");
  if (unknown.length > 0) {
    const what = `was migrated by a newer version of slotkeeper (it has ${list(unknown)})`;
    return problem("SCHEMA_NEW", what, "Use that version, or a later one");
  }
  const changed = states.filter(({ state }) => state === "changed");
  if (changed.length > 0) {
    const what = `was migrated with other texts of ${list(changed)} than this version has`;
    return problem("SCHEMA_CHANGED", what, "Use the version that applied them");
  }
  const last = states.findLastIndex(({ state }) => state === "applied");
  const skipped = states.slice(0, last + 1).filter(({ state }) => state === "pending");
  if (skipped.length === 0) return undefined;
  const what = `lacks ${list(skipped)}, though later ones were applied`;
  return problem("SCHEMA_CHANGED", what, "Use the version that applied them");
}

/** Why a service of this version cannot start with the schema. */
export function schemaProblem(schema: string, states: readonly MigrationState[]): SchemaError | undefined {
  const foreign = foreignProblem(schema, states);
  const pending = states.filter(({ state }) => state === "pending");
  if (foreign !== undefined || pending.length === 0) return foreign;
  const isMissing = pending.length === states.length;
  return new SchemaError(
    isMissing ? "SCHEMA_MISSING" : "SCHEMA_OLD",
    schema,
    `The schema ${escapeIdentifier(schema)} ${isMissing ? "is not set up" : `lacks ${list(pending)}`}. Run: slotkeeper migrate`,
  );
}

function list(states: readonly MigrationState[]): string {
  return states.map(({ number, name }) => `${String(number).padStart(4, "0")}_${name}`).join(", ");
}
