/** How a schema differs from this version's. */
export type SchemaProblem =
  /** Nothing was ever migrated there. */
  | "SCHEMA_MISSING"
  /** Some migrations of this version are not applied. */
  | "SCHEMA_OLD"
  /** A later version migrated it. */
  | "SCHEMA_NEW"
  /** What was applied is not what this version has under the same number. */
  | "SCHEMA_CHANGED";

/** The database's schema is not this version's. The message says what to do. */
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
