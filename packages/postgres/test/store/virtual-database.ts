import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";

/** A store whose database has the time that the test says: the database's only clock is replaced in this database. */
export class VirtualDatabase {
  readonly store: PostgresStore;
  readonly client: Client;
  readonly #database: TestDatabase;
  #now: number;

  private constructor(database: TestDatabase, store: PostgresStore, client: Client, now: number) {
    this.#database = database;
    this.store = store;
    this.client = client;
    this.#now = now;
  }

  /** `options`: settings that the store's sessions have before it comes. */
  static async open(now: number, poolSize = 1, options?: string): Promise<VirtualDatabase> {
    const database = await TestDatabase.open();
    const client = await database.connect();
    await client.query(`
      CREATE TABLE test_clock (now double precision);
      INSERT INTO test_clock VALUES (${now});
      CREATE OR REPLACE FUNCTION slotkeeper_now() RETURNS double precision
      LANGUAGE sql VOLATILE AS $$ SELECT now FROM public.test_clock $$;`);
    const dsn = new URL(options === undefined ? database.dsn : database.directDsn);
    if (options !== undefined) dsn.searchParams.set("options", options);
    const store = await PostgresStore.open({ dsn: dsn.href, poolSize });
    return new VirtualDatabase(database, store, client, now);
  }

  get dsn(): string {
    return this.#database.dsn;
  }

  async pass(ms: number): Promise<void> {
    this.#now += ms;
    await this.client.query("UPDATE test_clock SET now = $1", [this.#now]);
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.#database.close();
  }
}
