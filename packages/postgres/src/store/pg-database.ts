import { createHash } from "node:crypto";
import { escapeIdentifier, Pool } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { assertSchema } from "../migrate/migrate.ts";
import { DatabaseError, isConflict, isLostStatement } from "./database-error.ts";

/** Arguments by name. Objects are sent as JSON, arrays as arrays. */
export type NamedArguments = { readonly [name: string]: unknown };

export interface PgDatabaseOptions {
  readonly dsn: string;
  readonly schema: string;
  readonly poolSize: number;
  /** When a call is given up. The server gives up waiting for a host's lock before that. */
  readonly timeoutMs: number;
}

/**
 * The functions of a schema through a pool of connections.
 *
 * D1 A call is one statement and one transaction, and depends on nothing that was set in its session. Statements are prepared
 * once per connection, under a name made of their text; behind a transaction pooler that cannot follow prepared statements,
 * the first call that fails for it switches to statements without a name. D2 A connection that failed is not used again. D3 A
 * call that fails because another transaction won is repeated once.
 */
export class PgDatabase {
  readonly schema: string;
  readonly #pool: Pool;
  readonly #statements = new Map<string, { readonly name: string; readonly text: string }>();
  #isPrepared = true;

  constructor({ dsn, schema, poolSize, timeoutMs }: PgDatabaseOptions) {
    this.schema = schema;
    this.#pool = new Pool({
      application_name: "slotkeeper",
      ...parseDsn(dsn),
      max: poolSize,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      keepAlive: true,
      allowExitOnIdle: true,
      // A restart of the database ends idle connections too. The pool drops them.
    }).on("error", () => {});
  }

  /** Rejects with a `DatabaseError`. */
  async call(name: string, given: NamedArguments): Promise<unknown> {
    const values = Object.values(given).map(encode);
    try {
      return await this.#query(name, given, values).catch((error: unknown) => {
        if (isLostStatement(error)) this.#isPrepared = false;
        else if (!isConflict(error)) throw error;
        return this.#query(name, given, values);
      });
    } catch (error) {
      throw new DatabaseError(name, error);
    }
  }

  /** Throws a `SchemaError` unless the schema is this version's. */
  async check(): Promise<void> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw new DatabaseError("connect", error);
    });
    try {
      await assertSchema(client, this.schema);
    } finally {
      client.release();
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #query(name: string, given: NamedArguments, values: unknown[]): Promise<unknown> {
    const { name: prepared, text } = this.#statementOf(name, given);
    const query = this.#isPrepared ? { name: prepared, text, values } : { text, values };
    const { rows } = await this.#pool.query<{ reply: unknown }>(query);
    return rows[0]?.reply;
  }

  #statementOf(name: string, given: NamedArguments): { readonly name: string; readonly text: string } {
    let statement = this.#statements.get(name);
    if (statement === undefined) {
      const list = Object.keys(given).map((key, at) => `${key} => $${at + 1}`);
      const text = `SELECT ${escapeIdentifier(this.schema)}.${name}(${list.join(", ")}) AS reply`;
      // Sessions of a pooler are shared by clients with other schemas and versions: one name must mean one text.
      statement = { name: `slotkeeper_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`, text };
      this.#statements.set(name, statement);
    }
    return statement;
  }
}

function encode(value: unknown): unknown {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? JSON.stringify(value) : value;
}
