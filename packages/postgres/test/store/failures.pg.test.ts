import { DatabaseError, migrate, PostgresStore } from "@slotkeeper/postgres";
import { SCHEMA_NUMBER } from "@slotkeeper/postgres/internals";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { TcpProxy } from "@slotkeeper/testkit/proxy";
import { accountOf, HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let database: TestDatabase;
let store: PostgresStore;

beforeAll(async () => {
  database = await TestDatabase.open();
  store = await PostgresStore.open({ dsn: database.dsn, poolSize: 4 });
});
afterAll(async () => {
  await store.close();
  await database.close();
});

/** Connections that wait for a lock. */
const LOCKED = `SELECT count(*)::integer AS count FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND datname = current_database()`;

const hostOn = (on: PostgresStore) =>
  HostUnderTest.on({ store: on, other: on, pass: async () => {}, close: async () => {} });

describe("a host whose row another program keeps locked", () => {
  test("P7: does not use up the pool: other hosts continue while its calls wait, and it continues afterwards", async () => {
    const [stuck, free] = [await hostOn(store), await hostOn(store)];
    await stuck.accept();
    const stranger = await database.connect();
    await stranger.query("BEGIN");
    await stranger.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [stuck.host]);
    const commits = await Promise.all(Array.from({ length: 12 }, () => stuck.commitOf({ now: stuck.head.now })));
    const waiting = Promise.allSettled(commits.map((commit) => store.commit(commit)));
    for (let at = 0; at < 20; at++) await free.accept();
    expect((await store.cleanup({ idleMs: 1e9 })).failures).toEqual([]);
    await store.beat({ instance: "one", ttlMs: 1, about: {}, hosts: [[stuck.host, stuck.tag]] });
    await stranger.query("ROLLBACK");
    const replies = await waiting;
    // On a slow machine the store may have refused all of them: they waited for too long.
    expect(replies.filter((reply) => reply.status === "fulfilled" && reply.value.isOk).length).toBeLessThanOrEqual(1);
    stuck.tag = (await store.read(stuck.host, undefined)).tag;
    await stuck.accept();
  });

  test("P7: together with others does not use up a small pool, however many calls wait: LANE2", async () => {
    const stuck = await Promise.all(Array.from({ length: 6 }, () => hostOn(store)));
    for (const host of stuck) await host.accept();
    const free = await hostOn(store);
    const stranger = await database.connect();
    await stranger.query("BEGIN");
    const hosts = stuck.map(({ host }) => host);
    await stranger.query("SELECT FROM slotkeeper_host WHERE host = ANY ($1) ORDER BY host FOR UPDATE", [hosts]);
    let isOver = false;
    const failed = new Set<HostUnderTest>();
    // As the engine does: repeats a failed call.
    const untilAnswered = async (host: HostUnderTest): Promise<void> => {
      const commit = await host.commitOf({ now: host.head.now });
      const send = () => store.commit(commit).then(Boolean, () => !failed.add(host));
      while (!isOver && !(await send()));
    };
    const waiting = Promise.all(stuck.flatMap((host) => Array.from({ length: 5 }, () => untilAnswered(host))));
    const admin = await database.openSession();
    const count = async () => (await admin.query<{ count: number }>(LOCKED)).rows[0]?.count ?? 0;
    try {
      // They may use all connections except one until each of them has failed once.
      expect(await count()).toBeLessThanOrEqual(3);
      await store.beat({ instance: "one", ttlMs: 1, about: {}, hosts: [] });
      await expect.poll(() => failed.size, { timeout: 20_000 }).toBe(stuck.length);
      // The calls in progress fail, and at most one of them follows.
      await expect.poll(count, { timeout: 20_000 }).toBeLessThanOrEqual(1);
      for (let at = 0; at < 20; at++) {
        await free.accept();
        expect(await count()).toBeLessThanOrEqual(1);
      }
    } finally {
      isOver = true;
      await stranger.query("ROLLBACK");
      await waiting;
    }
    for (const host of stuck) expect((await store.read(host.host, undefined)).tag).toBeDefined();
  });

  test("fails its callers with a retryable error after they have waited long enough", async () => {
    const stuck = await hostOn(store);
    await stuck.accept();
    const stranger = await database.connect();
    await stranger.query("ALTER FUNCTION slotkeeper_commit SET lock_timeout = '50ms'");
    await stranger.query("BEGIN");
    await stranger.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [stuck.host]);
    const failure = { code: "DATABASE_UNAVAILABLE", retryable: true, state: "55P03" };
    await expect(stuck.send()).rejects.toMatchObject(failure);
    await stranger.query("ROLLBACK");
    await stuck.accept();
  });
});

test("P8: cut connections fail the calls in progress, and the same commit is accepted when it is sent again", async () => {
  const host = await hostOn(store);
  await host.accept();
  const client = await database.openSession();
  const cut =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slotkeeper' AND datname = current_database()";
  const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 1)] });
  await Promise.all([store.commit(commit).catch(() => {}), client.query(cut)]);
  // That an idle connection of the pool is cut shows only when it is used.
  for (let left = 4; ; left--) {
    const reply = await store.commit(commit).catch((error: unknown) => error);
    if (!(reply instanceof DatabaseError)) {
      expect(reply).toMatchObject({ isOk: true });
      break;
    }
    expect([reply.retryable, left > 0]).toEqual([true, true]);
  }
  expect(await host.names()).toEqual(["account b"]);
});

test("a missing function is an error that a retry does not fix, and every step of a cleanup runs", async () => {
  const own = await TestDatabase.open();
  const broken = await PostgresStore.open({ dsn: own.dsn });
  const host = await hostOn(broken);
  await host.accept();
  const client = await own.connect();
  await client.query("DROP FUNCTION slotkeeper_forget_rows(integer)");
  await client.query("UPDATE slotkeeper_host SET updated_at = 0");
  const { hosts, failures } = await broken.cleanup({ idleMs: 1 });
  expect([hosts, failures]).toEqual([1, [expect.objectContaining({ code: "DATABASE_REFUSED", retryable: false })]]);
  await broken.close();
  await own.close();
});

test("a fleet of mixed versions is refused by the schema number, with a message that says what to do", async () => {
  const own = await TestDatabase.open();
  const client = await own.connect();
  const { rows } = await client.query("SELECT slotkeeper_schema_number() AS number");
  expect(rows).toEqual([{ number: SCHEMA_NUMBER }]);
  const older = await PostgresStore.open({ dsn: own.dsn });
  const host = await hostOn(older);
  await host.accept();
  // A newer version migrates the database while this one runs.
  await client.query(
    `CREATE OR REPLACE FUNCTION slotkeeper_schema_number() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT ${SCHEMA_NUMBER + 1}'`,
  );
  const refused = {
    code: "DATABASE_REFUSED",
    retryable: false,
    state: "SK001",
    message: expect.stringMatching(
      /has schema number 2 and the caller 1: all instances of a fleet must run the same version/,
    ),
  };
  const commit = await host.commitOf({ now: host.head.now });
  const beat = { instance: "one", ttlMs: 1, about: {}, hosts: [] };
  await expect(older.commit(commit)).rejects.toMatchObject(refused);
  await expect(older.read(host.host, undefined)).rejects.toMatchObject(refused);
  await expect(older.beat(beat)).rejects.toMatchObject(refused);
  await expect(older.peek([])).rejects.toMatchObject(refused);
  await expect(older.totals()).rejects.toMatchObject(refused);
  await expect(older.tokenKeys("x")).rejects.toMatchObject(refused);
  expect((await older.cleanup({ idleMs: 1 })).failures).toMatchObject([refused, refused]);
  expect((await older.health()).isReady).toBe(false);
  await older.close();
  await own.close();
});

test("the store works in a schema with any name, and instances share the signing keys", async () => {
  const own = await TestDatabase.open({ isEmpty: true });
  const schema = 'Slots "of" us';
  await migrate({ dsn: own.dsn, schema });
  const options = { dsn: own.dsn, schema };
  const [one, two] = await Promise.all([PostgresStore.open(options), PostgresStore.open(options)]);
  const host = await hostOn(one);
  await host.grant("a");
  expect(await two.hostKeys()).toEqual([host.host]);
  const [keys, others] = await Promise.all([one.tokenKeys("mine"), two.tokenKeys("yours")]);
  expect(keys).toEqual(others);
  expect(keys).toHaveLength(1);
  expect((await one.health()).isReady).toBe(true);
  await Promise.all([one.close(), two.close()]);
  await own.close();
});

test("P3: a new host's fences start above those of all forgotten hosts, and forgotten hosts use up no ids", async () => {
  const own = await TestDatabase.open();
  const mine = await PostgresStore.open({ dsn: own.dsn });
  const client = await own.connect();
  const ids: unknown[] = [];
  for (let round = 0; round < 5; round++) {
    const host = await hostOn(mine);
    await host.grant("a", "b");
    const { rows } = await client.query(
      "SELECT array_agg(id ORDER BY id) AS ids FROM upstream_slot_pool WHERE status = 'locked'",
    );
    ids.push(rows[0].ids);
    await client.query("UPDATE upstream_slot_pool SET ends_at = 0, keep_until = 0 WHERE status = 'locked'");
    await client.query("UPDATE slotkeeper_host SET updated_at = 0");
    expect(await mine.cleanup({ idleMs: 1 })).toMatchObject({ hosts: 1 });
  }
  expect(ids).toEqual(Array.from({ length: 5 }, () => ids[0]));
  const { rows } = await client.query(
    "SELECT last_value::int, (SELECT count(*)::int FROM upstream_slot_pool) AS rows FROM upstream_slot_pool_id_seq",
  );
  expect(rows).toEqual([{ last_value: 2, rows: 2 }]);
  await mine.close();
  await own.close();
});

test("a slot row can be created at the end of the sequence, where ids of an original may be in use", async () => {
  const own = await TestDatabase.open();
  const mine = await PostgresStore.open({ dsn: own.dsn });
  const client = await own.connect();
  const first = await hostOn(mine);
  await first.grant("a");
  await client.query("SELECT setval('upstream_slot_pool_id_seq', 2147483646)");
  const second = await hostOn(mine);
  await second.grant("a", "b");
  const { rows } = await client.query("SELECT id FROM upstream_slot_pool ORDER BY id");
  expect(rows.map(({ id }) => id as number)).toEqual([1, 2, 2_147_483_647]);
  await mine.close();
  await own.close();
});

test("CONNECT2: connections that go silent together cost one timeout: the call after the failed one gets a new connection", async () => {
  const proxy = await TcpProxy.to(database.dsn);
  const silent = await PostgresStore.open({ dsn: proxy.url, poolSize: 4, timeoutMs: 2_000 });
  await Promise.all(Array.from({ length: 12 }, () => silent.hostKeys()));
  proxy.blackHole({ isForNew: false });
  await expect(silent.hostKeys()).rejects.toMatchObject({ problem: "STORE_SILENT" });
  for (let at = 0; at < 5; at++) await silent.hostKeys();
  await proxy.close();
  await silent.close();
});
