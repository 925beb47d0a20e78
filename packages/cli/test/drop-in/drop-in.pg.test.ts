import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Command, slotkeeper } from "../command.ts";
import { replay, sha256 } from "./original-caller.ts";

/**
 * The original's configuration file, its database with live rows, and its caller's requests. Only the addresses are
 * changed. After `slotkeeper migrate` and `slotkeeper serve` the callers notice no difference.
 */

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const LAYOUT = read("../../../postgres/test/migrate/original-layout.sql");
const LIVE_ROWS = read("live-rows.sql");
const HOST = "files.example.com";
const HASH = sha256(HOST);

const folder = mkdtempSync(join(tmpdir(), "slotkeeper-drop-in-"));
const file = join(folder, "config.json");
let database: TestDatabase;
let client: Awaited<ReturnType<TestDatabase["connect"]>>;
let service: Command;
let url: string;

beforeAll(async () => {
  database = await TestDatabase.open({ isEmpty: true });
  client = await database.connect();
  await client.query(LAYOUT);
  await client.query(LIVE_ROWS);
  writeFileSync(file, originalConfig());
  const migrate = slotkeeper(["migrate", "-c", file]);
  if ((await migrate.exited) !== 0) throw new Error(migrate.err);
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

/** The original configuration, with a different listen address and database. */
function originalConfig(): string {
  const text = read("original-config.json");
  const changed = text
    .replace('"postgres://user:password@127.0.0.1:5432/slots"', JSON.stringify(database.dsn))
    .replace('":8080"', '"127.0.0.1:0"');
  if (JSON.parse(changed).backend.postgres.dsn !== database.dsn) throw new Error("the address was not replaced");
  return changed;
}

beforeEach(async () => {
  service = slotkeeper(["serve", "-c", file], { NODE_ENV: "production" });
  url = (await service.said(/"url":"(http:[^"]+)"/))[1] as string;
});

async function post(name: string, body: object): Promise<{ [field: string]: unknown }> {
  const response = await fetch(`${url}/api/v0/fairqueue/${name}`, { method: "POST", body: JSON.stringify(body) });
  return (await response.json()) as { [field: string]: unknown };
}

const holders = async () => {
  const { rows } = await client.query<{ bucket: string }>(
    `SELECT ip_hash AS bucket FROM upstream_slot_pool WHERE hostname_pattern = $1 AND status = 'locked'
      AND ends_at > extract(epoch FROM now()) * 1000 AND NOT is_released ORDER BY ip_hash`,
    [HASH],
  );
  return rows.map(({ bucket }) => bucket);
};

describe("as a replacement of the original", () => {
  it("requests of its callers get the statuses and fields that they read, and the holders of live rows keep their slots", async () => {
    const before = await holders();
    expect(before).toEqual(["holder-1", "holder-2", "holder-3", "holder-4"]);
    const replayed = await replay(url);
    expect(replayed.map(({ got }) => got)).toEqual(replayed.map(({ expected }) => expected));
    expect(replayed).toHaveLength(5);
    await expect.poll(holders).toEqual(before);
    expect(service.err).toMatch(/`fairQueue\.rpc` has no effect/);
    expect(service.err).not.toMatch(/"level":"error"/);
  });

  it("a waiting caller gets the slot that a holder of the original releases with the old function", async () => {
    // The fifth slot is taken; the sixth caller waits.
    const fifth = await post("acquire", { hostname: HOST, hostnameHash: HASH, ipBucket: "fifth", waitMs: 5_000 });
    expect(fifth["result"]).toBe("granted");
    const first = await post("acquire", { hostname: HOST, hostnameHash: HASH, ipBucket: "sixth" });
    expect(first).toMatchObject({ result: "pending", queryToken: expect.any(String) });
    const polled = post("acquire", { queryToken: first["queryToken"] });
    const { rows } = await client.query<{ id: number }>(
      "SELECT id FROM upstream_slot_pool WHERE hostname_pattern = $1 AND ip_hash = 'holder-1'",
      [HASH],
    );
    await client.query("SELECT download_release_slot($1, 'holder-1', $2, 0)", [HASH, String(rows[0]?.id)]);
    expect(await polled).toMatchObject({ result: "granted", slotToken: expect.stringMatching(/^slot_/) });
    expect(await holders()).toEqual(["fifth", "holder-2", "holder-3", "holder-4", "sixth"]);
  });

  it("a host whose breaker the original had opened is throttled, with the upstream's status", async () => {
    const throttled = await post("acquire", { hostname: "throttled.example", hostnameHash: "throttled-hash" });
    expect(throttled).toMatchObject({ result: "throttled", throttleCode: 429 });
    expect(throttled["throttleRetryAfter"]).toBeGreaterThanOrEqual(1);
  });

  it("a denied bucket is logged once per window with the host's name, or its hash if no name is known", async () => {
    const unnamed = sha256("never-named.example");
    for (const host of [{ hostname: "named.example" }, { hostnameHash: unnamed }]) {
      const asked = { ...host, ipBucket: "greedy" };
      await post("acquire", { ...asked, waitMs: 5_000 });
      await post("acquire", { ...asked, waitMs: 100 });
    }
    const logged = () =>
      service.err
        .split("\n")
        .filter((line) => line.includes("probe decision"))
        .map((line) => JSON.parse(line) as { [field: string]: unknown })
        .map(({ level, msg, host, ip, allowed, reason }) => ({ level, msg, host, ip, allowed, reason }));
    const line = (host: string) => ({
      level: "info",
      msg: "probe decision",
      host,
      ip: "greedy",
      allowed: false,
      reason: "ip_deny_window",
    });
    await expect.poll(logged).toEqual([line("named.example"), line(unnamed)]);
  });

  it("the original's cleanup calls, in its order, delete what has expired and nothing else", async () => {
    const held = await holders();
    await client.query("UPDATE upstream_ip_cooldown SET last_release_at = now() - interval '1 day' WHERE is_direct");
    const { rows } = await client.query(
      "SELECT func_cleanup_zombie_slots(30) AS slots, func_cleanup_ip_cooldown(60) AS cooldowns, func_cleanup_queue_depth(20) AS waiters",
    );
    expect(Object.values(rows[0] ?? {}).every((count) => Number.isInteger(count))).toBe(true);
    expect(await holders()).toEqual(held);
  });
});
