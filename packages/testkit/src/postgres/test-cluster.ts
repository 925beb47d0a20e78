import { randomBytes } from "node:crypto";
import { migrate } from "@slotkeeper/postgres";
import { Client } from "pg";
import { type PostgresOptions, startPostgres } from "./postgres-server.ts";

/** The server on which test databases are created: our own, or the one of `DATABASE_URL`. */
export interface TestCluster {
  readonly dsn: string;
  /** The prefix of the names of all databases of this run, so that each can be removed. */
  readonly prefix: string;
  /** A migrated database to copy. */
  readonly template: string;
}

export function dsnOf(dsn: string, database: string): string {
  const url = new URL(dsn);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs work on its own connection. */
export async function onServer<T>(dsn: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: dsn });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Starts the server, or uses the given one, and creates the template. `close` leaves nothing behind. */
export async function openCluster(options: PostgresOptions = {}): Promise<TestCluster & { close(): Promise<void> }> {
  const given = process.env["DATABASE_URL"];
  const server =
    given === undefined ? await startPostgres(options) : { dsn: given, stop: () => dropAll(given, prefix) };
  const prefix = `slotkeeper_test_${randomBytes(5).toString("hex")}`;
  const template = `${prefix}_template`;
  try {
    await onServer(server.dsn, (client) => client.query(`CREATE DATABASE ${template}`));
    await migrate({ dsn: dsnOf(server.dsn, template) });
    return { dsn: server.dsn, prefix, template, close: () => server.stop() };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function dropAll(dsn: string, prefix: string): Promise<void> {
  await onServer(dsn, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
      [prefix],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
  });
}
