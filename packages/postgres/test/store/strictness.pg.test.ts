import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { brokenSums, violations } from "./audit.ts";
import { OPEN_LIMITS, type RaceOptions, race } from "./race.ts";

/** Sixteen connections of four instances. Counted twice: in SQL by an auditor, and outside by those who hold the slots. */

const INSTANCES = 4;
const CONNECTIONS = 16;
const TRIES_EACH = process.env["SLOTKEEPER_LONG"] === "1" ? 400 : 40;
let database: TestDatabase;
let auditor: Client;
let stores: PostgresStore[];

beforeAll(async () => {
  database = await TestDatabase.open();
  auditor = await database.connect();
  const options = { dsn: database.dsn, poolSize: CONNECTIONS / INSTANCES };
  stores = await Promise.all(Array.from({ length: INSTANCES }, () => PostgresStore.open(options)));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await database.close();
});

const options = (host: string, policy: object): RaceOptions => ({
  stores,
  host,
  policy: { ...OPEN_LIMITS, ...policy },
  workers: CONNECTIONS,
  triesEach: TRIES_EACH,
  buckets: 5,
});

test("S1: the limits of a host and of a bucket hold under sixteen connections", async () => {
  const result = await race(options("limits", { slots: 6, slotsPerBucket: 2 }), auditor);
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBeLessThanOrEqual(6);
  expect(result.mostOfBucket).toBeLessThanOrEqual(2);
  expect(result.granted).toBeGreaterThan(result.tries / 50);
});

test("S6: the places of the pool, of the host and of a bucket, are never exceeded", async () => {
  const result = await race(options("pool", { slots: 1, waiters: 4, waitersPerBucket: 2 }), auditor);
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBe(1);
});

test("a half-open breaker lets one probe of the whole fleet through at a time", async () => {
  const breaker = { ...OPEN_LIMITS.breaker, openMs: 3_600_000, consecutiveErrors: 1 };
  const policy = { ...OPEN_LIMITS, slots: 8, breaker };
  const [store] = stores as [PostgresStore];
  await store.report({ host: "probes", policy, status: 503 });
  await new Promise((resolve) => setTimeout(resolve, 110));
  // Each session's own window (100 ms) has passed: for all of them the breaker is half open.
  const result = await race({ ...options("probes", policy), triesEach: Math.ceil(TRIES_EACH / 2) }, auditor);
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBe(1);
});

test("a named semaphore keeps the capacity its first live user fixed", async () => {
  const mine = options("semaphore", { slots: 3, slotsPerBucket: Number.POSITIVE_INFINITY });
  const [first, ...others] = stores as [PostgresStore, ...PostgresStore[]];
  const base = { host: "semaphore", instance: "i0", isSemaphore: true };
  const waiters = [
    { session: "keeper", bucket: "k", weight: 1, arrivedAt: 0, ttlMs: 60_000, openMs: 100, isGrantable: true },
  ];
  await first.tryAcquire({ ...base, policy: mine.policy, waiters });
  const greedy = { ...mine, stores: others, policy: { ...mine.policy, slots: 50 }, isSemaphore: true };
  const result = await race(greedy, auditor);
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBeLessThanOrEqual(2);
});

test("leases that run out while others race for them are reclaimed once", async () => {
  const short = { slots: 3, leaseMs: 40, maxHoldMs: 40 };
  const result = await race({ ...options("short", short), triesEach: Math.ceil(TRIES_EACH / 2) }, auditor);
  expect(result.seen).toEqual([]);
  expect(result.granted).toBeGreaterThan(10);
});

test("after all races the books agree with the rows, and the audit can fail", async () => {
  expect(await brokenSums(auditor)).toEqual([]);
  await auditor.query("BEGIN");
  await auditor.query(
    "UPDATE slotkeeper_host SET policy.slots = 0, policy.slots_per_bucket = 0, ledger.in_flight = 99",
  );
  await auditor.query(`INSERT INTO upstream_slot_pool (hostname_pattern, slot_index, status, ip_hash, ends_at, fence)
    VALUES ('limits', 99, 'locked', 'b1', 'Infinity', 1)`);
  expect(await violations(auditor)).not.toEqual([]);
  expect(await brokenSums(auditor)).not.toEqual([]);
  await auditor.query("ROLLBACK");
});

test("without the host's lock the same race breaks the limit: the lock is what keeps it", async () => {
  const broken = await TestDatabase.open();
  const client = await broken.connect();
  const { rows } = await client.query<{ text: string }>(
    "SELECT pg_get_functiondef('slotkeeper_find'::regproc) AS text",
  );
  await client.query((rows[0]?.text ?? "").replace("FOR NO KEY UPDATE", ""));
  const unlocked = await Promise.all([4, 4].map((poolSize) => PostgresStore.open({ dsn: broken.dsn, poolSize })));
  // Books that were read too early may go wrong in many ways: an error is as good a sign as one slot too many.
  const outcome = await race(
    { ...options("limits", { slots: 2 }), stores: unlocked, workers: 8, triesEach: 25 },
    client,
  ).then(
    ({ mostHeld, seen }) => (mostHeld > 2 || seen.length > 0 ? "broken" : "kept"),
    () => "broken",
  );
  expect(outcome).toBe("broken");
  await Promise.all(unlocked.map((store) => store.close()));
  await broken.close();
});
