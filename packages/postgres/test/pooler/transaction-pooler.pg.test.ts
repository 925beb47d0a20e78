import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** Runs only with a pooler: `node scripts/test-pooler.mjs`. */
describe.skipIf(process.env["POOLER_URL"] === undefined)("a transaction pooler", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await TestDatabase.open();
  });
  afterAll(() => database.close());
  const connect = (count: number) => Promise.all(Array.from({ length: count }, () => database.connect()));

  it("is in use: many clients share a few sessions, and one client gets more than one session", async () => {
    const clients = await connect(16);
    const pidsOf = async (client: (typeof clients)[number]) => {
      const pids = new Set<number>();
      for (let query = 0; query < 20; query++) {
        const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid, pg_sleep(0.001)");
        pids.add(rows[0]?.pid ?? 0);
      }
      return [...pids];
    };
    const met = await Promise.all(clients.map(pidsOf));
    expect(new Set(met.flat()).size).toBeLessThanOrEqual(3);
    expect(Math.max(...met.map((pids) => pids.length))).toBeGreaterThan(1);
  });

  it("without a free session fails a call after its timeout with a retryable error, and later calls work", async () => {
    const store = await PostgresStore.open({ dsn: database.dsn, timeoutMs: 300 });
    const host = await HostUnderTest.on({ store, other: store, pass: async () => {}, close: async () => {} });
    await host.accept();
    const commit = await host.commitOf({});
    const greedy = await connect(3);
    await Promise.all(greedy.map((client) => client.query("BEGIN")));
    await expect(store.commit(commit)).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retryable: true });
    await Promise.all(greedy.map((client) => client.query("ROLLBACK")));
    expect(await store.commit(commit)).toMatchObject({ isOk: true });
    await store.close();
  });
});
