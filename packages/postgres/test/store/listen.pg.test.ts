import { PostgresStore } from "@slotkeeper/postgres";
import type { CommitNotice } from "@slotkeeper/queue";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { TcpProxy } from "@slotkeeper/testkit/proxy";
import { HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import { afterAll, expect, test, vi } from "vitest";

const database = await TestDatabase.open();
afterAll(() => database.close());
const admin = await database.openSession();
const LISTENING = "application_name = 'slotkeeper listen' AND datname = current_database()";
const listening = async () => {
  const { rows } = await admin.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE ${LISTENING} AND query LIKE 'LISTEN %'`,
  );
  return rows.map(({ pid }) => pid);
};

async function watched(options: {
  listenDsn: string;
}): Promise<{ store: PostgresStore; host: HostUnderTest; received: CommitNotice[] }> {
  const store = await PostgresStore.open({ dsn: database.dsn, ...options });
  const host = await HostUnderTest.on({ store, other: store, pass: async () => {}, close: () => store.close() });
  const received: CommitNotice[] = [];
  store.watch("one", (notice) => received.push(notice));
  await vi.waitFor(async () => expect(await listening()).toHaveLength(1), { timeout: 5_000 });
  return { store, host, received };
}

/** Commits until one is received. */
async function expectReceived(
  host: HostUnderTest,
  received: CommitNotice[],
  before: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  received.length = 0;
  await vi.waitFor(
    async () => {
      await before();
      await host.accept({ wake: ["one"] });
      await vi.waitFor(() => expect(received.at(-1)?.tag).toBe(host.tag), { timeout: 200 });
    },
    { timeout: 15_000, interval: 100 },
  );
}

test("NOTIFY1: a connection that ends is replaced, until the store is closed", async () => {
  const { store, host, received } = await watched({ listenDsn: database.directDsn });
  await expectReceived(host, received);
  const [pid] = await listening();
  await admin.query("SELECT pg_terminate_backend($1)", [pid]);
  await expectReceived(host, received);
  expect(await listening()).not.toContain(pid);
  await store.close();
  await vi.waitFor(async () => expect(await listening()).toEqual([]), { timeout: 5_000 });
});

test("NOTIFY2: the echo of a beat finds a connection that delivers nothing", async () => {
  const proxy = await TcpProxy.to(database.directDsn);
  const { store, host, received } = await watched({ listenDsn: proxy.url });
  await expectReceived(host, received);
  const beat = { instance: "one", ttlMs: 10_000, about: {}, hosts: [] };
  await store.beat(beat);
  const [pid] = await listening();
  proxy.blackHole({ isForNew: false });
  await store.beat(beat);
  // The echo of the first beat may still be on its way and count for the second. The next test of the connection asks
  // again.
  await expectReceived(host, received, () => store.health());
  expect(await listening()).not.toEqual([pid]);
  await store.close();
  await proxy.close();
});

test("NOTIFY1: after an outage of any length the listener connects within a second", async () => {
  const store = await PostgresStore.open({ dsn: database.dsn, listenDsn: "postgres://u:p@127.0.0.1:1/x" });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const stop = store.watch("one", () => {});
    for (let second = 0; second < 20; second++) {
      const losses = store.gauges.listener?.losses;
      await vi.advanceTimersByTimeAsync(1_000);
      // The connection is refused within a few turns of the event loop.
      for (let turn = 0; turn < 10_000 && store.gauges.listener?.losses === losses; turn++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect({ second, losses: store.gauges.listener?.losses }).not.toEqual({ second, losses });
    }
    stop();
  } finally {
    vi.useRealTimers();
    await store.close();
  }
});

test("NOTIFY3: if the database cannot be listened to, only the hints are missing", async () => {
  const store = await PostgresStore.open({ dsn: database.dsn, listenDsn: "postgres://u:p@127.0.0.1:1/x" });
  const stop = store.watch("two", () => {});
  const reply = await store.beat({ instance: "two", ttlMs: 5_000, about: {}, hosts: [["unknown", "1.a"]] });
  expect(reply.changed).toEqual(["unknown"]);
  stop();
  await store.close();
});

test("channels are names of at most 63 bytes, one for each schema and instance", async () => {
  const { rows } = await admin.query<{ channel: string }>(
    "SELECT slotkeeper_channel(name) AS channel FROM unnest(ARRAY['a', 'b', repeat('é', 500)]) name",
  );
  const channels = rows.map(({ channel }) => channel);
  expect(new Set(channels).size).toBe(3);
  for (const channel of channels) expect(Buffer.byteLength(channel)).toBeLessThanOrEqual(63);
});
