import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, describe, expect, it } from "vitest";
import { TestClock } from "../test-clock.ts";
import { DirectCaller } from "./direct-caller.ts";

/** Faults of the original implementation (service.md, section 8) that its callers noticed. One test each. */
const database = await TestDatabase.open();
afterAll(() => database.close());
const client = await database.connect();
const clock = await TestClock.install(client);
const caller = new DirectCaller(client);
const ONE = { p_max_slot_per_host: 1 };
const lastValue = async () =>
  (await client.query("SELECT last_value FROM upstream_slot_pool_id_seq")).rows[0].last_value;

describe("faults of the original implementation", () => {
  it("the breaker check reports a protected host as protected", async () => {
    for (let i = 0; i < 4; i++) await caller.report("breaker", true);
    const given = { p_hostname_hash: null, p_hostname: "breaker" };
    expect(await caller.call("download_check_throttle_protection", given)).toMatchObject([{ is_protected: true }]);
  });

  it("releasing a token twice does not free the slot of the next holder", async () => {
    const token = await caller.acquire("double", "b1", ONE);
    await caller.release(token);
    const next = await caller.acquire("double", "b2", ONE);
    expect(next).not.toBe(token);
    await caller.release(token);
    expect((await caller.tryAcquire("double", "b3", ONE)).status).toBe("QUEUE_FULL");
  });

  it("releasing a token after its lease was reclaimed does not free the slot of the next holder", async () => {
    const token = await caller.acquire("late", "b1", { ...ONE, p_zombie_timeout: 1 });
    await clock.advance(1_001);
    await caller.acquire("late", "b2", ONE);
    await caller.release(token);
    expect((await caller.tryAcquire("late", "b3", ONE)).status).toBe("QUEUE_FULL");
  });

  it("releasing an id twice does not free the slot of the next holder", async () => {
    const id = await caller.tryId("ids", "b1", { slots: 1 });
    await caller.releaseId(id);
    const next = await caller.tryId("ids", "b2", { slots: 1 });
    expect(next).not.toBe(id);
    await caller.releaseId(id);
    expect(await caller.tryId("ids", "b3", { slots: 1 })).toBe(-1);
  });

  it("an id releases only a slot that was granted by id, although the row of a token has an id, too", async () => {
    const token = await caller.acquire("bare", "b1", ONE);
    const { rows } = await client.query("SELECT id FROM upstream_slot_pool WHERE token = $1", [token]);
    await caller.releaseId(rows[0].id as number);
    await caller.release(String(rows[0].id));
    expect((await caller.tryAcquire("bare", "b2", ONE)).status).toBe("QUEUE_FULL");
    await caller.release(token);
    const id = await caller.tryId("bare", "b1", { slots: 1 });
    await caller.release(String(id));
    expect((await caller.tryAcquire("bare", "b2", ONE)).status).toBe("QUEUE_FULL");
  });

  it("an id with ten digits can be released, as an id and as a token of the original", async () => {
    for (const release of [(id: number) => caller.releaseId(id), (id: number) => caller.release(String(id))]) {
      const id = await caller.tryId("digits", "b1", { slots: 1 });
      expect(id).toBeGreaterThan(1_000_000_000);
      await client.query("UPDATE upstream_slot_pool SET id = 2147483647, token = '2147483647' WHERE id = $1", [id]);
      await release(2_147_483_647);
      expect(await caller.count("upstream_slot_pool WHERE id = 2147483647 AND status = 'locked'")).toBe(0);
      await client.query("UPDATE upstream_slot_pool SET id = $1 WHERE id = 2147483647", [id]);
    }
  });

  it("tokens cannot be guessed: no two share their random part", async () => {
    const tokens = new Set<string | undefined>();
    for (let i = 0; i < 50; i++) {
      const token = await caller.acquire("guess", "b", ONE);
      tokens.add(token.split(".").at(-1));
      await caller.release(token);
    }
    expect(tokens.size).toBe(50);
  });

  it("attempts use no number of the sequence once the slots exist, whether they fail or not", async () => {
    const token = await caller.acquire("burnt", "b1", ONE);
    const before = await lastValue();
    for (let i = 0; i < 20; i++) {
      expect((await caller.tryAcquire("burnt", "b2", ONE)).status).toBe("QUEUE_FULL");
      expect(await caller.tryId("burnt", "b2", { slots: 1 })).toBe(-1);
    }
    await caller.release(token);
    for (let i = 0; i < 20; i++) {
      await caller.release(await caller.acquire("burnt", "b1", ONE));
      await caller.releaseId(await caller.tryId("burnt", "b1", { slots: 1 }));
    }
    expect(await lastValue()).toBe(before);
    expect(await caller.count("upstream_slot_pool WHERE hostname_pattern = slotkeeper_host_key(NULL, 'burnt')")).toBe(
      1,
    );
  });

  it("the cooldown works at limit 1", async () => {
    await caller.releaseId(await caller.tryId("cool", "b", { cooldown: 5 }));
    expect(await caller.tryId("cool", "b", { cooldown: 5 })).toBe(0);
    await clock.advance(5_001);
    expect(await caller.tryId("cool", "b", { cooldown: 5 })).toBeGreaterThan(0);
  });

  it("dead waiters do not keep a host full", async () => {
    const caps = { p_max_waiters_per_host: 2, p_zombie_timeout_seconds: 20 };
    await caller.register("dead", "b1", caps);
    await caller.register("dead", "b2", caps);
    expect((await caller.register("dead", "b3", caps)).status).toBe("HOST_QUEUE_FULL");
    await clock.advance(20_001);
    expect(await caller.register("dead", "b3", caps)).toMatchObject({ status: "REGISTERED", queue_depth: 1 });
  });

  it("dead waiters of a bucket stop counting even if others of the bucket keep registering", async () => {
    const caps = { p_max_waiters_per_ip: 2, p_zombie_timeout_seconds: 20 };
    await caller.register("busy", "b", caps);
    await clock.advance(15_000);
    await caller.register("busy", "b", caps);
    await clock.advance(6_000);
    expect(await caller.register("busy", "b", caps)).toMatchObject({ status: "REGISTERED", ip_queue_depth: 2 });
    expect((await caller.register("busy", "b", caps)).status).toBe("QUEUE_FULL");
  });

  it("the count of waiters never falls below zero", async () => {
    await caller.unregister("below", "b");
    await caller.register("below", "b");
    await caller.unregister("below", "b");
    await caller.unregister("below", "b");
    expect(await caller.register("below", "b")).toMatchObject({ queue_depth: 1, ip_queue_depth: 1 });
  });

  it("a time in the future does no harm: only the database's clock counts", async () => {
    const future = 4_000_000_000_000;
    const token = await caller.acquire("future", "b1", { ...ONE, p_now_ms: future, p_zombie_timeout: 5 });
    await clock.advance(5_001);
    expect((await caller.tryAcquire("future", "b2", { ...ONE, p_now_ms: 0 })).status).toBe("ACQUIRED");
    await client.query("SELECT download_release_slot('', 'b1', $1, $2)", [token, future]);
    const row = await caller.report("future", true, { p_now: 2_000_000_000, p_consecutive_threshold: 1 });
    expect(row["ERROR_TIMESTAMP"]).toBeLessThan(2_000_000_000);
  });

  it("locking or freeing a slot by hand is an error, because the tag would not change", async () => {
    const token = await caller.acquire("hand", "b1", ONE);
    const host = "hostname_pattern = slotkeeper_host_key(NULL, 'hand')";
    await expect(client.query(`UPDATE upstream_slot_pool SET status = 'available' WHERE ${host}`)).rejects.toThrow(
      /_lease/,
    );
    await caller.release(token);
    await expect(client.query(`UPDATE upstream_slot_pool SET status = 'locked' WHERE ${host}`)).rejects.toThrow(
      /_lease/,
    );
    expect((await caller.tryAcquire("hand", "b2", ONE)).status).toBe("ACQUIRED");
  });

  it("an attempt does not wait for the lock of another host", async () => {
    const [other, impatient] = [await database.connect(), await database.openSession()];
    await caller.acquire("held", "b");
    await other.query("BEGIN");
    await other.query("SELECT FROM slotkeeper_host WHERE host = slotkeeper_host_key(NULL, 'held') FOR UPDATE");
    await impatient.query("SET lock_timeout = '2s'");
    const tried = new DirectCaller(impatient);
    expect((await tried.tryAcquire("free", "b")).status).toBe("ACQUIRED");
    await expect(tried.tryAcquire("held", "b2")).rejects.toThrow(/lock timeout/);
    await other.query("ROLLBACK");
  });
});
