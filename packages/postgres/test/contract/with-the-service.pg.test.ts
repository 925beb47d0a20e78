import { PostgresStore } from "@slotkeeper/postgres";
import { type HostPolicy, resolveHost, resolveOptions, type Verdict } from "@slotkeeper/queue";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { DirectCaller } from "./direct-caller.ts";

const database = await TestDatabase.open();
const stores = [
  await PostgresStore.open({ dsn: database.dsn }),
  await PostgresStore.open({ dsn: database.dsn }),
] as const;
afterAll(async () => {
  for (const store of stores) await store.close();
  await database.close();
});
const client = await database.connect();
const caller = new DirectCaller(client);
const POLICY = resolveHost(resolveOptions({ maxSlotPerHost: 2, maxSlotPerIp: 1 }), undefined).policy;
const LIMITS = { p_max_slot_per_host: 2, p_max_slot_per_ip: 1 };

/** The service's side of a host that direct callers know by the same key. */
class ServedHost {
  static #hosts = 0;
  static #sessions = 0;
  readonly key = `with-the-service-${ServedHost.#hosts++}`;
  readonly direct = { p_hostname_hash: this.key, ...LIMITS };
  policy: HostPolicy = POLICY;

  async try(bucket: string, store: PostgresStore = stores[0]): Promise<Verdict> {
    const { openMs } = this.policy.breaker;
    const session = `s${ServedHost.#sessions++}`;
    const waiter = { session, bucket, weight: 1, arrivedAt: 0, ttlMs: 20_000, openMs, isGrantable: true };
    const batch = { host: this.key, instance: "one", policy: this.policy, isSemaphore: false, waiters: [waiter] };
    const verdict = (await store.tryAcquire(batch)).verdicts[0] as Verdict;
    if (verdict.status !== "ACQUIRED") {
      const sessions = [{ session, end: "timeout" as const, ttlMs: 1000 }];
      await store.withdraw({ host: this.key, instance: "one", policy: this.policy, sessions });
    }
    return verdict;
  }

  async take(bucket: string): Promise<string> {
    const verdict = await this.try(bucket);
    if (verdict.status !== "ACQUIRED") throw new Error(`expected a slot, got ${verdict.status}`);
    return verdict.slot.slotToken;
  }

  release(slotToken: string, store: PostgresStore = stores[0]) {
    const nothing = { hitAgoMs: undefined, status: undefined, uncollectedBy: undefined };
    return store.release({ slotToken, host: this.key, policy: this.policy, ...nothing });
  }
}

let host: ServedHost;
beforeEach(() => {
  host = new ServedHost();
});

describe("direct callers and the service share one truth", () => {
  it("slots of either count against both limits of the other", async () => {
    const token = await host.take("b1");
    expect((await caller.tryAcquire("", "b1", host.direct)).status).toBe("IP_TOO_MANY");
    const direct = await caller.acquire("", "b2", host.direct);
    expect(await host.try("b2")).toMatchObject({ status: "WAIT", blockedBy: "host-limit" });
    expect((await caller.tryAcquire("", "b3", host.direct)).status).toBe("QUEUE_FULL");
    await host.release(token);
    expect(await host.try("b2")).toMatchObject({ status: "IP_TOO_MANY", blockedBy: "ip-limit" });
    await caller.release(direct);
    expect((await host.try("b2")).status).toBe("ACQUIRED");
  });

  it("a token is its owner's, through whichever door it goes back", async () => {
    const ofService = await host.take("b1");
    const ofDirect = await caller.acquire("", "b2", host.direct);
    await caller.release(ofService);
    expect(await host.release(ofService)).toEqual({ isReleased: false });
    expect(await host.release(ofDirect)).toMatchObject({ isReleased: true, bucket: "b2" });
    await caller.release(ofDirect);
    expect((await stores[0].snapshot()).hosts.find((one) => one.host === host.key)).toMatchObject({ inFlight: 0 });
  });

  it("an id frees nothing that the service gave out", async () => {
    const token = await host.take("b1");
    await caller.releaseId(Number.parseInt(token, 10));
    expect(await stores[0].renew({ slotToken: token })).toMatchObject({ leaseMs: expect.any(Number) });
  });

  it("a bucket cools down for both after a release of either", async () => {
    host.policy = { ...POLICY, cooldownMs: 60_000 };
    await host.release(await host.take("b1"));
    expect((await caller.tryAcquire("", "b1", host.direct)).status).toBe("IP_TOO_MANY");
    await caller.release(await caller.acquire("", "b2", host.direct));
    expect(await host.try("b2")).toMatchObject({ status: "IP_TOO_MANY", blockedBy: "cooldown" });
  });

  it("the service's sweep leaves a direct caller's cooldown alone, whose length it does not know, for an hour", async () => {
    await caller.release(await caller.acquire("", "b1", host.direct));
    await stores[0].cleanup({ waiterTtlMs: 20_000 });
    expect((await caller.tryAcquire("", "b1", { ...host.direct, p_cooldown_seconds: 60 })).status).toBe("IP_TOO_MANY");
    const rows = "upstream_ip_cooldown WHERE hostname_pattern = $1";
    await client.query("UPDATE upstream_ip_cooldown SET last_release_at = last_release_at - interval '1 hour'");
    expect((await stores[0].cleanup({ waiterTtlMs: 20_000 })).cooldowns).toBeGreaterThan(0);
    expect(await caller.count(rows, [host.key])).toBe(0);
  });

  it("waiters of both fill one pool", async () => {
    host.policy = { ...POLICY, waiters: 2, slots: 1 };
    await host.take("b0");
    expect((await caller.register("", "b1", { p_hostname_hash: host.key })).status).toBe("REGISTERED");
    const waiter = { bucket: "b2", weight: 1, arrivedAt: 0, ttlMs: 20_000, openMs: 60_000, isGrantable: true };
    const waiters = ["w1", "w2"].map((session) => ({ ...waiter, session }));
    const batch = { host: host.key, instance: "one", policy: host.policy, isSemaphore: false, waiters };
    const { verdicts } = await stores[0].register(batch);
    expect(verdicts.map(({ status }) => status)).toEqual(["WAIT", "QUEUE_FULL"]);
    const full = { p_hostname_hash: host.key, p_max_waiters_per_host: 2 };
    expect(await caller.register("", "b3", full)).toEqual({
      status: "HOST_QUEUE_FULL",
      queue_depth: 2,
      ip_queue_depth: 0,
    });
    expect(await caller.tryAcquire("", "b2", host.direct)).toMatchObject({ queue_depth: 2, ip_queue_depth: 1 });
  });

  it("the breaker opens for both, and half open it has one probe between them", async () => {
    for (let i = 0; i < 4; i++) await caller.report("", true, { p_hostname_hash: host.key });
    expect(await host.try("b1")).toMatchObject({ status: "THROTTLED", code: 503 });
    expect((await caller.tryAcquire("", "b1", host.direct)).status).toBe("THROTTLED");
    await client.query(`UPDATE "THROTTLE_PROTECTION" SET opened_at = opened_at - 60000 WHERE "HOSTNAME_HASH" = $1`, [
      host.key,
    ]);
    const probe = await host.take("b1");
    expect((await caller.tryAcquire("", "b2", host.direct)).status).toBe("QUEUE_FULL");
    await host.release(probe);
    await caller.acquire("", "b2", host.direct);
    expect(await host.try("b3")).toMatchObject({ status: "WAIT", blockedBy: "breaker" });
    expect(await caller.report("", false, { p_hostname_hash: host.key })).toMatchObject({ IS_PROTECTED: 0 });
    expect((await host.try("b3")).status).toBe("ACQUIRED");
  });

  it("what an operator sets counts for direct callers, too", async () => {
    const limits = { slots: 1, slotsPerBucket: 1 };
    await stores[0].operate({ kind: "limits", host: host.key, policy: host.policy, limits });
    await caller.acquire("", "b1", host.direct);
    expect((await caller.tryAcquire("", "b2", host.direct)).status).toBe("QUEUE_FULL");
  });

  it("a direct caller does not change the limits that the service keeps for a host", async () => {
    await host.release(await host.take("b1"));
    for (const bucket of ["b1", "b2", "b3"])
      await caller.acquire("", bucket, { ...host.direct, p_max_slot_per_host: 9 });
    expect((await stores[0].snapshot()).hosts.find((one) => one.host === host.key)).toMatchObject({
      slots: 2,
      inFlight: 3,
    });
    expect((await host.try("b4")).status).toBe("WAIT");
  });

  it("racing each other they never exceed a limit, counted from outside and in the tables", async () => {
    const directs = await Promise.all(
      Array.from({ length: 8 }, async () => new DirectCaller(await database.connect())),
    );
    const held = new Map<string, number>();
    let most = 0;
    let granted = 0;
    const hold = async (bucket: string, giveBack: () => Promise<unknown>) => {
      granted++;
      held.set(bucket, (held.get(bucket) ?? 0) + 1);
      most = Math.max(
        most,
        [...held.values()].reduce((sum, n) => sum + n, 0),
      );
      expect(held.get(bucket), bucket).toBe(1);
      expect(
        await caller.count("upstream_slot_pool WHERE hostname_pattern = $1 AND status = 'locked'", [host.key]),
      ).toBeLessThan(3);
      held.set(bucket, (held.get(bucket) ?? 0) - 1);
      await giveBack();
    };
    const direct = async (one: DirectCaller, no: number) => {
      for (let i = 0; i < 30; i++) {
        const bucket = `b${(no + i) % 4}`;
        const { slot_token: token } = await one.tryAcquire("", bucket, host.direct);
        if (token !== null) await hold(bucket, () => one.release(token));
      }
    };
    const served = async (store: PostgresStore, no: number) => {
      for (let i = 0; i < 30; i++) {
        const bucket = `b${(no + i) % 4}`;
        const verdict = await host.try(bucket, store);
        if (verdict.status === "ACQUIRED") await hold(bucket, () => host.release(verdict.slot.slotToken, store));
      }
    };
    await Promise.all([
      ...directs.map(direct),
      ...stores.flatMap((store) => [served(store, 0), served(store, 1), served(store, 2)]),
    ]);
    expect(most).toBe(2);
    expect(granted).toBeGreaterThan(30);
    expect((await stores[0].snapshot()).hosts.find((one) => one.host === host.key)).toMatchObject({
      inFlight: 0,
      waiting: 0,
    });
  });
});
