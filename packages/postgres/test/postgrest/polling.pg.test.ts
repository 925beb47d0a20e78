import { PostgrestStore } from "@slotkeeper/postgres";
import type { CommitNotice } from "@slotkeeper/queue";
import { TestPostgrest } from "@slotkeeper/testkit/postgrest";
import { FaultProxy } from "@slotkeeper/testkit/proxy";
import { accountOf, HostUnderTest, waiterOf } from "@slotkeeper/testkit/store-conformance";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

/** Polling instead of notifications: POLLER1 to POLLER3 of `change-poller.ts`, through the store interface. */

/** Enough for a busy machine. */
const PATIENCE = { timeout: 10_000 };

let server: TestPostgrest;
let proxy: FaultProxy;
let store: PostgrestStore;
let other: PostgrestStore;
let host: HostUnderTest;
let received: CommitNotice[];
let stop: () => void;

beforeAll(async () => {
  server = await TestPostgrest.open();
  proxy = await FaultProxy.start(server.url);
});
afterAll(async () => {
  await proxy.refuse();
  await server.close();
});

beforeEach(async () => {
  const authHeader = server.authHeader("service");
  store = await PostgrestStore.open({ baseUrl: proxy.url, authHeader });
  other = await PostgrestStore.open({ baseUrl: server.url, authHeader });
  host = await HostUnderTest.on({ store, other, pass: async () => {}, close: async () => {} });
  received = [];
  stop = store.watch("one", (notice) => received.push(notice));
});
afterEach(async () => {
  stop();
  for (const instance of ["one", "two"]) await beat(instance, 0);
  await Promise.all([store.close(), other.close()]);
});

const beat = (instance: string, ttlMs = 60_000) =>
  (instance === "one" ? store : other).beat({
    instance,
    ttlMs,
    about: {},
    hosts: instance === "one" && ttlMs > 0 ? [[host.host, host.tag]] : [],
  });

/** Sends a commit of the other instance, and returns the notice that should arrive. */
async function commitElsewhere(): Promise<CommitNotice> {
  const { now } = await other.read(host.host, host.tag);
  const commit = await host.commitOf({ puts: [accountOf("b", now, 0.1)], instance: "two", now });
  expect(await other.commit(commit)).toMatchObject({ isOk: true });
  host.tag = commit.tag;
  const { base, tag, changes } = commit;
  return { host: host.host, base, tag, changes };
}

test("POLLER2: a commit of another instance is reported with its base, and the instance's own commits are not", async () => {
  await host.accept();
  await beat("two");
  await beat("one");
  await host.accept();
  const notice = await commitElsewhere();
  await expect.poll(() => received, PATIENCE).toEqual([notice]);
  await host.accept();
  const next = await commitElsewhere();
  await expect.poll(() => received, PATIENCE).toEqual([notice, next]);
});

test("a host where a session begins to wait is polled before the next beat", async () => {
  await beat("two");
  await store.beat({ instance: "one", ttlMs: 60_000, about: {}, hosts: [] });
  await host.accept({ puts: [waiterOf("a", host.head.now)] });
  const notice = await commitElsewhere();
  await expect.poll(() => received, PATIENCE).toEqual([notice]);
});

test("several commits are reported as one change", async () => {
  await host.accept();
  await beat("two");
  await beat("one");
  proxy.fault = (call) => (call.path.endsWith("/slotkeeper_read") ? { status: 503 } : "none");
  const { base } = await commitElsewhere();
  const last = await commitElsewhere();
  proxy.fault = "none";
  await expect.poll(() => received, PATIENCE).toEqual([{ ...last, base }]);
});

test("a forgotten host is reported without changes, so that the engine reads it", async () => {
  await host.accept();
  await beat("two");
  await beat("one");
  const commit = await host.commitOf({ instance: "two" });
  await other.commit({ ...commit, changes: { head: undefined, puts: [], dels: [] } });
  await expect.poll(() => received, PATIENCE).toEqual([{ host: host.host }]);
});

test("POLLER1: a single instance does not poll, and polling stops when no session waits and no instance watches", async () => {
  await host.accept();
  const reads = () => proxy.calls("slotkeeper_read").length;
  const afterCalls = async () => {
    const before = reads();
    for (let at = 0; at < 30; at++) await store.totals();
    return reads() - before;
  };
  await beat("one");
  expect(await afterCalls()).toBe(0);
  await beat("two");
  await beat("one");
  await expect.poll(afterCalls, PATIENCE).toBeGreaterThan(0);
  await store.beat({ instance: "one", ttlMs: 60_000, about: {}, hosts: [] });
  await expect.poll(afterCalls, PATIENCE).toBe(0);
  await beat("one");
  await expect.poll(afterCalls, PATIENCE).toBeGreaterThan(0);
  stop();
  await expect.poll(afterCalls, PATIENCE).toBe(0);
});
