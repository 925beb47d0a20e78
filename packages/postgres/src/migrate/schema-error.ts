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
