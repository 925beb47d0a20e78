import { migrate, migrationScript, PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { HostUnderTest, waiterOf } from "@slotkeeper/testkit/store-conformance";
import { Client } from "pg";
import { afterAll, expect, test, vi } from "vitest";
import { leftInSession } from "./left-in-session.ts";

/** What a transaction pooler requires (PGDB1 of the store, MIGRATE4 of migrate), checked in the sessions themselves. */

const database = await TestDatabase.open();
afterAll(() => database.close());

/** Makes one call of each kind that an instance makes. */
async function useStore(store: PostgresStore): Promise<void> {
  const host = await HostUnderTest.on({ store, other: store, pass: async () => {}, close: async () => {} });
  await host.grant("a", "b");
  await host.accept({ puts: [waiterOf("w", host.head.now)], dels: [["lease", "slot_a"]], wake: ["one"] });
  await host.send({ base: "0.stale", conflicts: 5 });
  await store.read(host.host, "0.stale");
  await store.beat({ instance: "one", ttlMs: 1_000, about: {}, hosts: [[host.host, undefined]] });
  await Promise.all([
    store.peek([host.host]),
    store.totals(),
    store.hostKeys(),
    store.instances(),
    store.tokenKeys("k"),
  ]);
  await host.forget();
  await store.cleanup({ idleMs: 1 });
  expect((await store.health()).isReady).toBe(true);
}

test("PGDB1: calls of the store leave nothing in their session except prepared statements, named by their text", async () => {
  const queries = vi.spyOn(Client.prototype, "query");
  const store = await PostgresStore.open({ dsn: database.directDsn, poolSize: 1 });
  await useStore(store);
  const sessions = [...new Set(queries.mock.contexts as Client[])];
  expect(sessions).toHaveLength(1);
  const left = await leftInSession(sessions[0] as Client);
  expect(left.filter((what) => !/^statement slotkeeper_[0-9a-f]{32}$/.test(what))).toEqual([]);
  expect(left.length).toBeGreaterThan(5);
  await store.close();
});

test("PGDB1: if a pooler loses prepared statements, the store continues without them", async () => {
  const store = await PostgresStore.open({ dsn: database.directDsn, poolSize: 1 });
  const queries = vi.spyOn(Client.prototype, "query");
  const host = await HostUnderTest.on({ store, other: store, pass: async () => {}, close: async () => {} });
  await host.accept();
  const [session] = queries.mock.contexts as [Client];
  // The next statement runs in a session without its prepared statement, as behind a pooler that does not track them.
  await session.query("DEALLOCATE ALL");
  await host.accept();
  await host.accept();
  expect(queries.mock.calls.map(([query]) => (query as { name?: string }).name).at(-1)).toBeUndefined();
  await store.close();
});

test("MIGRATE4: no migration leaves anything in its session", async () => {
  await using empty = await TestDatabase.open({ isEmpty: true });
  const queries = vi.spyOn(Client.prototype, "query");
  const left: Promise<string[]>[] = [];
  const look = () => left.push(leftInSession(queries.mock.contexts.at(-1) as Client));
  const applied = await migrate({ dsn: empty.directDsn, onApplied: look });
  expect(await Promise.all(left)).toEqual(applied.map(() => []));
});

test("MIGRATE4: one session can migrate several schemas one after the other", async () => {
  await using empty = await TestDatabase.open({ isEmpty: true });
  const client = await empty.openSession();
  for (const schema of ["one", "two"]) await client.query(migrationScript(schema));
  expect(await leftInSession(client)).toEqual([]);
});

test("the check finds anything that is left in a session", async () => {
  const client = await database.openSession();
  await client.query(`
    SET lock_timeout = 1000;
    PREPARE kept AS SELECT 1;
    DECLARE open_end CURSOR WITH HOLD FOR SELECT 1;
    LISTEN freed;
    SELECT pg_advisory_lock(7);
    CREATE TEMP TABLE kept (n int);
    CREATE FUNCTION pg_temp.kept() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
  expect(await leftInSession(client)).toEqual([
    "advisory lock 7",
    "channel freed",
    "cursor open_end",
    "setting lock_timeout",
    "statement kept",
    expect.stringMatching(/^temporary function pg_temp_\d+\.kept\(\)$/),
    "temporary table kept",
  ]);
});
