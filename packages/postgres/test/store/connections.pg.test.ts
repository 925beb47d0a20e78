import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { Connections } from "../../src/store/connections.ts";

const POOL_SIZE = 2;
let database: TestDatabase;
let connections: Connections;

beforeAll(async () => {
  database = await TestDatabase.open();
});
afterAll(() => database.close());
beforeEach(() => {
  connections = new Connections({ dsn: database.dsn, poolSize: POOL_SIZE, timeoutMs: 3_000 });
});
afterEach(async () => {
  vi.useRealTimers();
  await connections.close();
});

const processOf = async (client: PoolClient): Promise<number> =>
  (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid as number;

/** Takes a connection, uses it and gives it back. */
async function use(): Promise<number> {
  const client = await connections.take();
  const pid = await processOf(client);
  connections.giveBack(client);
  return pid;
}

test("CONNECT1: a connection that was used before is taken without waiting, the last one first", async () => {
  const clients = await Promise.all([connections.take(), connections.take()]);
  for (const client of clients) connections.giveBack(client);
  const taken = connections.take();
  expect(taken).toBe(clients[1]);
  connections.giveBack(taken as PoolClient);
  expect(connections.gauges).toMatchObject({ size: 2, idle: 2, waiting: 0, waits: 0 });
});

test("CONNECT2: a free connection that the server ends is replaced", async () => {
  const pid = await use();
  const admin = await database.connect();
  await admin.query("SELECT pg_terminate_backend($1)", [pid]);
  await vi.waitFor(() => expect(connections.gauges.size).toBe(0));
  expect(await use()).not.toBe(pid);
});

test("CONNECT2: after a call without an answer, connections that have proven nothing since are closed", async () => {
  const silent = await connections.take();
  const old = await use();
  connections.drop(silent, performance.now(), true);
  expect(await use()).not.toBe(old);
  expect(connections.gauges.size).toBe(1);
});

test("CONNECT2: a call that failed with an answer costs only its own connection", async () => {
  const failed = await connections.take();
  const other = await use();
  connections.drop(failed, performance.now(), false);
  expect(await use()).toBe(other);
});

test("CONNECT3: a call that finds all connections in use gets the next one that is given back", async () => {
  const [first, second] = await Promise.all([connections.take(), connections.take()]);
  const waiting = connections.take();
  expect(connections.gauges).toMatchObject({ size: POOL_SIZE, waiting: 1, waits: 1 });
  connections.giveBack(first);
  expect(await waiting).toBe(first);
  for (const client of [first, second]) connections.giveBack(client);
});

test("a connection that is free for a second goes back to the pool, which may close it", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const client = await connections.take();
  connections.giveBack(client);
  expect(connections.take()).toBe(client);
  connections.giveBack(client);
  vi.advanceTimersByTime(2_500);
  const taken = connections.take();
  expect(taken).toBeInstanceOf(Promise);
  connections.giveBack(await taken);
});

test("closing waits for the calls that are under way, and for no free connection", async () => {
  await use();
  const busy = await connections.take();
  const closed = connections.close();
  connections.giveBack(busy);
  await closed;
  expect(connections.gauges).toMatchObject({ size: 0, idle: 0 });
  connections = new Connections({ dsn: database.dsn, poolSize: POOL_SIZE, timeoutMs: 3_000 });
});
