import { escapeIdentifier, Pool } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { assertSchema } from "../migrate/migrate.ts";
import { DatabaseError, isConflict } from "./database-error.ts";

/** Arguments by name: numbers, strings, booleans, null, or what is sent as JSON. */
export type NamedArguments = { readonly [name: string]: unknown };

/** How the store reaches its functions: one call, one statement, one transaction. */
export interface SlotDatabase {
  /** Rejects with a `DatabaseError`. */
  call(name: string, given: NamedArguments): Promise<unknown>;
  close(): Promise<void>;
}

export interface PgDatabaseOptions {
  readonly dsn: string;
  readonly schema: string;
  readonly poolSize: number;
  /** When a call is given up; the server gives up waiting for a host's lock before. */
  readonly timeoutMs: number;
}

/**
 * The functions of a schema through a pool of connections.
 *
 * D1 a call is one statement without a name, and so one transaction: nothing of it stays in the connection, so that a
 * transaction pooler may sit in between. D2 a connection that failed in any way is not used again. D3 a call that fails
 * because another transaction won is made once more.
 */
export class PgDatabase implements SlotDatabase {
  readonly #pool: Pool;
  readonly #schema: string;
  readonly #texts = new Map<string, string>();

  constructor({ dsn, schema, poolSize, timeoutMs }: PgDatabaseOptions) {
    this.#schema = schema;
    this.#pool = new Pool({
      application_name: "slotkeeper",
      ...parseDsn(dsn),
      max: poolSize,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      keepAlive: true,
      // A restart of the database ends idle connections too: the pool drops them, and there is nobody to tell.
      allowExitOnIdle: true,
    }).on("error", () => {});
  }

  async call(name: string, given: NamedArguments): Promise<unknown> {
    const text = this.#textOf(name, given);
    const values = Object.values(given).map(encode);
    try {
      return await this.#query(text, values).catch((error: unknown) => {
        if (!isConflict(error)) throw error;
        return this.#query(text, values);
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
      await assertSchema(client, this.#schema);
    } finally {
      client.release();
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #query(text: string, values: readonly unknown[]): Promise<unknown> {
    const { rows } = await this.#pool.query<{ reply: unknown }>(text, values as unknown[]);
    return rows[0]?.reply;
  }

  #textOf(name: string, given: NamedArguments): string {
    let text = this.#texts.get(name);
    if (text === undefined) {
      const list = Object.keys(given).map((key, at) => `${key} => $${at + 1}`);
      text = `SELECT ${escapeIdentifier(this.#schema)}.${name}(${list.join(", ")}) AS reply`;
      this.#texts.set(name, text);
    }
    return text;
  }
}

function encode(value: unknown): unknown {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}
