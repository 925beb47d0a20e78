import { randomBytes } from "node:crypto";
import { Client, type ClientConfig } from "pg";
import { askForCluster } from "./ask-for-cluster.ts";
import { dsnOf, onServer, type TestCluster } from "./test-cluster.ts";

export interface TestDatabaseOptions {
  /** Without our schema, for tests of `migrate`. */
  readonly isEmpty?: boolean;
}

/**
 * A database for one test file: `const database = await TestDatabase.open()`, and `afterAll(() => database.close())`.
 *
 * With `POOLER_URL`, `dsn` is the address of the pooler, and the tests show what works through it. Creating and
 * dropping databases, and everything that needs a session, uses the direct address.
 */
export class TestDatabase implements AsyncDisposable {
  readonly dsn: string;
  readonly directDsn: string;
  readonly #cluster: TestCluster;
  readonly #name: string;
  readonly #clients: Client[] = [];

  private constructor(cluster: TestCluster, name: string) {
    this.#cluster = cluster;
    this.#name = name;
    this.directDsn = dsnOf(cluster.dsn, name);
    this.dsn = dsnOf(process.env["POOLER_URL"] ?? cluster.dsn, name);
  }

  /** Creates a copy of the migrated template. The first call of a run starts the server. */
  static async open({ isEmpty = false }: TestDatabaseOptions = {}): Promise<TestDatabase> {
    const cluster = await askForCluster();
    const name = `${cluster.prefix}_${randomBytes(5).toString("hex")}`;
    const template = isEmpty ? "template0" : cluster.template;
    await onServer(cluster.dsn, (client) =>
      client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`),
    );
    return new TestDatabase(cluster, name);
  }

  /** Opens another connection, which is closed with the database. */
  async connect(config: ClientConfig = {}): Promise<Client> {
    const client = new Client({ connectionString: this.dsn, ...config });
    // The database may be dropped while a failed test still has a connection to it.
    client.on("error", () => {});
    this.#clients.push(client);
    await client.connect();
    return client;
  }

  /** Opens a connection with its own session, for tests that change session settings. */
  openSession(config: ClientConfig = {}): Promise<Client> {
    return this.connect({ connectionString: this.directDsn, ...config });
  }

  /** Closes the connections and drops the database, even if clients are still connected. */
  async close(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.end()));
    await onServer(this.#cluster.dsn, (client) => client.query(`DROP DATABASE IF EXISTS ${this.#name} WITH (FORCE)`));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
