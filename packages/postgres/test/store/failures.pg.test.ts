import { migrate, PostgresStore } from "@slotkeeper/postgres";
import type { HostPolicy, SlotStore, Waiter } from "@slotkeeper/queue";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OPEN_LIMITS } from "./race.ts";
import { VirtualDatabase } from "./virtual-database.ts";

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

function tryFor(
  to: SlotStore,
  host: string,
  names: readonly string[],
  more: Partial<HostPolicy> = {},
  instance = "one",
) {
  const waiters: Waiter[] = names.map((session, at) => {
    const given = { weight: 1, arrivedAt: at, ttlMs: 10_000, openMs: 60_000, isGrantable: true };
    return { session: `${host} ${session}`, bucket: session.split("-")[0] as string, ...given };
  });
  return to.tryAcquire({ host, instance, policy: { ...OPEN_LIMITS, ...more }, isSemaphore: false, waiters });
}

const statuses = async (...given: Parameters<typeof tryFor>) =>
  (await tryFor(...given)).verdicts.map(({ status }) => status);

test("a host that somebody keeps locked holds up nobody else, and its own callers get a retryable error", async () => {
  await tryFor(store, "stuck", ["a-1"]);
  const client = await database.connect();
  await client.query("ALTER FUNCTION slotkeeper_try_acquire(jsonb) SET lock_timeout = '50ms'");
  await client.query("BEGIN");
  await client.query("SELECT FROM slotkeeper_host WHERE host = 'stuck' FOR UPDATE");
  const stuck = tryFor(store, "stuck", ["b-1"]);
  const [other] = await Promise.all([
    statuses(store, "free", ["a-1"]),
    expect(stuck).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retryable: true, state: "55P03" }),
  ]);
  expect(other).toEqual(["ACQUIRED"]);
  expect((await store.cleanup({ waiterTtlMs: 20_000 })).failures).toEqual([]);
  await client.query("ROLLBACK");
  expect(await statuses(store, "stuck", ["b-1"])).toEqual(["ACQUIRED"]);
});

test("cut connections cost the calls under way, and nothing afterwards", async () => {
  await tryFor(store, "cut", ["a-1"]);
  const client = await database.openSession();
  const cut =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slotkeeper' AND datname = current_database()";
  await client.query(cut);
  const outcomes = await Promise.allSettled(["b-1", "c-1", "d-1"].map((name) => tryFor(store, "cut", [name])));
  for (const outcome of outcomes)
    if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ retryable: true });
  expect(await statuses(store, "cut", ["a-1"])).toEqual(["ACQUIRED"]);
});

test("a function that is missing is an error that repeating does not heal", async () => {
  const own = await TestDatabase.open();
  const broken = await PostgresStore.open({ dsn: own.dsn });
  const client = await own.connect();
  await client.query("DROP FUNCTION slotkeeper_renew(text)");
  await expect(broken.renew({ slotToken: "x" })).rejects.toMatchObject({ code: "DATABASE_REFUSED", retryable: false });
  await client.query("DROP FUNCTION slotkeeper_sweep_cooldowns()");
  const reply = await broken.cleanup({ waiterTtlMs: 1 });
  expect(reply.failures).toHaveLength(1);
  expect(reply).toMatchObject({ cooldowns: 0, slots: 0 });
  await broken.close();
  await own.close();
});

test("each step of a cleanup runs even if another failed", async () => {
  const virtual = await VirtualDatabase.open(Date.now());
  await tryFor(virtual.store, "old", ["a-1", "b-1"], { slots: 1, leaseMs: 1_000 });
  await virtual.client.query("DROP FUNCTION slotkeeper_sweep_cooldowns()");
  await virtual.pass(60_000);
  const reply = await virtual.store.cleanup({ waiterTtlMs: 20_000 });
  expect(reply.failures).toHaveLength(1);
  expect(reply).toMatchObject({ slots: 1, waiters: 1, sessions: 1 });
  await virtual.close();
});

test("the waiters of an instance that fell silent leave the pool after five seconds", async () => {
  const virtual = await VirtualDatabase.open(Date.now());
  const limits = { slots: 1, waiters: 1 };
  await tryFor(virtual.store, "h", ["z-1"], limits);
  expect(await statuses(virtual.store, "h", ["a-1"], limits, "dead")).toEqual(["WAIT"]);
  await virtual.pass(4_900);
  expect(await statuses(virtual.store, "h", ["b-1"], limits)).toEqual(["QUEUE_FULL"]);
  await virtual.pass(200);
  expect(await statuses(virtual.store, "h", ["b-1"], limits)).toEqual(["WAIT"]);
  await virtual.close();
});

test("what became of a session is known until its deadline, and a host without users is forgotten but for its fence", async () => {
  const virtual = await VirtualDatabase.open(Date.now());
  const first = await tryFor(virtual.store, "h", ["a-1"]);
  const slot = first.verdicts[0]?.status === "ACQUIRED" ? first.verdicts[0].slot : undefined;
  const rest = { host: "h", policy: OPEN_LIMITS, hitAgoMs: undefined, status: undefined, uncollectedBy: undefined };
  await virtual.store.release({ slotToken: slot?.slotToken ?? "", ...rest });
  await virtual.pass(9_900);
  expect(await statuses(virtual.store, "h", ["a-1"])).toEqual(["ENDED"]);
  await virtual.pass(200_000);
  await virtual.store.cleanup({ waiterTtlMs: 20_000 });
  expect((await virtual.store.snapshot()).hosts).toEqual([]);
  // The clock is set back an hour: the fence grows all the same.
  await virtual.pass(-3_600_000);
  const again = await tryFor(virtual.store, "h", ["a-1"]);
  const fence = again.verdicts[0]?.status === "ACQUIRED" ? again.verdicts[0].slot.fence : 0;
  expect(fence).toBeGreaterThan(slot?.fence ?? Number.POSITIVE_INFINITY);
  await virtual.close();
});

test("the store works in a schema of any name, and instances share the keys that sign", async () => {
  const own = await TestDatabase.open({ isEmpty: true });
  const schema = 'Slots "of" us';
  await migrate({ dsn: own.dsn, schema });
  const [one, two] = await Promise.all([
    PostgresStore.open({ dsn: own.dsn, schema }),
    PostgresStore.open({ dsn: own.dsn, schema }),
  ]);
  expect(await statuses(one, "h", ["a-1"], { slots: 1 })).toEqual(["ACQUIRED"]);
  expect(await statuses(two, "h", ["b-1"], { slots: 1 })).toEqual(["WAIT"]);
  const [keys, others] = await Promise.all([one.tokenKeys("mine"), two.tokenKeys("yours")]);
  expect(keys).toEqual(others);
  expect(keys).toHaveLength(1);
  expect(await one.isReady()).toBe(true);
  await Promise.all([one.close(), two.close()]);
  await own.close();
});

test("a release goes to its token's host, whatever the caller believes", async () => {
  const first = await tryFor(store, "here", ["a-1"], { slots: 1 });
  const slotToken = first.verdicts[0]?.status === "ACQUIRED" ? first.verdicts[0].slot.slotToken : "";
  const policy = { ...OPEN_LIMITS, slots: 1 };
  const rest = { slotToken, policy, hitAgoMs: undefined, status: undefined, uncollectedBy: undefined };
  expect(await store.release({ host: "there", ...rest })).toMatchObject({
    isReleased: true,
    host: "here",
    bucket: "a",
  });
  expect(await store.release({ host: undefined, ...rest })).toEqual({ isReleased: false });
});
