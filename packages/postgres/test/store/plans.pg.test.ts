import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CapturedPlans } from "./captured-plans.ts";
import { HandOvers } from "./hand-over.ts";

/**
 * The plans of all statements, checked in under `sql/explain/`: `SLOTKEEPER_PLANS=write npx vitest run plans` writes
 * them. They are compared on PostgreSQL 18. That no call reads more than a few rows is checked on every version.
 */
const FOLDER = new URL("../../sql/explain/", import.meta.url);
/** The tail has 64 rows. */
const MOST_ROWS = 64;
let database: TestDatabase;
let client: Client;
let plans: CapturedPlans;
let isWhole = false;
let isCompared = false;

beforeAll(async () => {
  database = await TestDatabase.open();
  client = await database.openSession();
  const { rows } = await client.query<{ version: string }>("SELECT current_setting('server_version_num') AS version");
  isWhole = (rows[0]?.version ?? "").startsWith("18");
  // A change of the statistics during the test would change plans.
  for (const table of ["slotkeeper_host", "slotkeeper_record", "slotkeeper_ring", "upstream_slot_pool"]) {
    await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  }
  mkdirSync(FOLDER, { recursive: true });
});
afterAll(() => database.close());

async function check(name: string, { text, values }: { text: string; values: readonly unknown[] }): Promise<unknown> {
  const { plans: found, mostRows, reply } = await plans.of(text, values);
  expect(found, name).not.toContain("Seq Scan");
  expect(found, name).not.toContain("Hash Join");
  expect(found.length, name).toBeGreaterThan(100);
  expect(mostRows, name).toBeLessThanOrEqual(MOST_ROWS);
  const file = new URL(`${name}.txt`, FOLDER);
  if (isCompared && process.env["SLOTKEEPER_PLANS"] === "write") writeFileSync(file, found);
  if (isCompared && isWhole) expect(found).toBe(readFileSync(file, "utf8"));
  return reply;
}

const now = async () => (await client.query<{ now: number }>("SELECT slotkeeper_now() AS now")).rows[0]?.now ?? 0;

// The statistics change between the two cases: a plan for an empty table must not be kept for a full one.
test.each([
  ["without statistics", false],
  ["with statistics", true],
])(
  "no statement of a call reads all rows of a host with 10,000 buckets and 5,000 waiters, %s",
  async (_, isAnalyzed) => {
    // Only the plans with statistics are checked in.
    isCompared = isAnalyzed;
    await client.query("DISCARD PLANS");
    await client.query(
      "TRUNCATE slotkeeper_host, slotkeeper_record, slotkeeper_ring, upstream_slot_pool RESTART IDENTITY",
    );
    if (!isAnalyzed) await client.query("VACUUM ANALYZE");
    const commits = new HandOvers(10_000, await now());
    await client.query(HandOvers.callOf(commits.first(5_000, await now())));
    if (isAnalyzed) await client.query("VACUUM ANALYZE");
    // Enough calls for PostgreSQL to keep a plan.
    for (let at = 0; at < 70; at++) {
      const { rows } = await client.query(HandOvers.callOf(commits.next(await now())));
      expect(rows[0].reply).toMatchObject({ isOk: true });
    }
    plans = await CapturedPlans.on(client);
    const handOver = commits.next(await now());
    const first = { ...handOver, host: "new", base: undefined, changes: { ...handOver.changes, dels: [] } };
    await check("commit", HandOvers.callOf(handOver));
    await check("first_commit", HandOvers.callOf({ ...first, now: await now() }));
    const stale = { ...commits.next(await now()), base: handOver.base, conflicts: 5 };
    await check("conflict", HandOvers.callOf(stale));
    const read = "SELECT slotkeeper_read(1, $1, $2) AS reply";
    await check("read", { text: read, values: [commits.host, handOver.base] });
    const acquire = "SELECT slot_token AS reply FROM download_try_acquire_slot('new', NULL, 'b', 0, 4, 1)";
    const answer = await check("try_acquire", { text: acquire, values: [] });
    await check("release", { text: "SELECT download_release_slot('', 'b', $1, 0) AS reply", values: [answer] });
    await client.query("SET client_min_messages = warning");
  },
);
