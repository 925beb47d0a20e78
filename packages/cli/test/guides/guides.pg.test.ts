import { readFileSync } from "node:fs";
import { onServer, type PostgresServer, startPostgres } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort, runGuide, unprinted } from "./run-guide.ts";

/** Guides create roles, which belong to a whole server, so they get their own server. */
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
  // The test server may lose commits in a crash, which the doctor would report.
  await onServer(server.dsn, (client) => client.query("ALTER ROLE ALL SET synchronous_commit = on"));
});
afterAll(() => server.stop());

/** The addresses in the guides, and the real ones of this test. */
async function addresses(): Promise<Map<string, string>> {
  const { host, username, password } = new URL(server.dsn);
  const [first, second] = await Promise.all([freePort(), freePort()]);
  return new Map([
    ["postgres:secret@127.0.0.1:5432", `${username}:${password}@${host}`],
    ["127.0.0.1:5432", host],
    [":8080", `:${first}`],
    [":8081", `:${second}`],
  ]);
}

it("run it in production: every command of the guide works and prints what the guide shows", async () => {
  const run = await runGuide("production.md", await addresses());
  expect(run.code, run.err).toBe(0);
  expect(unprinted(run)).toEqual([]);
});

it("move from the original service: every command of the guide works on a database with live rows", async () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  await onServer(server.dsn, async (client) => {
    await client.query("DROP DATABASE IF EXISTS slots WITH (FORCE)");
    await client.query(`CREATE ROLE "user" LOGIN PASSWORD 'password'`);
    await client.query(`CREATE DATABASE slots OWNER "user"`);
  });
  const given = await addresses();
  const dsn = `postgres://user:password@${given.get("127.0.0.1:5432")}/slots`;
  await onServer(dsn, async (client) => {
    await client.query(read("../../../postgres/test/migrate/original-layout.sql"));
    await client.query(read("../drop-in/live-rows.sql"));
  });
  const run = await runGuide("from-original.md", given);
  expect(run.code, run.err).toBe(0);
  expect(unprinted(run)).toEqual([]);
});
