import { setTimeout as pause } from "node:timers/promises";
import { dsnOf, type TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";

/** What the server itself counted. Connections report when they close, so close them before reading. */
export class ServerCounts {
  readonly #observer: Client;
  readonly #name: string;

  private constructor(observer: Client, name: string) {
    this.#observer = observer;
    this.#name = name;
  }

  /** Observes from another database, so that its own transactions are not counted. */
  static async of(database: TestDatabase): Promise<ServerCounts> {
    const observer = await database.connect({ connectionString: dsnOf(database.dsn, "postgres") });
    return new ServerCounts(observer, new URL(database.dsn).pathname.slice(1));
  }

  /** The number of transactions, once no client is connected any more. */
  async transactions(): Promise<number> {
    const connected = "SELECT FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
    while ((await this.#observer.query(connected, [this.#name])).rows.length > 0) await pause(10);
    const { rows } = await this.#observer.query<{ total: string }>(
      "SELECT xact_commit + xact_rollback AS total FROM pg_stat_database WHERE datname = $1",
      [this.#name],
    );
    return Number(rows[0]?.total);
  }
}

export interface TableCounts {
  readonly name: string;
  readonly updates: number;
  readonly hot: number;
  readonly bytes: number;
}

/** Connections report their counts when they close, and are listed until then. */
export async function othersAreGone(client: Client): Promise<void> {
  const others = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
  while ((await client.query(others)).rows.length > 0) await pause(10);
}

/** Updates and sizes of the tables, indexes included, by name. */
export async function tableCounts(client: Client): Promise<ReadonlyMap<string, TableCounts>> {
  await client.query("SELECT pg_stat_clear_snapshot()");
  const { rows } = await client.query<{ name: string; updates: string; hot: string; bytes: string }>(`
    SELECT relname AS name, n_tup_upd AS updates, n_tup_hot_upd AS hot, pg_total_relation_size(relid) AS bytes
    FROM pg_stat_user_tables WHERE relname ~ '^(slotkeeper|upstream|THROTTLE)'`);
  const counts = rows.map(({ name, updates, hot, bytes }) => ({
    name,
    updates: Number(updates),
    hot: Number(hot),
    bytes: Number(bytes),
  }));
  return new Map(counts.map((table) => [table.name, table]));
}
