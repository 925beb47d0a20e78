import { createHash } from "node:crypto";
import type { ServiceState } from "@slotkeeper/protocol";
import { MemoryStore } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import { startFleet } from "./fleet-fixture.ts";
import { configFile, type Fixture, openWith, startFixture, stopFixture } from "./service-fixture.ts";

const KEY = createHash("sha256").update("example.com").digest("hex");
const audits = (fixture: Fixture) =>
  fixture.logged.filter((line) => line.includes('"msg":"audit: ')).map((line) => JSON.parse(line) as { msg: string });

async function hostState(fixture: Fixture, host = "example.com") {
  const { text } = await fixture.request("GET", `/api/v0/state?host=${encodeURIComponent(host)}`);
  return (JSON.parse(text) as ServiceState).hosts[0];
}

const post = (fixture: Fixture, path: string, body: object, init = {}) =>
  fixture.request("POST", `/api/v0/hosts/${path}`, { body: JSON.stringify(body), ...init });

describe("the state of a host", () => {
  it("shows the holders, and why other sessions wait, without any token", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, maxWaitersPerHost: 1 } } });
    const slot = await fixture.take({ ipBucket: "a" });
    const polls = [];
    for (const ipBucket of ["b", "c"]) {
      const { queryToken } = (await fixture.acquire({ ipBucket })).body;
      polls.push(fixture.poll(queryToken));
    }
    await expect.poll(async () => (await hostState(fixture))?.sessions.map(({ polls }) => polls)).toEqual([1, 1]);
    const state = await hostState(fixture);
    expect(state).toMatchObject({
      hostname: "example.com",
      limit: 1,
      inFlight: 1,
      pending: 2,
      breaker: "closed",
      isHot: false,
      slots: [{ slot: `${KEY}.${slot.fence}`, bucket: "a", isReleased: false }],
      sessions: [
        { bucket: "b", position: 1, blockedBy: "host-limit", isAwake: true },
        { bucket: "c", position: 2, blockedBy: "waiter-pool", isAwake: true },
      ],
    });
    expect(state?.slots[0]?.heldMs).toBeGreaterThanOrEqual(0);
    expect(state?.oldestWaitMs).toBeGreaterThanOrEqual(0);
    expect(JSON.stringify(state)).not.toMatch(/slot_|fq1\./);
    const byKey = await hostState(fixture, KEY);
    expect(byKey?.host).toBe(state?.host);
    expect(await hostState(fixture, "unknown.example")).toBeUndefined();
    await fixture.release(slot.slotToken);
    await Promise.race(polls);
  });

  it("after a restart still shows how long the oldest session has waited, before its client polls again", async () => {
    const journal = `${configFile("", "journal")}.data`;
    const config = { backend: { memory: { journal } }, fairQueue: { maxSlotPerHost: 1 } };
    const fixture = await startFixture({ config });
    await fixture.take({ ipBucket: "a" });
    await fixture.acquire({ ipBucket: "b" });
    await expect.poll(async () => (await hostState(fixture))?.waiting).toBe(1);
    await stopFixture(fixture);
    const again = await startFixture({ config });
    const state = await hostState(again);
    expect(state).toMatchObject({ waiting: 1, pending: 0 });
    expect(state?.oldestWaitMs).toBeGreaterThan(0);
  });

  it("of a semaphore has the slots that its users chose, and none while it has no users", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 5 } } });
    const slot = await fixture.take({ hostname: "sem:jobs", limit: 3 });
    const limits = (value: number) => ({ maxSlotPerHost: { value, origin: "semaphore" } });
    expect(await hostState(fixture, "sem:jobs")).toMatchObject({ inFlight: 1, limit: 3, limits: limits(3) });
    await fixture.release(slot.slotToken);
    expect(await hostState(fixture, "sem:jobs")).toMatchObject({ inFlight: 0, limit: 0, limits: limits(0) });
  });
});

describe("live limits", () => {
  it("that are set at one instance apply to all, and sessions that wait there are granted", async () => {
    const [one, two] = (await startFleet(2, { fairQueue: { maxSlotPerHost: 1 } })) as [Fixture, Fixture];
    await one.take({ ipBucket: "a" });
    const { queryToken } = (await two.acquire({ ipBucket: "b" })).body;
    const held = two.poll(queryToken);
    expect((await post(one, "example.com", { maxSlotPerHost: 2 })).status).toBe(204);
    expect((await held).body.result).toBe("granted");
    expect((await two.acquire({ ipBucket: "c", waitMs: 20 })).body.result).toBe("pending");
    for (const fixture of [one, two]) {
      expect(await hostState(fixture)).toMatchObject({
        limit: 2,
        limits: { maxSlotPerHost: { value: 2, origin: "live" }, maxSlotPerIp: { value: 1, origin: "default" } },
      });
    }
  });

  it("for a bucket apply to the whole fleet, too; 0 means no limit", async () => {
    const [one, two] = (await startFleet(2, { fairQueue: { maxSlotPerHost: 5 } })) as [Fixture, Fixture];
    await one.take({ ipBucket: "a" });
    expect((await two.acquire({ ipBucket: "a", waitMs: 20 })).body.result).toBe("pending");
    await post(two, "example.com", { maxSlotPerIp: 0 });
    expect((await one.take({ ipBucket: "a" })).result).toBe("granted");
    expect((await hostState(one))?.limits).toEqual({
      maxSlotPerHost: { value: 5, origin: "flag" },
      maxSlotPerIp: { value: 0, origin: "live" },
    });
  });

  it("are replaced as a whole: limits that the call does not name return to the configuration and its origin", async () => {
    const file = configFile({
      listen: "127.0.0.1:0",
      fairQueue: { maxSlotPerIp: 3, hosts: { "*.example": { maxSlotPerHost: 4 } } },
    });
    const fixture = await startFixture({ file });
    await fixture.take({ hostname: "api.example" });
    const limits = async () => (await hostState(fixture, "api.example"))?.limits;
    const configured = {
      maxSlotPerHost: { value: 4, origin: "file config.json" },
      maxSlotPerIp: { value: 3, origin: "file config.json" },
    };
    expect(await limits()).toEqual(configured);
    await post(fixture, "api.example", { maxSlotPerHost: 9 });
    await post(fixture, "API.example", { maxSlotPerIp: 8 });
    expect(await limits()).toEqual({ ...configured, maxSlotPerIp: { value: 8, origin: "live" } });
    await post(fixture, "api.example", {});
    expect(await limits()).toEqual(configured);
  });

  it("survive a refresh and a restart with a journal", async () => {
    const journal = configFile("", "journal");
    const config = { backend: { memory: { journal: `${journal}.data` } }, fairQueue: { maxSlotPerHost: 1 } };
    const fixture = await startFixture({ config });
    await post(fixture, "example.com?new=true", { maxSlotPerHost: 2, maxSlotPerIp: 0 });
    await fixture.service.refresh();
    await stopFixture(fixture);
    const again = await startFixture({ config });
    await again.take({ ipBucket: "a" });
    await again.take({ ipBucket: "a" });
    expect((await hostState(again))?.limits.maxSlotPerHost).toEqual({ value: 2, origin: "live" });
  });

  it.each([
    [{ maxSlotPerIpp: 1 }, "`maxSlotPerIpp`. Live limits are `maxSlotPerIp`, `maxSlotPerHost`"],
    [{ slotPerHost: 1 }, "`slotPerHost`. Live limits are `maxSlotPerHost`, `maxSlotPerIp`"],
  ])("with an unknown key are 400, and name the limits that can be set, the nearest first: %j", async (body, named) => {
    const reply = await post(await startFixture(), "example.com?new=true", body);
    expect(reply.status).toBe(400);
    expect(JSON.stringify(reply.body)).toContain(`Unknown key ${named}`);
  });

  it("of an unknown host are 404 with the nearest known name, and so is its breaker, because the name may be mistyped", async () => {
    const file = configFile({
      listen: "127.0.0.1:0",
      fairQueue: { hosts: { "*.shop.example": {}, "pay.example": {} } },
    });
    const fixture = await startFixture({ file });
    await fixture.take({ hostname: "example.com" });
    for (const [path, body] of [
      ["exmaple.com", { maxSlotPerHost: 1 }],
      ["exmaple.com/breaker", { state: "open" }],
    ] as const) {
      const reply = await post(fixture, path, body);
      expect([reply.status, reply.body.code]).toEqual([404, "NOT_FOUND"]);
      expect(reply.body.detail).toContain("`example.com`");
      expect(reply.body.detail).toContain("new=true");
    }
    expect(fixture.service.dump().hosts.map(({ hostname }) => hostname)).toEqual(["example.com"]);
    expect(audits(fixture)).toEqual([]);
    for (const host of ["EXAMPLE.com.", "pay.example", "a.shop.example"]) {
      expect([host, (await post(fixture, host, { maxSlotPerHost: 1 })).status]).toEqual([host, 204]);
    }
  });

  it("may be set for an unused host, by name or by key, if the call says that it is new", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 5 } } });
    expect((await post(fixture, `${KEY}?new=true`, { maxSlotPerHost: 1 })).status).toBe(204);
    await fixture.take({ ipBucket: "a" });
    expect((await fixture.acquire({ ipBucket: "b", waitMs: 20 })).body.result).toBe("pending");
    expect((await post(fixture, "custom-key?by=key&new=true", { maxSlotPerHost: 1 })).status).toBe(204);
    await fixture.take({ hostnameHash: "custom-key", ipBucket: "a" });
    const asked = await fixture.acquire({ hostname: undefined, hostnameHash: "custom-key", ipBucket: "b", waitMs: 20 });
    expect(asked.body.result).toBe("pending");
  });

  it.each([
    ["example.com", { maxSlotPerHost: 0 }, "maxSlotPerHost"],
    ["example.com", { maxSlotsPerHost: 3 }, "maxSlotsPerHost"],
    ["example.com", { maxSlotPerIp: -1 }, "maxSlotPerIp"],
    ["example.com", { maxSlotPerHost: "3" }, "maxSlotPerHost"],
    ["example.com?by=colour", { maxSlotPerHost: 3 }, "by"],
    ["example.com?new=yes", { maxSlotPerHost: 3 }, "new"],
    ["%00", { maxSlotPerHost: 3 }, "host"],
    ["%ff", { maxSlotPerHost: 3 }, "host"],
    ["sem:jobs", { maxSlotPerHost: 3 }, "host"],
    ["x".repeat(256), { maxSlotPerHost: 3 }, "host"],
  ])("%s %j is 400 with the name of the field, and changes nothing", async (path, body, field) => {
    const fixture = await startFixture();
    const reply = await post(fixture, path, body);
    expect([reply.status, reply.body.errors.map((problem) => problem.field)]).toEqual([400, [field]]);
    expect(fixture.service.dump().hosts).toEqual([]);
    expect(audits(fixture)).toEqual([]);
  });
});

describe("a pause, set by an operator", () => {
  it("stops grants at all instances, in state and metrics too, and ends with the next call", async () => {
    const config = { fairQueue: { maxSlotPerHost: 2, pollIntervalMs: 50, pollWindowMs: 200 } };
    const [one, two] = (await startFleet(2, config)) as [Fixture, Fixture];
    const slot = await one.take({ ipBucket: "a" });
    expect((await post(one, "example.com/pause", { paused: true })).status).toBe(204);
    const { queryToken } = (await two.acquire({ ipBucket: "b" })).body;
    expect((await two.poll(queryToken)).body).toMatchObject({ result: "pending", blockedBy: "paused" });
    expect((await one.call("renew", { slotToken: slot.slotToken })).status).toBe(200);
    expect(await hostState(two)).toMatchObject({ isPaused: true, inFlight: 1 });
    const metrics = await (await fetch(`${one.url}/metrics`)).text();
    expect(metrics).toMatch(/^slotkeeper_host_paused\{host="example.com"\} 1$/m);
    expect(metrics).toMatch(/^slotkeeper_hosts_paused 1$/m);
    expect((await post(two, "example.com/pause", { paused: false })).status).toBe(204);
    expect((await two.poll(queryToken)).body.result).toBe("granted");
    expect(await hostState(one)).toMatchObject({ isPaused: false });
  });

  it.each([{}, { paused: "yes" }, { isPaused: true }])("%j is 400", async (body) => {
    const fixture = await startFixture();
    expect((await post(fixture, "example.com/pause", body)).body.code).toBe("BAD_FIELDS");
  });
});

describe("the breaker, set by an operator", () => {
  it("rejects callers at all instances when it is opened at one, including waiting ones; when closed, it admits them", async () => {
    const [one, two] = (await startFleet(2, { fairQueue: { maxSlotPerHost: 1, pollIntervalMs: 50 } })) as [
      Fixture,
      Fixture,
    ];
    const slot = await one.take({ ipBucket: "a" });
    const { queryToken } = (await two.acquire({ ipBucket: "b" })).body;
    const held = two.poll(queryToken);
    expect((await post(one, "example.com/breaker", { state: "open" })).status).toBe(204);
    expect((await held).body).toMatchObject({ result: "throttled", throttleCode: 0 });
    expect((await one.acquire({ ipBucket: "c" })).body.result).toBe("throttled");
    expect(await hostState(two)).toMatchObject({
      breaker: "open",
      breakerCode: 0,
      breakerEndsInMs: expect.any(Number),
    });
    expect((await post(two, "example.com/breaker", { state: "closed" })).status).toBe(204);
    await one.release(slot.slotToken);
    expect((await two.take({ ipBucket: "b" })).result).toBe("granted");
    await expect.poll(async () => (await one.acquire({ ipBucket: "c" })).body.result).toBe("pending");
    expect(await hostState(one)).toMatchObject({ breaker: "closed" });
  });

  it("is open for a caller with a longer window for an hour", async () => {
    const fixture = await startFixture();
    await post(fixture, "example.com/breaker", { state: "open" });
    const { body, headers } = await fixture.acquire({ throttleTimeWindowSeconds: 86_400 });
    expect([body.result, body.throttleRetryAfter]).toEqual(["throttled", 3_600]);
    expect(headers.get("retry-after")).toBe("3600");
  });

  it.each([{}, { state: "half-open" }, { isOpen: true }])("%j is 400", async (body) => {
    const fixture = await startFixture();
    expect((await post(fixture, "example.com/breaker", body)).body.code).toBe("BAD_FIELDS");
  });
});

describe("a revoked slot", () => {
  it("goes to the next waiter; its holder gets an error at its next renewal at any instance, and its release frees no other slot", async () => {
    const [one, two] = (await startFleet(2, { fairQueue: { maxSlotPerHost: 1 } })) as [Fixture, Fixture];
    const lost = await one.take({ ipBucket: "a" });
    const { queryToken } = (await two.acquire({ ipBucket: "b" })).body;
    const held = two.poll(queryToken);
    const id = (await hostState(two))?.slots[0]?.slot;
    expect(id).toBe(`${KEY}.${lost.fence}`);
    expect((await two.request("DELETE", `/api/v0/slots/${id}`)).status).toBe(204);
    const next = (await held).body;
    expect(next.result).toBe("granted");
    for (const fixture of [one, two]) {
      const renewed = await fixture.call("renew", { slotToken: lost.slotToken });
      expect([renewed.status, renewed.body.code]).toEqual([410, "SLOT_LOST"]);
    }
    await one.release(lost.slotToken);
    expect((await two.call("renew", { slotToken: next.slotToken })).status).toBe(200);
  });

  it("is not returned again by a repeated poll", async () => {
    const fixture = await startFixture();
    const slot = await fixture.take();
    await fixture.request("DELETE", `/api/v0/slots/${KEY}.${slot.fence}`);
    expect((await fixture.poll(slot.queryToken)).body).toEqual({ result: "timeout", reason: "released" });
  });

  it("that is not held is 404, and an invalid slot name 400; both change nothing", async () => {
    const fixture = await startFixture();
    const slot = await fixture.take();
    for (const id of [`${KEY}.17`, `other.${slot.fence}`, `a.b.${slot.fence}`]) {
      expect([id, (await fixture.request("DELETE", `/api/v0/slots/${id}`)).status]).toEqual([id, 404]);
    }
    const bare = ["17", "x", ".17", `${KEY}.`, `${KEY}.0`, `${KEY}.-1`, `${KEY}.1e3`, `${KEY}.99999999999999999999`];
    for (const id of [...bare, slot.slotToken]) {
      expect([id, (await fixture.request("DELETE", `/api/v0/slots/${id}`)).status]).toEqual([id, 400]);
    }
    expect((await fixture.call("renew", { slotToken: slot.slotToken })).status).toBe(200);
  });
});

describe("every action of an operator", () => {
  it("is an audit record at any log level, whether it succeeded or not", async () => {
    const fixture = await startFixture({ config: { logLevel: "error", internalApiToken: "internal" } });
    const bearer = { headers: { authorization: "Bearer internal", "x-request-id": "by-hand-1" } };
    const slot = await fixture.take();
    await post(fixture, "example.com", { maxSlotPerHost: 3 }, bearer);
    await post(fixture, "example.com/breaker", { state: "open" }, bearer);
    await post(fixture, "example.com/pause", { paused: true }, bearer);
    await fixture.request("DELETE", `/api/v0/slots/${KEY}.${slot.fence}`, bearer);
    await fixture.request("DELETE", `/api/v0/slots/${KEY}.${slot.fence}`, bearer);
    await fixture.request("POST", "/api/v0/refresh", bearer);
    await fixture.request("POST", "/api/v0/flush", bearer);
    const who = { level: "info", requestId: "by-hand-1", peer: "127.0.0.1" };
    const host = { host: KEY, hostname: "example.com" };
    expect(audits(fixture)).toMatchObject([
      { ...who, ...host, msg: "audit: limits", limits: { maxSlotPerHost: 3 }, outcome: "done" },
      { ...who, ...host, msg: "audit: breaker", state: "open", outcome: "done" },
      { ...who, ...host, msg: "audit: pause", paused: true, outcome: "done" },
      { ...who, msg: "audit: revoke", slot: `${KEY}.${slot.fence}`, outcome: "done" },
      { ...who, msg: "audit: revoke", slot: `${KEY}.${slot.fence}`, outcome: "refused" },
      { ...who, msg: "audit: refresh", outcome: "done" },
      { ...who, msg: "audit: flush", outcome: "done" },
    ]);
    expect(fixture.logged.join("")).not.toMatch(/Bearer|"internal"|slot_/);
  });

  it("needs the bearer if one is set: without it the route does not exist", async () => {
    const fixture = await startFixture({ config: { internalApiToken: "internal" } });
    const slot = await fixture.take();
    const calls = [
      ["POST", "/api/v0/hosts/example.com"],
      ["POST", "/api/v0/hosts/example.com/breaker"],
      ["POST", "/api/v0/hosts/example.com/pause"],
      ["DELETE", `/api/v0/slots/${KEY}.${slot.fence}`],
      ["GET", "/api/v0/state"],
      ["GET", "/api/v0/history"],
      ["GET", "/api/v0/instances"],
      ["GET", "/api/v0/events"],
      ["GET", "/metrics"],
    ] as const;
    for (const [method, path] of calls) {
      for (const authorization of ["", "Bearer wrong", "Basic internal"]) {
        const body = method === "POST" ? { body: '{"maxSlotPerHost":1,"state":"open"}' } : {};
        const reply = await fixture.request(method, path, { headers: { authorization }, ...body });
        expect([path, reply.status, reply.body.code]).toEqual([path, 404, "NOT_FOUND"]);
      }
    }
    expect((await fixture.call("renew", { slotToken: slot.slotToken })).status).toBe(200);
    expect(audits(fixture)).toEqual([]);
  });

  it("without a configured bearer is refused from a page in a browser of this machine", async () => {
    const fixture = await startFixture();
    const body = JSON.stringify({ maxSlotPerHost: 1 });
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1"]) {
      const headers = { origin, "content-type": "text/plain" };
      expect((await fixture.request("POST", "/api/v0/hosts/example.com", { headers, body })).status).toBe(404);
    }
    const headers = { origin: fixture.url };
    expect((await fixture.request("POST", "/api/v0/hosts/example.com?new=true", { headers, body })).status).toBe(204);
  });

  it("fails if the store does not answer, and the answer says that it may have taken effect", async () => {
    class Broken extends MemoryStore {
      override commit(): Promise<never> {
        return Promise.reject(new Error("the store is down"));
      }
    }
    const fixture = await startFixture({ open: openWith((clock) => new Broken({ clock })) });
    expect((await post(fixture, "example.com?new=true", { maxSlotPerHost: 1 })).body.code).toBe("UNAVAILABLE");
    expect(audits(fixture)).toMatchObject([{ msg: "audit: limits", outcome: "failed" }]);
  });
});
