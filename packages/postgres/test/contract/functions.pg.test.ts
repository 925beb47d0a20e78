import { createHash } from "node:crypto";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, describe, expect, it } from "vitest";
import { TestClock } from "../test-clock.ts";
import { DirectCaller } from "./direct-caller.ts";

const database = await TestDatabase.open();
afterAll(() => database.close());
const client = await database.connect();
const clock = await TestClock.install(client);
const caller = new DirectCaller(client);

const sha256 = (name: string) => createHash("sha256").update(name).digest("hex");
/** Calls a function by position, as a program does that does not use the argument names. */
const positional = async (text: string, values: readonly unknown[] = []) =>
  (await client.query({ text, values: [...values], rowMode: "array" })).rows as unknown[][];
let hosts = 0;
/** Each test has hosts of its own. */
const newHost = () => `h${++hosts}.example`;

describe("download_try_acquire_slot", () => {
  it("answers ACQUIRED with a token in the six columns, if called by name", async () => {
    const answer = await caller.tryAcquire(newHost(), "b");
    expect(answer).toEqual({
      status: "ACQUIRED",
      slot_token: expect.stringMatching(/^slot_[0-9a-f]{64}\.[0-9a-f]{64}$/),
      queue_depth: 0,
      ip_queue_depth: 0,
      throttle_code: null,
      throttle_retry_after: null,
    });
  });

  it("answers the same if called by position, with six or with all twelve arguments", async () => {
    const host = newHost();
    const six = [sha256(host), host, "b1", 1732170000000, 2, 1];
    const [[status, token] = []] = await positional("SELECT * FROM download_try_acquire_slot($1,$2,$3,$4,$5,$6)", six);
    expect([status, typeof token]).toEqual(["ACQUIRED", "string"]);
    const twelve = [sha256(host), host, "b2", 1732170000000, 2, 1, 0, 30, 0, 60];
    const all = await positional(
      "SELECT * FROM download_try_acquire_slot($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,'THROTTLE_PROTECTION','upstream_ip_queue_depth')",
      twelve,
    );
    expect(all[0]?.[0]).toBe("ACQUIRED");
    expect((await caller.tryAcquire(host, "b3")).status).toBe("QUEUE_FULL");
  });

  it("answers IP_TOO_MANY for a bucket at its limit, even if the host has free slots", async () => {
    const host = newHost();
    await caller.acquire(host, "b");
    expect(await caller.tryAcquire(host, "b")).toMatchObject({ status: "IP_TOO_MANY", slot_token: null });
    expect((await caller.tryAcquire(host, "other")).status).toBe("ACQUIRED");
  });

  it("answers IP_TOO_MANY during the cooldown of the bucket, at limit 1 and above", async () => {
    for (const perBucket of [1, 2]) {
      const host = newHost();
      const limits = { p_cooldown_seconds: 10, p_max_slot_per_ip: perBucket };
      await caller.release(await caller.acquire(host, "b", limits));
      expect((await caller.tryAcquire(host, "b", limits)).status).toBe("IP_TOO_MANY");
      expect((await caller.tryAcquire(host, "other", limits)).status).toBe("ACQUIRED");
      await clock.advance(10_001);
      expect((await caller.tryAcquire(host, "b", limits)).status).toBe("ACQUIRED");
    }
  });

  it("answers QUEUE_FULL if no slot is free, and ACQUIRED once one is free", async () => {
    const host = newHost();
    const token = await caller.acquire(host, "b1");
    await caller.acquire(host, "b2");
    expect((await caller.tryAcquire(host, "b3")).status).toBe("QUEUE_FULL");
    await caller.release(token);
    expect((await caller.tryAcquire(host, "b3")).status).toBe("ACQUIRED");
  });

  it("answers THROTTLED with code and seconds while the breaker is open", async () => {
    const host = newHost();
    for (let i = 0; i < 4; i++) await caller.report(host, true);
    await clock.advance(20_500);
    expect(await caller.tryAcquire(host, "b")).toMatchObject({
      status: "THROTTLED",
      slot_token: null,
      throttle_code: 503,
      throttle_retry_after: 40,
    });
    expect((await caller.tryAcquire(host, "b", { p_throttle_time_window: 20 })).status).toBe("ACQUIRED");
  });

  it("returns how many waiters the host and the bucket have", async () => {
    const host = newHost();
    await caller.register(host, "b");
    await caller.register(host, "b");
    await caller.register(host, "other");
    expect(await caller.tryAcquire(host, "b")).toMatchObject({ queue_depth: 3, ip_queue_depth: 2 });
  });

  it("identifies a host by its hash or by the SHA-256 of its lower-cased name: both use one pool", async () => {
    const host = newHost();
    await caller.acquire(host.toUpperCase(), "b1");
    await caller.acquire("", "b2", { p_hostname_hash: sha256(host) });
    expect((await caller.tryAcquire(host, "b3")).status).toBe("QUEUE_FULL");
    expect(await caller.tryId(host, "b3")).toBe(-1);
    expect(await caller.tryId(sha256(host), "b3")).toBe(-1);
  });

  it.each([
    ["a trailing dot", (host: string) => [null, `${host}.`]],
    ["upper case and a trailing dot", (host: string) => [null, `${host.toUpperCase()}.`]],
    ["a hash in upper case", (host: string) => [sha256(host).toUpperCase(), ""]],
    [
      "the hash of the name as it was sent",
      (host: string) => [sha256(`${host.toUpperCase()}.`), `${host.toUpperCase()}.`],
    ],
  ] as const)("uses one pool for a host that is sent with %s, in every function", async (_, spell) => {
    const host = newHost();
    const [p_hostname_hash, p_hostname] = spell(host) as [string | null, string];
    const names = { p_hostname_hash, p_hostname };
    const pattern = p_hostname === "" ? String(p_hostname_hash) : p_hostname;
    const one = { p_max_slot_per_host: 1 };
    await caller.acquire(host, "b1", one);
    expect((await caller.tryAcquire("", "b2", { ...names, ...one })).status).toBe("QUEUE_FULL");
    expect(await caller.tryId(pattern, "b2", { slots: 1 })).toBe(-1);
    expect(await caller.register("", "b2", names)).toMatchObject({ status: "REGISTERED", queue_depth: 1 });
    expect(await caller.tryAcquire(host, "b2", one)).toMatchObject({ queue_depth: 1 });
    await caller.unregister(pattern, "b2");
    expect(await caller.tryAcquire(host, "b2", one)).toMatchObject({ queue_depth: 0 });
    for (let i = 0; i < 4; i++) await caller.report("", true, names);
    const check = (given: object) => caller.call("download_check_throttle_protection", { ...names, ...given });
    expect(await check({})).toMatchObject([{ is_protected: true }]);
    expect(await check({ p_hostname_hash: null, p_hostname: host })).toMatchObject([{ is_protected: true }]);
    expect(await caller.count(`slotkeeper_host WHERE host = $1`, [sha256(host)])).toBe(1);
  });

  it("applies no slot limit and no cooldown to the bucket without a name", async () => {
    const host = newHost();
    const limits = { p_cooldown_seconds: 10, p_max_slot_per_host: 3 };
    const token = await caller.acquire(host, "", limits);
    await caller.acquire(host, "", limits);
    await caller.release(token);
    const absent = { p_hostname_hash: null, p_hostname: host, p_ip_bucket: null, p_now_ms: 0, p_max_slot_per_ip: 1 };
    const answers = await caller.call("download_try_acquire_slot", { ...absent, ...limits });
    expect(answers).toMatchObject([{ status: "ACQUIRED" }]);
  });

  it("reclaims a slot when its lease ends, and not before", async () => {
    const host = newHost();
    const limits = { p_max_slot_per_host: 1, p_zombie_timeout: 5 };
    await caller.acquire(host, "b1", limits);
    await clock.advance(4_999);
    expect((await caller.tryAcquire(host, "b2", limits)).status).toBe("QUEUE_FULL");
    await clock.advance(2);
    expect((await caller.tryAcquire(host, "b2", limits)).status).toBe("ACQUIRED");
  });

  it("reclaims a slot whose locked_at was set back by hand, as the original did", async () => {
    const host = newHost();
    await caller.acquire(host, "b1", { p_max_slot_per_host: 1 });
    await client.query(
      "UPDATE upstream_slot_pool SET locked_at = locked_at - interval '1 hour' WHERE hostname_pattern = $1",
      [sha256(host)],
    );
    expect((await caller.tryAcquire(host, "b2", { p_max_slot_per_host: 1 })).status).toBe("ACQUIRED");
  });
});

describe("download_release_slot", () => {
  it("returns void, by name and by position, and frees the slot immediately", async () => {
    const host = newHost();
    const limits = { p_max_slot_per_host: 1 };
    await caller.release(await caller.acquire(host, "b", limits));
    const token = await caller.acquire(host, "b", limits);
    const rows = await positional("SELECT download_release_slot($1,$2,$3,$4)", [sha256(host), "b", token, 0]);
    expect(rows).toEqual([[""]]);
    expect((await caller.tryAcquire(host, "b", limits)).status).toBe("ACQUIRED");
  });

  it("ignores everything that is not the token of a live slot", async () => {
    const host = newHost();
    const token = await caller.acquire(host, "b");
    const { rows } = await client.query("SELECT id FROM upstream_slot_pool WHERE token = $1", [token]);
    const id = rows[0].id as number;
    const forged = `${token.slice(0, -64)}${"0".repeat(64)}`;
    const wrong = [
      "",
      `${id}`,
      "999999999",
      "2147483648",
      "99999999999999999999",
      "x",
      `${id}.x`,
      "slot_.",
      "slot_x.y",
    ];
    for (const other of [...wrong, token.slice(0, -1), forged]) await caller.release(other);
    expect(await caller.count("upstream_slot_pool WHERE id = $1 AND status = 'locked'", [id])).toBe(1);
    await caller.call("download_release_slot", {
      p_hostname_hash: null,
      p_ip_bucket: null,
      p_slot_token: null,
      p_now_ms: 0,
    });
  });
});

describe("download_register_fq_waiter and download_release_fq_waiter", () => {
  it("count up and down, by name and by position", async () => {
    const host = newHost();
    expect(await caller.register(host, "b")).toEqual({ status: "REGISTERED", queue_depth: 1, ip_queue_depth: 1 });
    const values = [null, host, "b", 0, 20, "upstream_ip_queue_depth", 0];
    const rows = await positional("SELECT * FROM download_register_fq_waiter($1,$2,$3,$4,$5,$6,$7)", values);
    expect(rows).toEqual([["REGISTERED", 2, 2]]);
    await caller.unregister(host, "b");
    expect(await positional("SELECT download_release_fq_waiter($1,$2)", [host, "b"])).toEqual([[""]]);
    expect(await caller.tryAcquire(host, "b")).toMatchObject({ queue_depth: 0, ip_queue_depth: 0 });
    await caller.unregister(host, "b");
    expect(await caller.tryAcquire(host, "c")).toMatchObject({ queue_depth: 0, ip_queue_depth: 0 });
  });

  it("answer QUEUE_FULL for a bucket at its limit and HOST_QUEUE_FULL for a host at its limit", async () => {
    const host = newHost();
    const caps = { p_max_waiters_per_ip: 2, p_max_waiters_per_host: 3 };
    for (const bucket of ["b", "b"]) expect((await caller.register(host, bucket, caps)).status).toBe("REGISTERED");
    expect(await caller.register(host, "b", caps)).toEqual({ status: "QUEUE_FULL", queue_depth: 2, ip_queue_depth: 2 });
    expect((await caller.register(host, "c", caps)).status).toBe("REGISTERED");
    expect(await caller.register(host, "d", caps)).toMatchObject({ status: "HOST_QUEUE_FULL", queue_depth: 3 });
    await caller.unregister(host, "b");
    expect((await caller.register(host, "d", caps)).status).toBe("REGISTERED");
  });

  it("find a waiter by the host's name although it was registered with the caller's own hash", async () => {
    const host = newHost();
    await caller.register(host, "b", { p_hostname_hash: "their-own-hash" });
    await caller.unregister(host.toUpperCase(), "b");
    expect(await caller.tryAcquire(host, "b", { p_hostname_hash: "their-own-hash" })).toMatchObject({ queue_depth: 0 });
    await caller.register(host, "b");
    await caller.unregister(host, "b");
    expect(await caller.tryAcquire(host, "b")).toMatchObject({ queue_depth: 0 });
  });
});

describe("download_check_throttle_protection and download_upsert_throttle_protection", () => {
  it("report an answer and return how long the host is protected, by name and by position", async () => {
    const host = newHost();
    const check = () => caller.call("download_check_throttle_protection", { p_hostname_hash: null, p_hostname: host });
    expect(await check()).toEqual([{ is_protected: false, error_code: null, retry_after: null }]);
    for (let i = 0; i < 3; i++) await caller.report(host, true);
    expect(await check()).toMatchObject([{ is_protected: false }]);
    await positional(
      "SELECT * FROM download_upsert_throttle_protection($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,'THROTTLE_PROTECTION')",
      ["", host, 0, true, 429, 60, 60, 20, 4, 8, null, null],
    );
    expect(await check()).toEqual([{ is_protected: true, error_code: 429, retry_after: 60 }]);
    await clock.advance(59_500);
    const rows = await positional("SELECT * FROM download_check_throttle_protection($1,$2,$3)", ["", host, 60]);
    expect(rows).toEqual([[true, 429, 1]]);
    await clock.advance(500);
    expect(await check()).toMatchObject([{ is_protected: false }]);
  });

  it("return the breaker's row", async () => {
    const host = newHost();
    expect(await caller.report(host, false)).toEqual({
      HOSTNAME_HASH: sha256(host),
      HOSTNAME: host,
      ERROR_TIMESTAMP: null,
      IS_PROTECTED: 0,
      LAST_ERROR_CODE: null,
      OBS_WINDOW_START: expect.any(Number),
      OBS_ERROR_COUNT: 0,
      OBS_SUCCESS_COUNT: 1,
      CONSECUTIVE_ERROR_COUNT: 0,
    });
    expect(await caller.report(host, true)).toMatchObject({
      OBS_ERROR_COUNT: 1,
      CONSECUTIVE_ERROR_COUNT: 1,
      LAST_ERROR_CODE: 503,
    });
    for (let i = 0; i < 3; i++) await caller.report(host, true);
    const table = await client.query(`SELECT * FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME" = $1`, [host]);
    expect(table.rows).toMatchObject([{ IS_PROTECTED: 1, ERROR_TIMESTAMP: expect.any(Number), LAST_ERROR_CODE: 503 }]);
  });

  it.each([
    ["consecutive errors", { p_consecutive_threshold: 3, p_min_sample_count: 0 }, [true, true, true]],
    ["the ratio", { p_consecutive_threshold: 0, p_min_sample_count: 5 }, [false, false, false, false, true]],
    [
      "the fast ratio",
      { p_consecutive_threshold: 0, p_min_sample_count: 0, p_fast_error_ratio_percent: 50, p_fast_min_sample_count: 2 },
      [false, true],
    ],
  ])("open on %s, with the caller's thresholds", async (_, thresholds, reports) => {
    const host = newHost();
    for (const [at, isError] of reports.entries()) {
      const row = await caller.report(host, isError, thresholds);
      expect(row["IS_PROTECTED"], `report ${at + 1}`).toBe(at === reports.length - 1 ? 1 : 0);
    }
  });

  it("allow one probe at a time while half open; a success closes the breaker, an error opens it again", async () => {
    const host = newHost();
    for (let i = 0; i < 4; i++) await caller.report(host, true);
    await clock.advance(60_000);
    const probe = await caller.acquire(host, "b1");
    expect((await caller.tryAcquire(host, "b2")).status).toBe("QUEUE_FULL");
    expect(await caller.report(host, true)).toMatchObject({ IS_PROTECTED: 1 });
    expect((await caller.tryAcquire(host, "b2")).status).toBe("THROTTLED");
    await caller.release(probe);
    await clock.advance(60_000);
    await caller.acquire(host, "b1");
    expect(await caller.report(host, false)).toMatchObject({ IS_PROTECTED: 0 });
    expect((await caller.tryAcquire(host, "b2")).status).toBe("ACQUIRED");
  });
});

describe("an open breaker", () => {
  const minutes = (count: number) => clock.advance(count * 60_000);
  const check = async (host: string, window: number) => {
    const given = { p_hostname_hash: null, p_hostname: host, p_throttle_time_window: window };
    return (await caller.call<Record<string, unknown>>("download_check_throttle_protection", given))[0];
  };

  it("is open for the window of each caller, up to an hour, after any other caller opened or read it", async () => {
    const host = newHost();
    for (let i = 0; i < 4; i++) await caller.report(host, true, { p_throttle_time_window: 1 });
    expect(await check(host, 1)).toMatchObject({ is_protected: true, retry_after: 1 });
    await minutes(20);
    expect(await check(host, 1)).toMatchObject({ is_protected: false });
    expect(await check(host, 1800)).toMatchObject({ is_protected: true, retry_after: 600 });
    expect(await check(host, 86_400)).toMatchObject({ is_protected: true, retry_after: 2400 });
    const throttled = { status: "THROTTLED", throttle_retry_after: 600 };
    expect(await caller.tryAcquire(host, "b", { p_throttle_time_window: 1800 })).toMatchObject(throttled);
  });

  it("stays half open until a success or the end of the hour, for attempts and reports alike", async () => {
    const [host, other] = [newHost(), newHost()];
    const window = { p_throttle_time_window: 1 };
    for (const name of [host, other]) for (let i = 0; i < 4; i++) await caller.report(name, true, window);
    await minutes(59);
    await caller.acquire(host, "b1", window);
    expect((await caller.tryAcquire(host, "b2", window)).status).toBe("QUEUE_FULL");
    // Half open: one error is enough. Closed: it would take four.
    expect(await caller.report(other, true, window)).toMatchObject({ IS_PROTECTED: 1, OBS_ERROR_COUNT: 0 });
    await minutes(1);
    expect((await caller.tryAcquire(host, "b2", window)).status).toBe("ACQUIRED");
    expect(await caller.report(host, true, window)).toMatchObject({ IS_PROTECTED: 0, OBS_ERROR_COUNT: 1 });
    expect(await check(other, 3600)).toMatchObject({ is_protected: true, retry_after: 3540 });
  });
});

describe("func_try_acquire_slot and func_release_fair_slot", () => {
  it("return an id, 0 if the bucket is at its limit, or -1 if no slot is free; by name, too", async () => {
    const host = newHost();
    const id = await caller.tryId(host, "b1");
    expect(id).toBeGreaterThan(0);
    expect(await caller.count("upstream_slot_pool WHERE id = $1 AND status = 'locked' AND ip_hash = 'b1'", [id])).toBe(
      1,
    );
    expect(await caller.tryId(host, "b1")).toBe(0);
    const named = {
      p_hostname_pattern: host,
      p_ip_hash: "b2",
      p_global_limit: 2,
      p_per_ip_limit: 1,
      p_zombie_timeout_seconds: 30,
      p_cooldown_seconds: 0,
    };
    expect(await caller.call("func_try_acquire_slot", named)).toEqual([{ func_try_acquire_slot: expect.any(Number) }]);
    expect(await caller.tryId(host, "b3")).toBe(-1);
    await caller.releaseId(id);
    expect(await caller.tryId(host, "b3")).toBeGreaterThan(0);
  });

  it("start the cooldown unless the caller disables it", async () => {
    const host = newHost();
    await caller.releaseId(await caller.tryId(host, "b", { cooldown: 10 }), false);
    const id = await caller.tryId(host, "b", { cooldown: 10 });
    expect(id).toBeGreaterThan(0);
    await client.query("SELECT func_release_fair_slot($1)", [id]);
    expect(await caller.tryId(host, "b", { cooldown: 10 })).toBe(0);
  });

  it("count against the same limits as the functions with tokens", async () => {
    const host = newHost();
    await caller.acquire(host, "b");
    expect(await caller.tryId(host, "b")).toBe(0);
    await caller.tryId(host, "c");
    expect((await caller.tryAcquire(host, "d")).status).toBe("QUEUE_FULL");
  });
});

describe("the cleanup functions", () => {
  it("func_cleanup_zombie_slots frees leases that have ended, and no others", async () => {
    const host = newHost();
    await caller.acquire(host, "b1", { p_zombie_timeout: 5 });
    await caller.acquire(host, "b2", { p_zombie_timeout: 500 });
    await clock.advance(6_000);
    expect(await caller.call("func_cleanup_zombie_slots", { p_zombie_timeout_seconds: 1 })).toMatchObject([
      { func_cleanup_zombie_slots: expect.any(Number) },
    ]);
    const held = await client.query(
      "SELECT ip_hash FROM upstream_slot_pool WHERE hostname_pattern = $1 AND status = 'locked'",
      [sha256(host)],
    );
    expect(held.rows).toEqual([{ ip_hash: "b2" }]);
    expect(await positional("SELECT func_cleanup_zombie_slots(1)")).toEqual([[0]]);
  });

  it("func_cleanup_ip_cooldown deletes rows older than its argument", async () => {
    const host = newHost();
    await caller.release(await caller.acquire(host, "b"));
    await positional("SELECT func_cleanup_ip_cooldown(5)");
    const left = () => caller.count("upstream_ip_cooldown WHERE hostname_pattern = $1", [sha256(host)]);
    expect(await left()).toBe(1);
    await clock.advance(6_000);
    const [[dropped] = []] = await positional("SELECT func_cleanup_ip_cooldown(5)");
    expect([await left(), (dropped as number) >= 1]).toEqual([0, true]);
  });

  it("func_cleanup_queue_depth deletes buckets without recent calls", async () => {
    const host = newHost();
    await caller.register(host, "b", { p_zombie_timeout_seconds: 30 });
    await positional("SELECT func_cleanup_queue_depth(20)");
    const left = () => caller.count("upstream_ip_queue_depth WHERE hostname_pattern = $1", [sha256(host)]);
    expect(await left()).toBe(1);
    await clock.advance(21_000);
    const [[dropped] = []] = await positional("SELECT func_cleanup_queue_depth(20)");
    expect([await left(), (dropped as number) >= 1]).toEqual([0, true]);
  });
});

describe("bad arguments", () => {
  const some = { p_hostname_hash: null, p_hostname: "x.example", p_ip_bucket: "b", p_now_ms: 0 };
  const limits = { p_max_slot_per_host: 1, p_max_slot_per_ip: 1 };

  it.each([
    [
      "download_try_acquire_slot",
      { ...some, ...limits, p_throttle_table_name: "pg_authid" },
      /THROTTLE_PROTECTION.*pg_authid/,
    ],
    ["download_try_acquire_slot", { ...some, ...limits, p_queue_depth_table_name: "x" }, /upstream_ip_queue_depth.*x/],
    ["download_try_acquire_slot", { ...some, ...limits, p_hostname: "" }, /a hostname or its hash/],
    ["download_try_acquire_slot", { ...some, ...limits, p_hostname: "." }, /a hostname or its hash/],
    ["download_try_acquire_slot", { ...some, ...limits, p_hostname: "x".repeat(256) }, /p_hostname.*255/],
    ["download_try_acquire_slot", { ...some, ...limits, p_hostname_hash: "x".repeat(129) }, /p_hostname_hash.*128/],
    ["download_try_acquire_slot", { ...some, ...limits, p_ip_bucket: "a\nb" }, /p_ip_bucket.*control/],
    ["download_try_acquire_slot", { ...some, ...limits, p_max_slot_per_host: null }, /p_max_slot_per_host.*NULL/],
    ["download_try_acquire_slot", { ...some, ...limits, p_zombie_timeout: 0 }, /p_zombie_timeout.*at least 1, got 0/],
    [
      "download_register_fq_waiter",
      { p_hostname_hash: null, p_hostname: "x", p_ip_bucket: "b", p_queue_depth_table_name: "y" },
      /upstream_ip_queue_depth/,
    ],
    [
      "download_release_fq_waiter",
      { p_hostname: "x", p_ip_bucket: "b", p_queue_depth_table_name: null },
      /upstream_ip_queue_depth/,
    ],
    [
      "download_check_throttle_protection",
      { p_hostname_hash: null, p_hostname: "x", p_throttle_table_name: "y" },
      /THROTTLE_PROTECTION/,
    ],
    ["func_cleanup_zombie_slots", { p_zombie_timeout_seconds: -1 }, /at least 0, got -1/],
  ])("%s refuses %j with an error, never a status, and changes nothing", async (name, given, message) => {
    const before = await caller.count("slotkeeper_host");
    await expect(caller.call(name, given)).rejects.toThrow(message);
    expect(await caller.count("slotkeeper_host")).toBe(before);
  });

  it("download_upsert_throttle_protection refuses a different table name", async () => {
    await expect(caller.report(newHost(), true, { p_table_name: "x" })).rejects.toThrow(/THROTTLE_PROTECTION/);
  });
});
