import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CapturedPlans } from "./captured-plans.ts";
import { OPEN_LIMITS } from "./race.ts";

/**
 * The plans of all statements, checked in under `sql/explain/`: `SLOTKEEPER_PLANS=write npx vitest run plans` writes them.
 * They are compared on PostgreSQL 18; that nothing reads a whole table holds on every version.
 */
const FOLDER = new URL("../../sql/explain/", import.meta.url);
const LIMITS = { ...OPEN_LIMITS, slots: 2, waiters: 3, cooldownMs: 100 };
let database: TestDatabase;
let client: Client;
let plans: CapturedPlans;
let isWhole = false;
/** As the store sends it. */
let policy: unknown;

beforeAll(async () => {
  database = await TestDatabase.open();
  client = await database.connect();
  const { rows } = await client.query<{ version: string }>("SELECT current_setting('server_version_num') AS version");
  isWhole = (rows[0]?.version ?? "").startsWith("18");
  const store = await PostgresStore.open({ dsn: database.dsn });
  await store.report({ host: "template", policy: LIMITS, status: 200 });
  await store.close();
  policy = (await client.query("SELECT to_jsonb(policy) AS policy FROM slotkeeper_host")).rows[0].policy;
  plans = await CapturedPlans.on(client);
  mkdirSync(FOLDER, { recursive: true });
});
afterAll(() => database.close());

async function check(name: string, text: string, values: readonly unknown[]): Promise<unknown> {
  const { plans: all, reply } = await plans.of(text, values);
  // Runs now and then, by the fence: it is shown with the sweep, which always does it.
  const found = name === "sweep" ? all : all.replaceAll(/slotkeeper_forget_sessions\n(?: +[^\n]*\n)+\n?/g, "");
  expect(found, name).not.toContain("Seq Scan");
  expect(found.length, name).toBeGreaterThan(100);
  const file = new URL(`${name}.txt`, FOLDER);
  if (process.env["SLOTKEEPER_PLANS"] === "write") writeFileSync(file, found);
  if (isWhole) expect(found).toBe(readFileSync(file, "utf8"));
  return reply;
}

const waiter = (session: string, bucket: string) => ({
  session,
  bucket,
  weight: 1,
  arrived_at: session.charCodeAt(0),
  ttl_ms: 1_000,
  open_ms: 60_000,
  is_grantable: true,
});
const batch = (...waiters: object[]) =>
  JSON.stringify({ host: "h", instance: "one", policy, is_semaphore: false, waiters });

test("every statement of every call finds its rows by an index, by the plan that is checked in", async () => {
  const register = "SELECT slotkeeper_register($1) AS reply";
  const tryAcquire = "SELECT slotkeeper_try_acquire($1) AS reply";
  await check("register", register, [batch(waiter("a", "x"))]);
  // Two are granted and three wait: the pool is full, and one who comes from elsewhere takes a place.
  await check("try_acquire", tryAcquire, [batch(...["a", "b", "c", "d", "e"].map((name) => waiter(name, "x")))]);
  const displaced = (await check("try_acquire_full", tryAcquire, [batch(waiter("f", "y"), waiter("a", "x"))])) as {
    verdicts: { slot?: { slotToken: string } }[];
  };
  // A lease ran out and an instance fell silent.
  await client.query("UPDATE upstream_slot_pool SET ends_at = 1 WHERE session = 'b'");
  await client.query("UPDATE slotkeeper_waiter SET seen_at = 1 WHERE session = 'd'");
  await client.query("UPDATE slotkeeper_host SET next_end_at = 1, next_silent_at = 1");
  await check("settle", register, [batch(waiter("c", "x"))]);
  const token = displaced.verdicts[1]?.slot?.slotToken ?? "";
  await check("renew", "SELECT slotkeeper_renew($1) AS reply", [token]);
  const releases = JSON.stringify([{ token, hit_ago_ms: 0, status: 200 }]);
  await check("release", "SELECT slotkeeper_release($1, $2, $3) AS reply", ["h", JSON.stringify(policy), releases]);
  const sessions = ["b", "c"].map((session) => ({ session, ending: "canceled", ttl_ms: 1_000 }));
  const withdrawn = JSON.stringify({ host: "h", instance: "one", policy, sessions });
  await check("withdraw", "SELECT slotkeeper_withdraw($1) AS reply", [withdrawn]);
  const given = ["h", JSON.stringify(policy)];
  await check("report", "SELECT slotkeeper_report($1, $2, $3) AS reply", [...given, 503]);
  await check("sweep", "SELECT slotkeeper_sweep($1, $2, $3, $4) AS reply", ["", 10, 90_000, false]);
  await check("check_throttle", "SELECT slotkeeper_check_throttle($1, $2) AS reply", ["h", 60_000]);
});
