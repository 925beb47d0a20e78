import { PostgrestStore } from "@slotkeeper/postgres";
import { TestPostgrest } from "@slotkeeper/testkit/postgrest";
import type { StoreUnderTest } from "@slotkeeper/testkit/store-conformance";
import { Client } from "pg";
import { TestClock } from "../test-clock.ts";

/** A PostgREST server, and a connection of the owner to its database. */
interface Server {
  readonly url: string;
  readonly authHeader: string | undefined;
  readonly owner: Client;
  close(): Promise<void>;
}

/** Two stores, as two instances have them, through one PostgREST. The test sets the time of its database. */
export class VirtualPostgrest implements StoreUnderTest {
  readonly store: PostgrestStore;
  readonly other: PostgrestStore;
  readonly #server: Server;
  readonly #clock: TestClock;

  private constructor(server: Server, stores: readonly PostgrestStore[], clock: TestClock) {
    const [store, other] = stores as [PostgrestStore, PostgrestStore];
    this.store = store;
    this.other = other;
    this.#server = server;
    this.#clock = clock;
  }

  /** The stand-in, or the server that `POSTGREST_URL` names (docs/guides/postgrest.md). */
  static async open(): Promise<VirtualPostgrest> {
    const url = process.env["POSTGREST_URL"];
    const server = url === undefined ? await standIn() : await given(url);
    const clock = await TestClock.install(server.owner);
    const stores = [await opened(server), await opened(server)];
    return new VirtualPostgrest(server, stores, clock);
  }

  pass(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  /** An instance without any state: everything is in the database. */
  restart(): Promise<PostgrestStore> {
    return opened(this.#server);
  }

  async close(): Promise<void> {
    await Promise.all([this.store.close(), this.other.close()]);
    await this.#server.close();
  }
}

function opened({ url, authHeader }: Server): Promise<PostgrestStore> {
  return PostgrestStore.open({ baseUrl: url, authHeader });
}

async function standIn(): Promise<Server> {
  const server = await TestPostgrest.open();
  const { url, owner } = server;
  return { url, owner, authHeader: server.authHeader("service"), close: () => server.close() };
}

/** The database gets its own clock back at the end. */
async function given(url: string): Promise<Server> {
  const { POSTGREST_JWT: token, POSTGREST_DATABASE_URL: connectionString } = process.env;
  if (connectionString === undefined) throw new Error("POSTGREST_DATABASE_URL is required with POSTGREST_URL");
  const owner = new Client({ connectionString });
  await owner.connect();
  const { rows } = await owner.query<{ sql: string }>("SELECT pg_get_functiondef('slotkeeper_now'::regproc) AS sql");
  const close = async () => {
    await owner.query(rows[0]?.sql ?? "");
    await owner.query("DROP TABLE test_clock");
    await owner.end();
  };
  return { url, owner, authHeader: token === undefined ? undefined : `Bearer ${token}`, close };
}
