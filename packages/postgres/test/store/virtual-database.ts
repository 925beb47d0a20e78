import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { StoreUnderTest } from "@slotkeeper/testkit/store-conformance";
import type { Client } from "pg";
import { TestClock } from "../test-clock.ts";

/** Two stores, as two instances have them. The test sets the time of their database. */
export class VirtualDatabase implements StoreUnderTest {
  readonly store: PostgresStore;
  readonly other: PostgresStore;
  readonly client: Client;
  readonly database: TestDatabase;
  readonly #clock: TestClock;
  readonly #reopened: PostgresStore[] = [];

  private constructor(database: TestDatabase, stores: readonly PostgresStore[], client: Client, clock: TestClock) {
    const [store, other] = stores as [PostgresStore, PostgresStore];
    this.database = database;
    this.store = store;
    this.other = other;
    this.client = client;
    this.#clock = clock;
  }

  /** `options`: settings that the stores' sessions have before any call. */
  static async open({ poolSize = 4, options = "" } = {}): Promise<VirtualDatabase> {
    const database = await TestDatabase.open();
    const client = await database.connect();
    const clock = await TestClock.install(client);
    const dsn = new URL(options === "" ? database.dsn : database.directDsn);
    if (options !== "") dsn.searchParams.set("options", options);
    const open = () => PostgresStore.open({ dsn: dsn.href, listenDsn: database.directDsn, poolSize });
    return new VirtualDatabase(database, [await open(), await open()], client, clock);
  }

  pass(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  /** An instance without any state: everything is in the database. */
  async restart(): Promise<PostgresStore> {
    const store = await PostgresStore.open({ dsn: this.database.dsn });
    this.#reopened.push(store);
    return store;
  }

  async close(): Promise<void> {
    await Promise.all([this.store, this.other, ...this.#reopened].map((store) => store.close()));
    await this.database.close();
  }
}
