import { createHash } from "node:crypto";
import { escapeIdentifier } from "pg";
import { assertSchema } from "../migrate/migrate.ts";
import { SchemaError } from "../migrate/schema-state.ts";
import { type ConnectionOptions, Connections } from "./connections.ts";
import { DatabaseError, isConflict, isLostStatement } from "./database-error.ts";
import type { FunctionCaller, NamedArguments } from "./sql-store.ts";

export interface PgDatabaseOptions extends ConnectionOptions {
  readonly schema: string;
}

/**
 * Calls the functions of a schema through a pool of connections.
 *
 * PGDB1 A call is one statement and one transaction, and depends on no setting of its session. Statements are prepared
 *   once per connection, with a name made from their text. If a transaction pooler does not track prepared statements,
 *   the first call that fails because of it switches to statements without a name.
 * PGDB2 A call that fails because another transaction won is repeated once.
 */
export class PgDatabase implements FunctionCaller {
  readonly schema: string;
  readonly connections: Connections;
  readonly #statements = new Map<string, { readonly name: string; readonly text: string }>();
  #isPrepared = true;

  constructor({ schema, ...options }: PgDatabaseOptions) {
    this.schema = schema;
    this.connections = new Connections(options);
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

  /** Throws a `SchemaError` unless the schema has this version. */
  async check(): Promise<void> {
    try {
      await this.connections.run((client) => assertSchema(client, this.schema));
    } catch (error) {
      throw error instanceof SchemaError ? error : new DatabaseError("connect", error);
    }
  }

  async #query(name: string, given: NamedArguments, values: unknown[]): Promise<unknown> {
    const { name: prepared, text } = this.#statementOf(name, given);
    const query = this.#isPrepared ? { name: prepared, text, values } : { text, values };
    const { rows } = await this.connections.run((client) => client.query<{ reply: unknown }>(query));
    return rows[0]?.reply;
  }

  #statementOf(name: string, given: NamedArguments): { readonly name: string; readonly text: string } {
    let statement = this.#statements.get(name);
    if (statement === undefined) {
      const list = Object.keys(given).map((key, at) => `${key} => $${at + 1}`);
      const text = `SELECT ${escapeIdentifier(this.schema)}.${name}(${list.join(", ")}) AS reply`;
      // A pooler shares sessions between clients with different schemas and versions, so each name must belong to one
      // text.
      statement = { name: `slotkeeper_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`, text };
      this.#statements.set(name, statement);
    }
    return statement;
  }
}

function encode(value: unknown): unknown {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? JSON.stringify(value) : value;
}
