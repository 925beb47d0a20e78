import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { migrate, PostgresStore } from "@slotkeeper/postgres";
import { dumpSchema, TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { DirectCaller } from "../contract/direct-caller.ts";

const ORIGINAL = readFileSync(new URL("original-layout.sql", import.meta.url), "utf8");
const database = await TestDatabase.open({ isEmpty: true });
afterAll(() => database.close());
let schemas = 0;

/** Each test has a schema of its own, and a client in it. */
async function newSchema(): Promise<{ client: Client; target: { dsn: string; schema: string } }> {
  const schema = `original_${++schemas}`;
  const client = await database.openSession({ options: `-c search_path=${schema}` });
  await client.query(`CREATE SCHEMA ${schema}`);
  return { client, target: { dsn: database.dsn, schema } };
}

const sha256 = (name: string) => createHash("sha256").update(name).digest("hex");

describe("a database with the original layout and live rows", () => {
  let client: Client;
  let caller: DirectCaller;
  const FULL = { p_max_slot_per_host: 4 };

  beforeEach(async () => {
    const fresh = await newSchema();
    client = fresh.client;
    caller = new DirectCaller(client);
    await client.query(ORIGINAL);
    await migrate(fresh.target);
  });

  it("loses no row", async () => {
    expect(await caller.count("upstream_slot_pool")).toBe(6);
    expect(await caller.count("upstream_ip_cooldown")).toBe(2);
    expect(await caller.count("upstream_ip_queue_depth")).toBe(3);
    expect(await caller.count(`"THROTTLE_PROTECTION"`)).toBe(2);
    const { rows } = await client.query(
      "SELECT id, ip_hash FROM upstream_slot_pool WHERE status = 'locked' ORDER BY id",
    );
    expect(rows).toEqual([
      { id: 1, ip_hash: "b1" },
      { id: 2, ip_hash: "b2" },
      { id: 4, ip_hash: "b3" },
      { id: 6, ip_hash: "b1" },
    ]);
  });

  it("counts slots that are held against the limits, for every spelling of the host's name", async () => {
    expect((await caller.tryAcquire("example.com", "b1", FULL)).status).toBe("IP_TOO_MANY");
    expect((await caller.tryAcquire("EXAMPLE.com", "b9", { p_max_slot_per_host: 3 })).status).toBe("QUEUE_FULL");
    expect((await caller.tryAcquire("example.com", "b9", FULL)).status).toBe("ACQUIRED");
    expect((await caller.tryAcquire("example.com", "b8", FULL)).status).toBe("QUEUE_FULL");
  });

  it("lets holders release once by the id that was their token", async () => {
    await caller.release("1", "b1");
    await caller.releaseId(2);
    expect(
      await caller.count("upstream_slot_pool WHERE hostname_pattern = $1 AND status = 'locked'", [
        sha256("example.com"),
      ]),
    ).toBe(1);
    for (const bucket of ["n1", "n2", "n3"]) await caller.acquire("example.com", bucket, FULL);
    await caller.release("1", "b1");
    await caller.release("2", "b2");
    await caller.releaseId(1);
    expect((await caller.tryAcquire("example.com", "n4", FULL)).status).toBe("QUEUE_FULL");
  });

  it("keeps cooldowns, waiters and the breaker", async () => {
    const cooldown = { ...FULL, p_cooldown_seconds: 60 };
    expect((await caller.tryAcquire("example.com", "b4", cooldown)).status).toBe("IP_TOO_MANY");
    expect((await caller.tryAcquire("other.example", "b4", cooldown)).status).toBe("ACQUIRED");
    expect(await caller.tryAcquire("example.com", "b5", FULL)).toMatchObject({ queue_depth: 2, ip_queue_depth: 2 });
    expect(await caller.tryAcquire("other.example", "b5", FULL)).toMatchObject({ queue_depth: 0 });
    const throttled = await caller.tryAcquire("throttled.example", "b", { p_hostname_hash: "throttled-hash" });
    expect(throttled).toMatchObject({ status: "THROTTLED", throttle_code: 429 });
    expect(await caller.report("own.example", true, { p_hostname_hash: "own-hash" })).toMatchObject({
      OBS_ERROR_COUNT: 2,
      OBS_SUCCESS_COUNT: 2,
      CONSECUTIVE_ERROR_COUNT: 2,
    });
  });

  it("finds the slots and waiters of a host by the hash of its breaker's row", async () => {
    const limit = { p_hostname_hash: "own-hash", p_max_slot_per_host: 1 };
    expect(await caller.tryAcquire("own.example", "b9", limit)).toMatchObject({ status: "QUEUE_FULL", queue_depth: 1 });
    await caller.unregister("own.example", "b5");
    expect(await caller.tryAcquire("own.example", "b9", limit)).toMatchObject({ status: "QUEUE_FULL", queue_depth: 0 });
  });

  it("frees unreleased slots after one lease", async () => {
    await client.query("UPDATE upstream_slot_pool SET ends_at = ends_at - 30000 WHERE status = 'locked'");
    expect(await caller.call("func_cleanup_zombie_slots", { p_zombie_timeout_seconds: 30 })).toEqual([
      { func_cleanup_zombie_slots: 4 },
    ]);
  });
});

it("merges what the original kept under several spellings of one host", async () => {
  const { client, target } = await newSchema();
  await client.query(ORIGINAL);
  const [plain, raw] = [sha256("twice.example"), sha256("Twice.Example.")];
  await client.query(`INSERT INTO upstream_slot_pool (hostname_pattern, slot_index, status, ip_hash, locked_at) VALUES
    ('${plain}', 1, 'locked', 'b1', now()), ('${plain.toUpperCase()}', 1, 'locked', 'b2', now()),
    ('twice.example.', 1, 'locked', 'b3', now()), ('${raw}', 1, 'locked', 'b4', now())`);
  await client.query(`INSERT INTO upstream_ip_cooldown (hostname_pattern, ip_hash, last_release_at) VALUES
    ('twice.example', 'c', now() - interval '1 hour'), ('TWICE.example.', 'c', now())`);
  await client.query(`INSERT INTO upstream_ip_queue_depth (hostname_pattern, ip_hash, waiting_count, updated_at) VALUES
    ('twice.example', 'w', 2, now()), ('twice.example.', 'w', 3, now())`);
  const opened = Math.floor(Date.now() / 1000) - 10;
  await client.query(`INSERT INTO "THROTTLE_PROTECTION" ("HOSTNAME_HASH", "HOSTNAME", "ERROR_TIMESTAMP", "IS_PROTECTED",
    "LAST_ERROR_CODE") VALUES ('${plain}', 'twice.example', NULL, 0, NULL),
    ('${plain.toUpperCase()}', 'twice.example', ${opened - 5}, 1, 500), ('${raw}', 'Twice.Example.', ${opened}, 1, 503)`);
  await migrate(target);
  const caller = new DirectCaller(client);
  const limits = { p_max_slot_per_host: 5, p_throttle_time_window: 5, p_cooldown_seconds: 60 };
  // Open for 60 s by the row that was written last, and half open for a caller with a shorter window.
  expect(await caller.tryAcquire("twice.example", "x")).toMatchObject({ status: "THROTTLED", throttle_code: 503 });
  expect(await caller.tryAcquire("twice.example", "c", limits)).toMatchObject({
    status: "IP_TOO_MANY",
    queue_depth: 5,
  });
  expect((await caller.tryAcquire("twice.example", "b4", limits)).status).toBe("IP_TOO_MANY");
  expect((await caller.tryAcquire("twice.example", "x", { ...limits, p_max_slot_per_host: 4 })).status).toBe(
    "QUEUE_FULL",
  );
  expect((await caller.tryAcquire("twice.example", "x", limits)).status).toBe("ACQUIRED");
});

describe("a migrated host of the original, read by the service", () => {
  it("has its leases, and new fences are above theirs", async () => {
    const { client, target } = await newSchema();
    await client.query(ORIGINAL);
    await migrate(target);
    const store = await PostgresStore.open(target);
    const { tag, tail } = await store.read(sha256("example.com"), undefined);
    expect(tag).toMatch(/^\d+\.[0-9a-f]+$/);
    const book = tail.kind === "book" ? tail.book : undefined;
    expect(book?.records.map((record) => (record.kind === "lease" ? [record.key, record.bucket] : record))).toEqual([
      ["1", "b1"],
      ["2", "b2"],
      ["4", "b3"],
    ]);
    const fences = book?.records.map((record) => (record.kind === "lease" ? record.fence : 0)) ?? [];
    expect(book?.head).toMatchObject({ slots: 4, fence: Math.max(...fences) });
    const throttled = (await store.peek(["throttled-hash"])).get("throttled-hash");
    // A name that does not belong to the key selects no limits, so the service does not get it.
    expect(throttled?.head.hostname).toBeUndefined();
    expect(throttled?.head).toMatchObject({
      breaker: { code: 429, openedAt: expect.any(Number) },
    });
    await store.close();
  });
});

describe("an original in use during the migration", () => {
  it("finishes its transactions first: the migration waits for them, and counts what they commit", async () => {
    const { client, target } = await newSchema();
    await client.query(ORIGINAL);
    await client.query("BEGIN");
    await client.query(
      "UPDATE upstream_slot_pool SET status = 'locked', ip_hash = 'late', locked_at = now() WHERE id = 3",
    );
    const migrated = migrate(target);
    const waiting = "pg_stat_activity WHERE application_name = 'slotkeeper migrate' AND wait_event_type = 'Lock'";
    const watcher = new DirectCaller(await database.connect());
    await vi.waitFor(async () => expect(await watcher.count(waiting)).toBe(1), { timeout: 10_000 });
    await client.query("COMMIT");
    await migrated;
    const caller = new DirectCaller(client);
    expect((await caller.tryAcquire("example.com", "late", { p_max_slot_per_host: 9 })).status).toBe("IP_TOO_MANY");
    expect((await caller.tryAcquire("example.com", "b9", { p_max_slot_per_host: 4 })).status).toBe("QUEUE_FULL");
  });
});

describe("different shapes of the original", () => {
  it("all give the same schema", async () => {
    const { client, target } = await newSchema();
    await client.query(`
      CREATE TABLE upstream_slot_pool (id serial, hostname_pattern text, slot_index smallint, status text, ip_hash text,
        locked_at bigint, created_at timestamp);
      INSERT INTO upstream_slot_pool (hostname_pattern, slot_index, status, ip_hash, locked_at)
      VALUES ('a', 1, 'locked', NULL, 1700000000000), ('a', 1, 'free', NULL, NULL), ('a', NULL, 'locked', 'b', 1700000000);
      CREATE TABLE upstream_ip_cooldown (hostname_pattern text, ip_hash text, last_release_at timestamp);
      INSERT INTO upstream_ip_cooldown VALUES ('a', 'b', now()), ('a', 'b', now() - interval '1 hour'), ('a', NULL, now());
      CREATE TABLE upstream_ip_queue_depth (hostname_pattern text, ip_hash text, waiting_count bigint, updated_at timestamptz);
      INSERT INTO upstream_ip_queue_depth VALUES ('a', 'b', 1, now()), ('A', 'b', 2, now()), ('a', 'c', -3, now());
      CREATE TABLE "THROTTLE_PROTECTION" (hostname_hash text, hostname text, error_timestamp bigint, is_protected boolean,
        last_error_code int);
      INSERT INTO "THROTTLE_PROTECTION" VALUES ('h', 'a.example', extract(epoch FROM now())::bigint, true, 500)`);
    await migrate(target);
    const fresh = await newSchema();
    await migrate(fresh.target);
    expect(withoutNames(await dumpSchema(client, target.schema))).toBe(
      withoutNames(await dumpSchema(fresh.client, fresh.target.schema)),
    );
    const caller = new DirectCaller(client);
    expect(await caller.count("upstream_slot_pool WHERE status = 'locked'")).toBe(2);
    expect(await caller.tryAcquire("a", "b", { p_cooldown_seconds: 60 })).toMatchObject({
      status: "IP_TOO_MANY",
      queue_depth: 3,
    });
    expect((await caller.tryAcquire("a", "x", { p_hostname_hash: "h" })).status).toBe("THROTTLED");
  });

  it("keep rights that were granted by name, and lose those of PUBLIC", async () => {
    const { client, target } = await newSchema();
    await client.query(ORIGINAL);
    const role = `old_caller_${Date.now()}`;
    await client.query(`CREATE ROLE ${role}; GRANT EXECUTE ON FUNCTION download_release_slot TO ${role}`);
    try {
      await migrate(target);
      const may = async (name: string, who: string) =>
        (await client.query("SELECT has_function_privilege($1, $2, 'EXECUTE') AS may", [who, name])).rows[0]
          .may as boolean;
      expect(await may("download_release_slot(text, text, text, bigint)", role)).toBe(true);
      expect(await may("func_release_fair_slot(int, boolean)", role)).toBe(false);
    } finally {
      await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });
});

/** Functions contain the name of the schema in which they were created. */
function withoutNames(dump: string): string {
  return dump.replaceAll(/original_\d+/g, "");
}
