import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { accountOf, HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

/** What an instance may rely on when it sends many calls at once, and when its connections end. */

const POOL_SIZE = 3;
let database: TestDatabase;
let admin: Client;
let store: PostgresStore;

beforeAll(async () => {
  database = await TestDatabase.open();
  admin = await database.openSession();
});
afterAll(() => database.close());
beforeEach(async () => {
  store = await PostgresStore.open({ dsn: database.dsn, poolSize: POOL_SIZE });
});
afterEach(() => store.close());

const newHost = () => HostUnderTest.on({ store, other: store, pass: async () => {}, close: async () => {} });

/** The connections for calls; the one that listens has no statement of ours. */
const CALLERS = "FROM pg_stat_activity WHERE application_name = 'slotkeeper' AND datname = current_database()";

test("never more connections than the pool's size, however many hosts commit at once, and every commit is answered", async () => {
  const hosts = await Promise.all(Array.from({ length: 40 }, newHost));
  let most = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const { rows } = await admin.query<{ count: number }>(
        `SELECT count(*)::integer AS count ${CALLERS} AND query LIKE '%slotkeeper_%'`,
      );
      most = Math.max(most, rows[0]?.count ?? 0);
    }
  })();
  for (let round = 0; round < 5; round++) {
    const now = await (hosts[0] as HostUnderTest).now();
    await Promise.all(hosts.map((host) => host.accept({ puts: [accountOf("b", now, round)], now })));
  }
  isOver = true;
  await watching;
  expect(most).toBeGreaterThan(0);
  // One more connection listens.
  expect(most).toBeLessThanOrEqual(POOL_SIZE + 1);
  for (const host of hosts) expect((await host.book())?.records).toMatchObject([{ usedMs: 4 }]);
});

test("an error that a host's commit gets costs no other call", async () => {
  const [good, bad] = [await newHost(), await newHost()];
  await good.accept();
  for (let at = 0; at < 2 * POOL_SIZE; at++) {
    // Text that PostgreSQL cannot store.
    const impossible = bad.accept({ puts: [accountOf("\u0000", bad.head.now, 1)] }).catch((error: unknown) => error);
    const [failure] = await Promise.all([impossible, good.accept()]);
    expect(failure).toBeInstanceOf(Error);
  }
  await bad.accept({ puts: [accountOf("b", bad.head.now, 1)] });
});

test("connections that the database ends while they are free are replaced, and no call fails", async () => {
  await Promise.all(Array.from({ length: 12 }, () => store.hostKeys()));
  await admin.query(`SELECT pg_terminate_backend(pid) ${CALLERS}`);
  await expect.poll(() => store.gauges.pool?.size).toBe(0);
  const host = await newHost();
  for (let at = 0; at < 2 * POOL_SIZE; at++) await host.accept();
});

test("closing waits for the calls that are under way, and leaves no connection", async () => {
  const own = await PostgresStore.open({ dsn: database.dsn, poolSize: POOL_SIZE });
  const host = await HostUnderTest.on({ store: own, other: own, pass: async () => {}, close: async () => {} });
  await host.accept();
  const stranger = await database.connect();
  await stranger.query("BEGIN");
  await stranger.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [host.host]);
  const sent = own.commit(await host.commitOf({}));
  const waits = async () => (await admin.query(`SELECT ${CALLERS} AND wait_event_type = 'Lock'`)).rows.length;
  await expect.poll(waits).toBe(1);
  const closed = own.close();
  await stranger.query("ROLLBACK");
  await closed;
  expect(await sent).toMatchObject({ isOk: true });
  expect(own.gauges.pool).toMatchObject({ size: 0, waiting: 0 });
});
