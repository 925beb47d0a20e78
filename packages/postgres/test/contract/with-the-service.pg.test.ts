import { createHash } from "node:crypto";
import { PostgresStore } from "@slotkeeper/postgres";
import {
  type BookRecord,
  type CommitNotice,
  type Head,
  type LimitsRecord,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { HostUnderTest, leaseOf, offerOf, waiterOf } from "@slotkeeper/testkit/store-conformance";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { Contender } from "../store/contender.ts";
import { audited, Holds } from "../store/race.ts";
import { TestClock } from "../test-clock.ts";
import { DirectCaller } from "./direct-caller.ts";

const database = await TestDatabase.open();
const client = await database.connect();
const clock = await TestClock.install(client);
const caller = new DirectCaller(client);
const store = await PostgresStore.open({ dsn: database.dsn, listenDsn: database.directDsn });
afterAll(async () => {
  await store.close();
  await database.close();
});
const { policy } = resolveHost(resolveOptions({ maxSlotPerHost: 2, maxSlotPerIp: 1 }), undefined);
const limitsOf = (more: object = {}, live?: LimitsRecord["live"]): LimitsRecord => {
  return {
    kind: "limits",
    key: "",
    policy: { ...policy, ...more },
    loadedAt: 1,
    ...(live === undefined ? {} : { live }),
  };
};

let host: HostUnderTest;
/** The arguments of a direct caller for the same host. */
let direct: { p_hostname_hash: string; p_max_slot_per_host: number; p_max_slot_per_ip: number };
beforeEach(async () => {
  await clock.advance(1_000);
  host = await HostUnderTest.on({ store, other: store, pass: (ms) => clock.advance(ms), close: async () => {} });
  direct = { p_hostname_hash: host.host, p_max_slot_per_host: 2, p_max_slot_per_ip: 1 };
});

/** Reads the commits of direct callers. */
async function catchUp(): Promise<readonly BookRecord[]> {
  const { tag, tail } = await store.read(host.host, undefined);
  const book = tail.kind === "book" ? tail.book : undefined;
  host.tag = tag;
  host.head = book?.head as Head;
  return book?.records ?? [];
}

const TOKENS = { limit: 1, perMs: 1_000, burst: 1, default: 1 };

describe("direct callers and the service share one state", () => {
  it("wide leases and offers of the service count with their widths", async () => {
    const more = { ...direct, p_max_slot_per_host: 4, p_max_slot_per_ip: 3 };
    const now = await host.now();
    const fence = host.head.fence + 1;
    await host.accept({ head: { slots: 4, fence }, puts: [leaseOf("a", fence, now, { bucket: "x", width: 3 })] });
    expect((await caller.tryAcquire("", "x", more)).status).toBe("IP_TOO_MANY");
    await host.accept({ puts: [{ ...offerOf("b", now), width: 1 }] });
    expect((await caller.tryAcquire("", "y", more)).status).toBe("QUEUE_FULL");
    await host.accept({ dels: [["offer", "s-b"]] });
    expect((await caller.tryAcquire("", "y", more)).status).toBe("ACQUIRED");
    const leases = (await catchUp()).filter((record) => record.kind === "lease");
    expect(leases.map(({ bucket, width }) => [bucket, width])).toEqual([
      ["x", 3],
      ["y", 1],
    ]);
  });

  it.each<[string, object, boolean]>([
    ["with slots", { slots: 1 }, true],
    ["that is required", { isRequired: true }, true],
    ["with slots for one value", { for: { acme: { slots: 1 } } }, true],
    ["with a budget", { isShadow: true, budgets: { tokens: TOKENS } }, true],
    ["with a budget for one value", { isShadow: true, for: { acme: { budgets: { tokens: TOKENS } } } }, true],
    ["in shadow mode", { isShadow: true, slots: 1, isRequired: true, for: { acme: { slots: 2 } } }, false],
    ["with budgets in shadow mode", { budgets: { tokens: { ...TOKENS, isShadow: true } } }, false],
  ])("a key %s raises an error for direct callers, unless nothing of it is enforced", async (_, key, isEnforced) => {
    await host.accept({ head: {}, puts: [limitsOf({ keys: [{ name: "tenant", ...key }] })] });
    const tried = caller.tryAcquire("", "y", direct);
    if (isEnforced) await expect(tried).rejects.toThrow(/has budgets, keys or classes, which only the service/);
    else expect((await tried).status).toBe("ACQUIRED");
  });

  it("a budget raises an error for direct callers, unless it is in shadow mode", async () => {
    await host.accept({ head: {}, puts: [limitsOf({ budgets: { tokens: TOKENS } })] });
    await expect(caller.tryAcquire("", "y", direct)).rejects.toThrow(
      /has budgets, keys or classes, which only the service knows/,
    );
    await host.accept({ head: {}, puts: [limitsOf({ keys: [{ name: "tenant", slots: 1 }] })] });
    await expect(caller.tryAcquire("", "y", direct)).rejects.toThrow(
      /has budgets, keys or classes, which only the service/,
    );
    await host.accept({ head: {}, puts: [limitsOf({ budgets: { tokens: { ...TOKENS, isShadow: true } } })] });
    expect((await caller.tryAcquire("", "y", direct)).status).toBe("ACQUIRED");
  });

  it("classes raise an error for direct callers", async () => {
    await host.accept({ head: {}, puts: [limitsOf({ classes: { chat: { weight: 1, floor: 0 } } })] });
    await expect(caller.tryAcquire("", "y", direct)).rejects.toThrow(/has budgets, keys or classes/);
  });

  it("a direct caller gets no slot while a session that needs several is the first of the host", async () => {
    await host.accept({ head: { first: "s-w" }, puts: [waiterOf("w", await host.now(), { demand: { width: 2 } })] });
    expect((await caller.tryAcquire("", "y", direct)).status).toBe("QUEUE_FULL");
    await host.accept({ head: { first: undefined } });
    expect((await caller.tryAcquire("", "y", direct)).status).toBe("ACQUIRED");
  });

  it("leases and offers of the service count against the limits of a direct caller", async () => {
    await host.grant("b1");
    expect((await caller.tryAcquire("", "b-b1", direct)).status).toBe("IP_TOO_MANY");
    await host.accept({ puts: [offerOf("b2", await host.now())] });
    expect((await caller.tryAcquire("", "b3", direct)).status).toBe("QUEUE_FULL");
    expect((await caller.tryAcquire("", "b-b2", direct)).status).toBe("IP_TOO_MANY");
    await host.pass(60);
    expect((await caller.tryAcquire("", "b3", direct)).status).toBe("ACQUIRED");
  });

  it("a grant and a release by a direct caller are commits, so the service's next commit conflicts with them", async () => {
    const base = await host.accept();
    const token = await caller.acquire("", "b1", direct);
    const lease = { kind: "lease", key: token, bucket: "b1", instance: "", isReleased: false, isProbe: false };
    const fence = Math.max(host.head.fence + 1, Math.floor((await host.now()) * 1000));
    expect(await host.send({ puts: [] })).toMatchObject({
      reason: "conflict",
      tail: { changes: { head: { fence }, puts: [{ ...lease, fence }], dels: [] } },
    });
    await caller.release(token, "b1");
    expect(await store.read(host.host, base)).toMatchObject({
      tail: { changes: { head: { now: await host.now() }, puts: [], dels: [["lease", token]] } },
    });
  });

  it("the service gets the name of a host from a direct caller only if the name belongs to the key", async () => {
    const named = "api.slow.example";
    const key = createHash("sha256").update(named).digest("hex");
    const report = (hash: string) =>
      caller.call<{ HOSTNAME: string }>("download_upsert_throttle_protection", {
        p_hostname_hash: hash,
        p_hostname: named,
        p_now: 0,
        p_is_error: true,
        p_status_code: 503,
        p_throttle_time_window: 60,
        p_observe_window_seconds: 60,
        p_error_ratio_percent: 100,
        p_consecutive_threshold: 9,
        p_min_sample_count: 9,
      });
    const nameOf = async (hash: string) => (await store.peek([hash])).get(hash)?.head.hostname;
    await caller.acquire(named, "b1", direct);
    expect((await report(host.host))[0]?.HOSTNAME).toBe(named);
    expect(await nameOf(host.host)).toBeUndefined();
    await caller.acquire(named, "b1", { ...direct, p_hostname_hash: key });
    await report(key);
    expect(await nameOf(key)).toBe(named);
  });

  it("the fence of a direct caller is above all earlier ones, and at least the time in microseconds", async () => {
    await host.accept();
    await clock.advance(1_000);
    const time = Math.floor((await host.now()) * 1000);
    const leaseWith = async (token: string) => (await catchUp()).find(({ key }) => key === token);
    expect(await leaseWith(await caller.acquire("", "b1", direct))).toMatchObject({ fence: time });
    const fence = time + 5_000_000;
    await host.accept({ head: { fence } });
    expect(await leaseWith(await caller.acquire("", "b2", direct))).toMatchObject({ fence: fence + 1 });
  });

  it("P2: the service's count includes direct callers' leases", async () => {
    await caller.acquire("", "b1", direct);
    await caller.acquire("", "b2", direct);
    await catchUp();
    const fence = host.head.fence + 1;
    const reply = await host.send({ head: { fence }, puts: [leaseOf("x", fence, await host.now())] });
    expect(reply).toMatchObject({ isOk: false, reason: "slots" });
  });

  it("a direct caller can release a slot of the service with its token, and the service keeps the end of its session", async () => {
    const token = `slot_${host.host}.random`;
    const fence = host.head.fence + 1;
    await host.accept({ head: { fence }, puts: [leaseOf("own", fence, await host.now(), { key: token })] });
    await caller.release(token);
    await caller.release(token);
    const records = await catchUp();
    expect(records.filter(({ key }) => key === token)).toEqual([]);
    expect(records).toContainEqual(expect.objectContaining({ kind: "ending", key: "s-own", end: "released" }));
  });

  it("an id does not free a slot that the service granted", async () => {
    await host.grant("a");
    const { rows } = await client.query(
      "SELECT id FROM upstream_slot_pool WHERE token = 'slot_a' AND hostname_pattern = $1",
      [host.host],
    );
    await caller.releaseId(rows[0].id as number);
    await caller.release(String(rows[0].id));
    expect(await host.names()).toEqual(["lease slot_a"]);
  });

  it("a release by a direct caller starts the host's cooldown and spacing", async () => {
    await host.accept({ puts: [limitsOf({ cooldownMs: 60_000, smoothMs: 500 })] });
    await caller.release(await caller.acquire("", "b1", direct), "b1");
    const now = await host.now();
    expect(await catchUp()).toContainEqual({ kind: "cooldown", key: "b1", until: now + 60_000 });
    expect(host.head.lastEndAt).toBe(now);
    const token = await caller.acquire("", "b2", direct);
    await caller.release(token, "b2");
    const records = await catchUp();
    expect(records).toContainEqual(expect.objectContaining({ key: token, isReleased: true, endsAt: now + 500 }));
    expect((await caller.tryAcquire("", "b1", direct)).status).toBe("IP_TOO_MANY");
  });

  it("a cooldown of the service applies to direct callers", async () => {
    const until = (await host.now()) + 5_000;
    await host.accept({ puts: [{ kind: "cooldown", key: "b1", until }] });
    expect((await caller.tryAcquire("", "b1", direct)).status).toBe("IP_TOO_MANY");
    await host.pass(5_001);
    expect((await caller.tryAcquire("", "b1", direct)).status).toBe("ACQUIRED");
  });

  it("cleanup keeps the release of a direct caller for an hour, because it does not know the caller's cooldown", async () => {
    await caller.release(await caller.acquire("", "b1", direct), "b1");
    await host.pass(200_000);
    await store.cleanup({ idleMs: 90_000 });
    expect((await caller.tryAcquire("", "b1", { ...direct, p_cooldown_seconds: 300 })).status).toBe("IP_TOO_MANY");
    await host.pass(3_600_000);
    await store.cleanup({ idleMs: 90_000 });
    expect(await caller.count("upstream_ip_cooldown WHERE hostname_pattern = $1", [host.host])).toBe(0);
  });

  it("the waiter limits of a direct caller count sessions of the service that have a place", async () => {
    const now = await host.now();
    const outside = waiterOf("out", now, { isInside: false });
    await host.accept({ puts: [waiterOf("w", now), outside] });
    expect((await caller.register("", "b1", { p_hostname_hash: host.host })).status).toBe("REGISTERED");
    const full = { p_hostname_hash: host.host, p_max_waiters_per_host: 2 };
    const answer = { status: "HOST_QUEUE_FULL", queue_depth: 2, ip_queue_depth: 0 };
    expect(await caller.register("", "b3", full)).toEqual(answer);
    expect(await caller.tryAcquire("", "b-w", direct)).toMatchObject({ queue_depth: 2, ip_queue_depth: 1 });
  });

  it("the breaker opens for both, and while half open it allows both one probe in total", async () => {
    await host.accept({ puts: [limitsOf()] });
    for (let i = 0; i < 4; i++) await caller.report("", true, { p_hostname_hash: host.host });
    await catchUp();
    const openedAt = await host.now();
    expect(host.head.breaker).toMatchObject({ openedAt, code: 503 });
    expect((await caller.tryAcquire("", "b1", direct)).status).toBe("THROTTLED");
    await host.pass(60_001);
    const now = await host.now();
    const fence = host.head.fence + 1;
    await host.accept({ head: { fence }, puts: [leaseOf("probe", fence, now, { isProbe: true })], now });
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("QUEUE_FULL");
    await host.accept({ dels: [["lease", "slot_probe"]] });
    await caller.acquire("", "b2", direct);
    expect(await catchUp()).toContainEqual(expect.objectContaining({ kind: "lease", isProbe: true }));
    await host.accept({ head: { breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 } } });
    expect((await caller.tryAcquire("", "b3", direct)).status).toBe("ACQUIRED");
  });

  it("a host that an operator has paused grants nothing to a direct caller, and a release still works", async () => {
    await host.accept({ puts: [limitsOf()] });
    const token = await caller.acquire("", "b1", direct);
    await catchUp();
    await host.accept({ puts: [limitsOf({}, { isPaused: true })] });
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("QUEUE_FULL");
    expect((await store.totals()).paused).toBe(1);
    await caller.release(token, "b1");
    expect((await catchUp()).filter(({ kind }) => kind === "lease")).toEqual([]);
    await host.accept({ puts: [limitsOf()] });
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("ACQUIRED");
  });

  it("limits of an operator and the capacity of a named semaphore have priority over a direct caller's own limits", async () => {
    await host.accept({ puts: [limitsOf({}, { slots: 1 })] });
    await caller.acquire("", "b1", direct);
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("QUEUE_FULL");
    await catchUp();
    await host.accept({ head: { capacity: 3, slots: 3 } });
    expect((await caller.tryAcquire("", "b1", direct)).status).toBe("ACQUIRED");
  });

  it("a direct caller does not change the limits that the service keeps for a host", async () => {
    await host.accept({ puts: [limitsOf()] });
    for (const bucket of ["b1", "b2", "b3"]) await caller.acquire("", bucket, { ...direct, p_max_slot_per_host: 9 });
    await catchUp();
    expect(host.head.slots).toBe(2);
  });

  it("a direct caller's grant removes leases of the service that have ended, and keeps the ends of their sessions", async () => {
    await host.grant("a", "b");
    await host.pass(30_001);
    await caller.acquire("", "b1", direct);
    const records = await catchUp();
    expect(records.filter(({ kind }) => kind === "lease")).toHaveLength(1);
    expect(
      records
        .filter(({ kind }) => kind === "ending")
        .map(({ key }) => key)
        .sort(),
    ).toEqual(["s-a", "s-b"]);
  });
});

describe("the service has priority", () => {
  it("a slot that a direct caller releases while sessions wait is reserved for the service for 50 ms, and its instance is notified", async () => {
    const received: CommitNotice[] = [];
    const instance = `${host.host}-waits`;
    const stop = store.watch(instance, (notice) => received.push(notice));
    await vi.waitFor(
      async () => {
        await host.accept({ wake: [instance] });
        await vi.waitFor(() => expect(received.length).toBeGreaterThan(0), { timeout: 200 });
      },
      { timeout: 10_000 },
    );
    const token = await caller.acquire("", "b1", direct);
    await catchUp();
    await host.accept({ puts: [waiterOf("w", await host.now(), { instance })] });
    const base = host.tag;
    await caller.release(token, "b1");
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("QUEUE_FULL");
    await vi.waitFor(() =>
      expect(received.at(-1)).toMatchObject({ host: host.host, base, changes: { dels: [["lease", token]] } }),
    );
    stop();
    await host.pass(51);
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("ACQUIRED");
  });

  it("while an instance has reserved the next commit, a direct caller gets no slot, and its releases do not cancel the reservation", async () => {
    const token = await caller.acquire("", "b1", direct);
    await host.send({ base: "0.stale", instance: "slow", conflicts: 5 });
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("QUEUE_FULL");
    await caller.release(token, "b1");
    await catchUp();
    expect(await host.send({ instance: "fast" })).toMatchObject({ reason: "reserved" });
    await host.accept({ instance: "slow" });
    expect((await caller.tryAcquire("", "b2", direct)).status).toBe("ACQUIRED");
  });
});

it("in a race between both, no limit is exceeded, counted from outside and in the tables", async () => {
  await using own = await TestDatabase.open();
  const auditor = await own.connect();
  const stores = [await PostgresStore.open({ dsn: own.dsn }), await PostgresStore.open({ dsn: own.dsn })];
  const directs = await Promise.all(Array.from({ length: 6 }, async () => new DirectCaller(await own.connect())));
  const holds = new Holds();
  const limits = { p_hostname_hash: "both", p_max_slot_per_host: 2, p_max_slot_per_ip: 1 };
  const callDirectly = async (one: DirectCaller, no: number) => {
    for (let [i, got] = [0, 0]; got < 5; i++) {
      const bucket = `b${(no + i) % 4}`;
      const { slot_token: token } = await one.tryAcquire("", bucket, limits);
      if (token === null) continue;
      got++;
      holds.take(bucket);
      await one.count("slotkeeper_host");
      holds.giveBack(bucket);
      await one.release(token, bucket);
    }
  };
  const callService = async (one: Contender, no: number) => {
    for (let [i, got] = [0, 0]; got < 5; i++) {
      const bucket = `b${(no + i) % 4}`;
      const lease = await one.take(bucket);
      if (lease === undefined) continue;
      got++;
      holds.take(bucket);
      await auditor.query("SELECT 1");
      holds.giveBack(bucket);
      await one.giveBack(lease);
    }
  };
  const contenders = stores.flatMap((one, at) => [0, 1].map((no) => new Contender(one, "both", `i${at}${no}`, 2)));
  const seen = await audited(auditor, () =>
    Promise.all([...directs.map(callDirectly), ...contenders.map(callService)]),
  );
  for (const one of stores) await one.close();
  expect(seen).toEqual([]);
  expect([holds.mostHeld, holds.mostOfBucket]).toEqual([2, 1]);
});
