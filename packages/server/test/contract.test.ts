import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startFixture } from "./service-fixture.ts";

const BUCKET = "203.0.113.4/32";

describe("acquire", () => {
  it("answers the seed's first call with pending and a queryToken, and its poll with granted and a slotToken", async () => {
    const fixture = await startFixture();
    const hostnameHash = createHash("sha256").update("example.com").digest("hex");
    const first = await fixture.acquire({ hostnameHash, ipBucket: BUCKET, now: 1_732_170_000_000 });
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ result: "pending", queryToken: expect.any(String) });
    const second = await fixture.call("acquire", { queryToken: first.body.queryToken, now: 1_732_170_008_000 });
    expect(second.body).toMatchObject({
      result: "granted",
      slotToken: expect.stringMatching(/^slot_[0-9a-f]{64}\.[\w-]{22}$/),
    });
    expect(second.body.limit).toBe(5);
    expect(second.body.leaseMs).toBeGreaterThan(0);
    expect(second.body.leaseMs).toBeLessThanOrEqual(30_000);
    expect(Number.isSafeInteger(second.body.fence)).toBe(true);
  });

  it("never answers a first call without waitMs with granted, even on an idle host", async () => {
    const fixture = await startFixture();
    for (const more of [{}, { waitMs: 0 }, { waitMs: null }]) {
      expect((await fixture.acquire({ ipBucket: `b${JSON.stringify(more)}`, ...more })).body.result).toBe("pending");
    }
  });

  it("grants an idle host's slot in one round trip when the first call waits", async () => {
    const fixture = await startFixture();
    expect((await fixture.acquire({ ipBucket: BUCKET, waitMs: 1 })).body.result).toBe("granted");
  });

  it("reports with a grant how many slots the host has: as configured, as an operator set it, or of a semaphore", async () => {
    const config = { fairQueue: { maxSlotPerHost: 3, hosts: { "two.example": { maxSlotPerHost: 2 } } } };
    const fixture = await startFixture({ config });
    const limitOf = async (first: object) => (await fixture.acquire({ waitMs: 1, ...first })).body.limit;
    expect(await limitOf({ hostname: "any.example" })).toBe(3);
    expect(await limitOf({ hostname: "two.example" })).toBe(2);
    expect(await limitOf({ hostname: "sem:jobs", limit: 7 })).toBe(7);
    await fixture.request("POST", "/api/v0/hosts/two.example", { body: JSON.stringify({ maxSlotPerHost: 9 }) });
    expect(await limitOf({ hostname: "two.example" })).toBe(9);
  });

  it("gives clients that send a hash or a name the same pool, whatever the case of the name", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } } });
    const hostnameHash = createHash("sha256").update("example.com").digest("hex");
    const slot = await fixture.take({ hostname: "EXAMPLE.com" });
    const waiting = await fixture.call("acquire", { hostnameHash, waitMs: 20 });
    expect(waiting.body).toMatchObject({ result: "pending", position: 1, waiters: 1, blockedBy: "host-limit" });
    const held = fixture.poll(waiting.body.queryToken);
    await fixture.release(slot.slotToken);
    expect((await held).body.result).toBe("granted");
  });

  it("limits a bucket, and reports that the bucket's limit blocks the session", async () => {
    const fixture = await startFixture();
    await fixture.take({ ipBucket: BUCKET });
    const second = await fixture.acquire({ ipBucket: BUCKET, waitMs: 30 });
    expect(second.body).toMatchObject({ result: "pending", blockedBy: "ip-limit" });
    await fixture.take({ ipBucket: "another" });
  });

  it("treats a null entry of `cost`, `keys` and `used` as absent", async () => {
    const budgets = { tokens: { limit: 100, perSeconds: 60, default: 7 } };
    const fixture = await startFixture({
      config: { fairQueue: { budgets, keys: { tenant: { slots: 1 } }, maxSlotPerIp: -1 } },
    });
    const more = { cost: { tokens: null, other: null }, keys: { tenant: null } };
    for (let count = 0; count < 2; count++) {
      const { slotToken, ...answer } = await fixture.take(more);
      expect(answer).toMatchObject({ charged: { tokens: 7 } });
      const { body } = await fixture.release(slotToken, { used: { tokens: null } });
      expect(body).not.toHaveProperty("ignored");
    }
  });

  it("treats an absent, a null and an empty bucket as one shared bucket without a limit of its own", async () => {
    const fixture = await startFixture();
    for (const more of [{}, { ipBucket: "" }, { ipBucket: null }]) await fixture.take(more);
  });

  it("answers overloaded with whole seconds and Retry-After if too many sessions wait", async () => {
    const fixture = await startFixture({ config: { fairQueue: { globalMaxWaiters: 1, maxSlotPerHost: 1 } } });
    await fixture.take({ ipBucket: "a" });
    await fixture.acquire({ ipBucket: "b", waitMs: 10 });
    const refused = await fixture.acquire({ ipBucket: "c" });
    expect(refused.status).toBe(200);
    expect(refused.body.result).toBe("overloaded");
    expect(refused.headers.get("retry-after")).toBe(String(refused.body.retryAfter));
  });

  it("answers timeout when the maximum wait of the session is over, also inside a held poll", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, maxWaitMs: 2_000 } } });
    await fixture.take({ ipBucket: "a" });
    const { body } = await fixture.acquire({ ipBucket: "b" });
    expect((await fixture.poll(body.queryToken)).body).toEqual({ result: "timeout", reason: "deadline" });
    expect((await fixture.poll(body.queryToken)).body.result).toBe("timeout");
  });
});

describe("the breaker", () => {
  it("throttles first calls and waiting sessions with the code, whole seconds and Retry-After", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, breaker: { openSeconds: 20 } } } });
    const slot = await fixture.take({ ipBucket: "a" });
    const waiting = await fixture.acquire({ ipBucket: "b", waitMs: 10 });
    const held = fixture.poll(waiting.body.queryToken);
    for (let errors = 0; errors < 3; errors++) await fixture.call("report", { hostname: "example.com", status: 503 });
    await fixture.release(slot.slotToken, { status: 503 });
    expect((await held).body).toMatchObject({ result: "throttled", throttleCode: 503, reason: expect.any(String) });
    const fresh = await fixture.acquire({ ipBucket: "c" });
    expect(fresh.status).toBe(200);
    expect(fresh.body.result).toBe("throttled");
    expect(fresh.body.throttleRetryAfter).toBeLessThanOrEqual(20);
    expect(fresh.headers.get("retry-after")).toBe(String(fresh.body.throttleRetryAfter));
  });

  it("uses the caller's own window for an open breaker", async () => {
    const fixture = await startFixture();
    for (let errors = 0; errors < 4; errors++) await fixture.call("report", { hostname: "example.com", status: 429 });
    expect((await fixture.acquire({ throttleTimeWindowSeconds: 3 })).body.throttleRetryAfter).toBeLessThanOrEqual(3);
    expect((await fixture.acquire({ throttleTimeWindowSeconds: 0.001 })).body.result).toBe("pending");
  });
});

describe("release", () => {
  it("answers ok immediately for any string, and does not free the slot of another holder", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    const slot = await fixture.take({ ipBucket: "a" });
    for (const slotToken of ["", "x", "slot_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "💥", "a".repeat(60_000)]) {
      expect((await fixture.release(slotToken)).body).toEqual({ result: "ok", released: false });
    }
    expect((await fixture.call("renew", { slotToken: slot.slotToken })).body.result).toBe("ok");
  });

  it("twice, or after the slot went to another holder, does not affect that holder", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } } });
    const first = await fixture.take();
    await fixture.release(first.slotToken);
    const second = await fixture.take();
    await fixture.release(first.slotToken);
    expect((await fixture.call("renew", { slotToken: second.slotToken })).status).toBe(200);
    expect((await fixture.acquire({ waitMs: 20 })).body.result).toBe("pending");
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  it("frees the slot even if its other fields are invalid", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    const slot = await fixture.take();
    const nonsense = {
      hitUpstreamAtMs: "soon",
      status: "fine",
      hostname: 5,
      hostnameHash: [],
      ipBucket: {},
      now: "now",
    };
    expect((await fixture.release(slot.slotToken, nonsense)).body).toEqual({ result: "ok" });
    await fixture.take();
  });

  it("with a hitUpstreamAtMs in the future does not block the host", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, minSlotHoldMs: 1 } } });
    const slot = await fixture.take();
    await fixture.release(slot.slotToken, { hitUpstreamAtMs: Date.now() + 86_400_000 });
    await fixture.take();
  });
});

describe("renew and cancel", () => {
  it("renews a held lease, and answers 410 after it has ended", async () => {
    const fixture = await startFixture();
    const { slotToken } = await fixture.take();
    const { body } = await fixture.call("renew", { slotToken });
    expect(body.result).toBe("ok");
    // A whole lease again, minus the time that the answer took.
    expect(body.leaseMs).toBeGreaterThan(20_000);
    expect(body.leaseMs).toBeLessThanOrEqual(30_000);
    await fixture.release(slotToken);
    const lost = await fixture.call("renew", { slotToken });
    expect([lost.status, lost.body.code]).toEqual([410, "SLOT_LOST"]);
    expect((await fixture.call("renew", { slotToken: "never" })).status).toBe(410);
  });

  it("cancels a waiting session, then answers noop; a poll of it repeats its end", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = fixture.poll(queryToken);
    expect((await fixture.call("cancel", { queryToken })).body.result).toBe("canceled");
    expect((await fixture.call("cancel", { queryToken })).body.result).toBe("noop");
    expect((await held).body).toEqual({ result: "timeout", reason: "canceled" });
    expect((await fixture.poll(queryToken)).body).toEqual({ result: "timeout", reason: "canceled" });
  });

  it("cancelling a granted session gives its slot to the next waiter", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    const { queryToken } = await fixture.take({ ipBucket: "a" });
    const next = fixture.acquire({ ipBucket: "b", waitMs: 5_000 });
    expect((await fixture.call("cancel", { queryToken })).body.result).toBe("canceled");
    expect((await next).body.result).toBe("granted");
  });
});

describe("named semaphores", () => {
  it("the first current user sets the capacity; a different one is 409 until all users have left", async () => {
    const fixture = await startFixture();
    const held = [await fixture.take({ hostname: "sem:jobs", limit: 2, ipBucket: "a" })];
    held.push(await fixture.take({ hostname: "sem:jobs", limit: 2, ipBucket: "a" }));
    expect((await fixture.acquire({ hostname: "sem:jobs", limit: 2, waitMs: 20 })).body.result).toBe("pending");
    const other = await fixture.acquire({ hostname: "sem:jobs", limit: 3 });
    expect([other.status, other.body.code]).toEqual([409, "CAPACITY_MISMATCH"]);
  });

  it("waits as long as the call asks for", async () => {
    const fixture = await startFixture();
    await fixture.take({ hostname: "sem:one", limit: 1 });
    const { body } = await fixture.acquire({ hostname: "sem:one", limit: 1, maxWaitMs: 30, waitMs: 5_000 });
    expect(body).toEqual({ result: "timeout", reason: "deadline" });
  });
});

describe("requests for several slots", () => {
  it("grants them together, and says how many", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 4, maxSlotPerIp: -1 } } });
    const { body } = await fixture.acquire({ hostname: "wide.test", width: 3, waitMs: 1_000 });
    expect(body).toMatchObject({ result: "granted", width: 3, limit: 4 });
    expect((await fixture.acquire({ hostname: "wide.test", waitMs: 1_000 })).body).not.toHaveProperty("width");
    const waiting = await fixture.acquire({ hostname: "wide.test", width: 2, waitMs: 20 });
    expect(waiting.body).toMatchObject({ result: "pending", blockedBy: "host-limit" });
  });

  it("refuses a width that the limits can never allow, and another width of the same request", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 4, maxSlotPerIp: 2 } } });
    const wide = await fixture.acquire({ hostname: "wide.test", width: 5 });
    expect([wide.status, wide.body.code, wide.body.errors]).toEqual([
      400,
      "IMPOSSIBLE",
      [{ field: "width", message: "Expected `width` to be at most 4, the number of slots of the host, got 5" }],
    ]);
    const own = await fixture.acquire({ hostname: "wide.test", ipBucket: "a", width: 3 });
    expect([own.status, own.body.code]).toEqual([400, "IMPOSSIBLE"]);
    expect((await fixture.acquire({ hostname: "wide.test", width: 0 })).body.code).toBe("BAD_FIELDS");
    await fixture.acquire({ hostname: "wide.test", requestId: "r", width: 2 });
    const other = await fixture.acquire({ hostname: "wide.test", requestId: "r", width: 3 });
    expect([other.status, other.body.code]).toEqual([409, "DEMAND_MISMATCH"]);
  });
});

describe("keys", () => {
  const fairQueue = { maxSlotPerHost: 4, maxSlotPerIp: -1, keys: { tenant: { slots: 1, required: true } } };
  const acme = { hostname: "keyed.test", keys: { tenant: "acme" } };

  it("limits all requests with the same value together, says so, and shows the busiest values", async () => {
    const fixture = await startFixture({ config: { fairQueue } });
    const { slotToken } = await fixture.take({ ...acme, ipBucket: "a" });
    const { body: waiting } = await fixture.acquire({ ...acme, ipBucket: "b", waitMs: 20 });
    expect(waiting).toMatchObject({ result: "pending", blockedBy: "key:tenant" });
    expect(waiting).not.toHaveProperty("estimatedWaitMs");
    await fixture.take({ ...acme, keys: { tenant: "other" } });
    const [host] = JSON.parse((await fixture.request("GET", "/api/v0/state")).text).hosts;
    expect(host.keys).toEqual([
      { key: "tenant", value: "acme", inFlight: 1, waiting: 1, slots: 1, isShadow: false, budgets: [] },
      { key: "tenant", value: "other", inFlight: 1, waiting: 0, slots: 1, isShadow: false, budgets: [] },
    ]);
    await fixture.release(slotToken);
    expect((await fixture.poll(waiting.queryToken)).body.result).toBe("granted");
  });

  it.each([
    [{}, "keys.tenant", "Expected `keys.tenant` to be present, because the host requires it, got none"],
    [
      { color: "red" },
      "keys.color",
      "Expected `keys.color` to be absent, because the host has no such key (it has `tenant`), got red",
    ],
  ])("refuses keys that the host does not have or requires: %j", async (keys, field, message) => {
    const fixture = await startFixture({ config: { fairQueue } });
    const { status, body } = await fixture.acquire({ ...acme, keys });
    expect([status, body.code, body.errors]).toEqual([400, "IMPOSSIBLE", [{ field, message }]]);
    expect((await fixture.acquire({ ...acme, keys: { tenant: 5 } })).body.code).toBe("BAD_FIELDS");
  });
});

describe("at the root", () => {
  it("serves a page, the document, and the health and readiness checks; HEAD like GET", async () => {
    const fixture = await startFixture();
    const home = await fixture.request("GET", "/");
    expect(home.status).toBe(200);
    expect(home.text).toContain("Slotkeeper");
    expect((await fixture.request("GET", "/livez")).body).toEqual({ status: "ok" });
    expect((await fixture.request("GET", "/readyz?verbose")).body).toEqual({ status: "ok" });
    expect(JSON.parse((await fixture.request("GET", "/openapi.json")).text)).toMatchObject({ openapi: "3.1.0" });
    const head = await fixture.request("HEAD", "/");
    expect([head.status, head.text]).toEqual([200, ""]);
  });
});
