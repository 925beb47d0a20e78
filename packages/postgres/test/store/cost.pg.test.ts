import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { HostUnderTest, leaseOf, sessionOf, waiterOf } from "@slotkeeper/testkit/store-conformance";
import { expect, test } from "vitest";
import { HandOvers } from "./hand-over.ts";
import { othersAreGone, ServerCounts, tableCounts } from "./server-counts.ts";
import { VirtualDatabase } from "./virtual-database.ts";

const isLong = process.env["SLOTKEEPER_LONG"] === "1";

test("a commit, a read and a beat are one transaction each, by the server's own count", async () => {
  const own = await TestDatabase.open();
  const counts = await ServerCounts.of(own);
  const cycles = async (count: number) => {
    const before = await counts.transactions();
    const store = await PostgresStore.open({ dsn: own.dsn, poolSize: 2 });
    const host = await HostUnderTest.on({ store, other: store, pass: async () => {}, close: async () => {} });
    for (let cycle = 0; cycle < count; cycle++) {
      // `accept` reads the time once.
      await host.accept();
      const hosts = Array.from({ length: 200 }, (_, at) => [`host ${at}`, "1.a"] as const);
      await store.beat({ instance: "one", ttlMs: 1_000, about: {}, hosts });
    }
    await store.close();
    return (await counts.transactions()) - before;
  };
  const none = await cycles(0);
  // A pool may open one more connection, and the server's own housekeeping counts, too. Neither grows with the cycles.
  expect(Math.round(((await cycles(50)) - none) / 50)).toBe(3);
  await own.close();
});

test("a hand-over writes at most 2 kB of write-ahead log, with few buckets and with 10,000", async () => {
  for (const buckets of [100, 10_000]) {
    const own = await TestDatabase.open();
    const client = await own.openSession();
    const now = async () => (await client.query<{ now: number }>("SELECT slotkeeper_now() AS now")).rows[0]?.now ?? 0;
    const commits = new HandOvers(buckets, await now());
    await client.query(HandOvers.callOf(commits.first(500, await now())));
    for (let at = 0; at < 130; at++) await client.query(HandOvers.callOf(commits.next(await now())));
    const sizes: number[] = [];
    for (let at = 0; at < 9; at++) {
      const { text, values } = HandOvers.callOf(commits.next(await now()));
      const explained = `EXPLAIN (ANALYZE, WAL, COSTS OFF, FORMAT JSON) ${text}`;
      const { rows } = await client.query(explained, values);
      sizes.push(rows[0]["QUERY PLAN"][0].Plan["WAL Bytes"] as number);
    }
    // Sometimes a page is written as a whole after a checkpoint, or is pruned.
    expect(sizes.sort((a, b) => a - b)[4], `${buckets} buckets`).toBeLessThanOrEqual(2_048);
    await own.close();
  }
});

/** Sessions that arrive, wait, get a slot and leave, using every table. */
async function churn(host: HostUnderTest, round: number): Promise<void> {
  const now = await host.now();
  const fence = Math.max(host.head.fence + 1, Math.floor(now * 1000));
  const breaker = { code: 0, errors: 0, successes: round, consecutive: 0, windowStartAt: now };
  const name = `${round}`;
  const until = { deadlineAt: now + 1_000 };
  await host.accept({ puts: [waiterOf(name, now, until)], now });
  const cooldown = { kind: "cooldown", key: `b-${round % 7}`, until: now + 1 } as const;
  await host.accept({
    head: { fence, breaker },
    puts: [leaseOf(name, fence, now), cooldown],
    dels: [["waiter", `s-${name}`]],
    now,
  });
  await host.accept({
    puts: [sessionOf(name, now + 1_000)],
    dels: [
      ["lease", `slot_${name}`],
      ["ending", `s-${round - 5}`],
      ["cooldown", `b-${(round + 3) % 7}`],
    ],
    now,
  });
}

test("all updates are HOT: none changes an index", async () => {
  const virtual = await VirtualDatabase.open();
  const hosts = [await HostUnderTest.on(virtual), await HostUnderTest.on(virtual)];
  for (let round = 0; round < 100; round++) await churn(hosts[round % 2] as HostUnderTest, round);
  await Promise.all([virtual.store.close(), virtual.other.close()]);
  await othersAreGone(virtual.client);
  const counts = await tableCounts(virtual.client);
  for (const name of ["slotkeeper_host", "slotkeeper_ring", "upstream_slot_pool", "THROTTLE_PROTECTION"]) {
    const { updates, hot } = counts.get(name) ?? { updates: 0, hot: 0 };
    expect(updates, name).toBeGreaterThan(50);
    // A page may be full until an older snapshot ends, which is later on a busy machine: usually 0.9 to 1. With an index on
    // an updated column the value would be near 0.
    expect(hot / updates, name).toBeGreaterThan(0.5);
  }
  await virtual.database.close();
});

test("a day of churn, with hosts that are forgotten and return, does not make the tables grow", {
  timeout: 600_000,
}, async () => {
  const virtual = await VirtualDatabase.open();
  const sizes: number[] = [];
  const rounds = isLong ? 500 : 12;
  for (let hour = 0; hour < 24; hour++) {
    const hosts = [await HostUnderTest.on(virtual), await HostUnderTest.on(virtual), await HostUnderTest.on(virtual)];
    for (let round = 0; round < rounds; round++) {
      await churn(hosts[round % 3] as HostUnderTest, round);
      await virtual.pass(60);
    }
    await virtual.store.beat({ instance: `hour ${hour}`, ttlMs: 1_000, about: {}, hosts: [] });
    await virtual.pass(3_600_000);
    expect(await virtual.store.cleanup({ idleMs: 90_000 })).toEqual({ hosts: 3, failures: [] });
    // What autovacuum does in the background.
    await virtual.client.query("VACUUM");
    const tables = [...(await tableCounts(virtual.client)).values()];
    sizes.push(tables.reduce((sum, { bytes }) => sum + bytes, 0));
  }
  expect(Math.max(...sizes.slice(12))).toBeLessThanOrEqual(1.1 * Math.max(...sizes.slice(0, 6)));
  for (const table of ["slotkeeper_host", "slotkeeper_record", "slotkeeper_ring", "upstream_ip_cooldown"]) {
    expect((await virtual.client.query(`SELECT FROM ${table}`)).rows, table).toEqual([]);
  }
  const { rows } = await virtual.client.query(
    "SELECT count(*)::int AS slots, (SELECT count(*)::int FROM slotkeeper_floor) AS floors FROM upstream_slot_pool",
  );
  expect(rows[0].slots).toBe(3);
  expect(rows[0].floors).toBeLessThanOrEqual(4);
  await virtual.close();
});

test("failed attempts use no numbers of the sequence", async () => {
  const virtual = await VirtualDatabase.open();
  const host = await HostUnderTest.on(virtual);
  await host.grant("a", "b");
  for (let at = 0; at < 20; at++) {
    const fence = host.head.fence + 1;
    const puts = [leaseOf("c", fence, host.head.now)];
    expect(await host.send({ head: { fence }, puts })).toMatchObject({ isOk: false, reason: "slots" });
  }
  const { rows } = await virtual.client.query("SELECT last_value::int FROM upstream_slot_pool_id_seq");
  expect(rows).toEqual([{ last_value: 2 }]);
  await virtual.close();
});
