import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { dsnOf, openCluster, startPostgres, TestDatabase } from "@slotkeeper/testkit/postgres";
import { Client } from "pg";
import { afterAll, describe, expect, it, vi } from "vitest";

const KEEPER = fileURLToPath(new URL("../bin/postgres-keeper.mjs", import.meta.url));
const database = await TestDatabase.open();
afterAll(() => database.close());

/** The first value of the first row, if there is one. */
async function ask(dsn: string, sql: string): Promise<unknown> {
  const client = new Client({ connectionString: dsn });
  await client.connect();
  try {
    return Object.values(((await client.query(sql)).rows[0] ?? {}) as object)[0];
  } finally {
    await client.end();
  }
}

const databases = (prefix: string) => `SELECT count(*)::int FROM pg_database WHERE starts_with(datname, '${prefix}')`;

describe("a test file's database", () => {
  it("is a real PostgreSQL with the schema in place, or an empty one", async () => {
    expect(await ask(database.dsn, "SELECT count(*)::int FROM slotkeeper_migration")).toBeGreaterThan(0);
    await using empty = await TestDatabase.open({ isEmpty: true });
    expect(await ask(empty.dsn, "SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public'")).toBe(0);
  });

  it("is separate, and is deleted when it is closed, even if clients are still connected", async () => {
    const other = await TestDatabase.open();
    await other.connect();
    const stranger = new Client({ connectionString: other.dsn });
    stranger.on("error", () => {});
    await stranger.connect();
    await stranger.query("CREATE TABLE mine ()");
    expect(await ask(database.dsn, "SELECT to_regclass('mine')")).toBeNull();
    await other.close();
    await expect(ask(other.dsn, "SELECT 1")).rejects.toThrow(/does not exist/);
  });
});

describe("DATABASE_URL", () => {
  it("selects the server, and nothing is left on it", async () => {
    vi.stubEnv("DATABASE_URL", database.dsn);
    const cluster = await openCluster();
    vi.unstubAllEnvs();
    expect(cluster.dsn).toBe(database.dsn);
    const used = `${cluster.prefix}_left_behind`;
    await ask(cluster.dsn, `CREATE DATABASE ${used} TEMPLATE ${cluster.template}`);
    expect(await ask(dsnOf(cluster.dsn, used), "SELECT count(*)::int FROM slotkeeper_migration")).toBeGreaterThan(0);
    await cluster.close();
    expect(await ask(database.dsn, databases(cluster.prefix))).toBe(0);
  });
});

describe.skipIf(process.env["DATABASE_URL"] !== undefined)("the server", () => {
  it("leaves neither process nor folder when it is stopped", async () => {
    const server = await startPostgres();
    const folder = (await ask(server.dsn, "SHOW data_directory")) as string;
    expect(existsSync(folder)).toBe(true);
    await server.stop();
    expect(existsSync(folder)).toBe(false);
    await expect(ask(server.dsn, "SELECT 1")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("leaves neither if the tests are killed", async () => {
    const script = `
      const { spawn } = require("node:child_process");
      spawn(process.execPath, [${JSON.stringify(KEEPER)}], { stdio: ["pipe", "inherit", "inherit"], detached: true });
      setInterval(() => {}, 1000);`;
    const tests = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const line = await new Promise<string>((resolve) =>
      tests.stdout.once("data", (data: Buffer) => resolve(data.toString())),
    );
    const { dsn } = JSON.parse(line) as { dsn: string };
    const folder = (await ask(dsn, "SHOW data_directory")) as string;
    tests.kill("SIGKILL");
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 20_000, interval: 50 });
    await expect(ask(dsn, "SELECT 1")).rejects.toThrow(/ECONNREFUSED/);
  });
});
