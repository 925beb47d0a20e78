import { createHash } from "node:crypto";
import { type ClientBase, escapeIdentifier, Pool, type PoolClient } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { assertSchema } from "../migrate/migrate.ts";
import { SchemaError } from "../migrate/schema-error.ts";
import { DatabaseError, isConflict, isLostStatement, isUnanswered } from "./database-error.ts";
import type { FunctionCaller, NamedArguments } from "./sql-store.ts";
import type { StoreGauges } from "./store-health.ts";

/** Longer than the pause between the beats of an idle instance: connecting costs the database more than a beat. */
const IDLE_MS = 30_000;

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
 * PGDB1 A call is one statement and one transaction, and depends on nothing that was set in its session. Statements are prepared
 * once per connection, under a name made of their text; behind a transaction pooler that cannot follow prepared statements,
 * the first call that fails for it switches to statements without a name. PGDB2 A connection that failed is not used again; nor are,
 * after a call that got no answer in time, those that have answered nothing since it was sent: they may be as dead, and each would
 * cost another wait. PGDB3 A call that fails because another transaction won is repeated once.
 */
export class PgDatabase implements FunctionCaller {
  readonly schema: string;
  readonly #pool: Pool;
  readonly #statements = new Map<string, { readonly name: string; readonly text: string }>();
  readonly #waits = { count: 0, ms: 0 };
  /** When each connection last showed that it works. */
  readonly #provenAt = new WeakMap<ClientBase, number>();
  /** When the last call was sent that got no answer in time. */
  #unansweredAt = Number.NEGATIVE_INFINITY;
  #isPrepared = true;

  constructor({ dsn, schema, poolSize, timeoutMs }: PgDatabaseOptions) {
    this.schema = schema;
    this.#pool = new Pool({
      application_name: "slotkeeper",
      ...parseDsn(dsn),
      max: poolSize,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
      allowExitOnIdle: true,
    })
      // A restart of the database ends idle connections too. The pool drops them.
      .on("error", () => {})
      // One that breaks in use rejects its query; the event would end the process.
      .on("connect", (client) => {
        client.on("error", () => {});
        this.#provenAt.set(client, performance.now());
      });
  }

  /** Connections, and calls that wait for one: now, and so far. */
  get gauges(): StoreGauges["pool"] {
    const { totalCount: size, idleCount: idle, waitingCount: waiting } = this.#pool;
    return { size, idle, waiting, waits: this.#waits.count, waitedMs: this.#waits.ms };
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
    try {
      const client = await this.#pool.connect();
      try {
        await assertSchema(client, this.schema);
      } finally {
        client.release();
      }
    } catch (error) {
      throw error instanceof SchemaError ? error : new DatabaseError("connect", error);
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #query(name: string, given: NamedArguments, values: unknown[]): Promise<unknown> {
    const { name: prepared, text } = this.#statementOf(name, given);
    const query = this.#isPrepared ? { name: prepared, text, values } : { text, values };
    const client = await this.#provenConnection();
    const sentAt = performance.now();
    try {
      const { rows } = await client.query<{ reply: unknown }>(query);
      this.#provenAt.set(client, performance.now());
      client.release();
      return rows[0]?.reply;
    } catch (error) {
      if (isUnanswered(error)) this.#unansweredAt = Math.max(this.#unansweredAt, sentAt);
      client.release(true);
      throw error;
    }
  }

  /** PGDB2. New connections are proven. */
  async #provenConnection(): Promise<PoolClient> {
    for (;;) {
      const client = await this.#connection();
      if ((this.#provenAt.get(client) ?? 0) >= this.#unansweredAt) return client;
      client.release(true);
    }
  }

  /** Of the pool. A call that finds all of them in use waits, and is counted. */
  async #connection(): Promise<PoolClient> {
    const { idleCount, totalCount, options } = this.#pool;
    if (idleCount > 0 || totalCount < options.max) return this.#pool.connect();
    this.#waits.count++;
    const startedAt = performance.now();
    try {
      return await this.#pool.connect();
    } finally {
      this.#waits.ms += performance.now() - startedAt;
    }
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
