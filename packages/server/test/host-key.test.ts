import { createHash } from "node:crypto";
import type { ServiceState } from "@slotkeeper/protocol";
import { describe, expect, it } from "vitest";
import { configFile, type Fixture, startFixture } from "./service-fixture.ts";

const sha256 = (name: string) => createHash("sha256").update(name).digest("hex");
const HASH = sha256("example.com");

async function hostsOf(fixture: Fixture): Promise<ServiceState["hosts"]> {
  const { text } = await fixture.request("GET", "/api/v0/state");
  return (JSON.parse(text) as ServiceState).hosts;
}

describe("a name and a hash that do not match", () => {
  const mismatched = [
    ["another host's name", { hostname: "other.example", hostnameHash: HASH }],
    ["an upper-case hash of another name", { hostname: "other.example", hostnameHash: HASH.toUpperCase() }],
    ["a semaphore's name on a host's pool", { hostname: "sem:x", hostnameHash: HASH }],
    ["a semaphore's name with its own hash", { hostname: "sem:x", hostnameHash: sha256("sem:x") }],
    ["a semaphore's name with a short hash", { hostname: "SEM:x", hostnameHash: "abc" }],
  ] as const;

  it.each(mismatched)(
    "%s is 400 in acquire and report, and changes no pool; release, renew and cancel ignore names",
    async (_title, names) => {
      const file = configFile({
        listen: "127.0.0.1:0",
        fairQueue: { hosts: { "other.example": { maxSlotPerHost: 9 } } },
      });
      const fixture = await startFixture({ file });
      const slot = await fixture.take();
      const calls = [
        ["acquire", { ...names }],
        ["acquire", { ...names, limit: 1_000_000 }],
        ["report", { ...names, status: 200 }],
      ] as const;
      for (const [route, body] of calls) {
        const reply = await fixture.call(route, body);
        expect([route, reply.status, reply.body.code]).toEqual([route, 400, "BAD_FIELDS"]);
        expect(reply.body.errors.map(({ field }) => field)).toContain("hostnameHash");
      }
      expect((await hostsOf(fixture)).map(({ host, limit }) => [host, limit])).toEqual([[HASH, 5]]);
      expect((await fixture.call("renew", { ...names, slotToken: slot.slotToken })).status).toBe(200);
      const waiting = (await fixture.acquire()).body.queryToken;
      expect((await fixture.call("cancel", { ...names, queryToken: waiting })).body.result).toBe("canceled");
      expect((await fixture.call("release", { ...names, slotToken: "nonsense" })).status).toBe(200);
      const wrong = { ipBucket: 7, bucket: ["x"], hostname: 1, hostnameHash: {} };
      for (const more of [names, wrong]) {
        const { slotToken } = await fixture.take({ ipBucket: "b" });
        expect((await fixture.release(slotToken, more)).text).toBe('{"result":"ok"}');
        expect((await fixture.call("renew", { slotToken })).status).toBe(410);
      }
    },
  );

  it("the limit of a semaphore cannot affect the pool of a host", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 2 } } });
    await fixture.call("acquire", { hostname: "sem:x", hostnameHash: HASH, limit: 1_000_000, waitMs: 100 });
    for (const ipBucket of ["a", "b"]) await fixture.take({ ipBucket });
    expect((await fixture.acquire({ ipBucket: "c", waitMs: 20 })).body.result).toBe("pending");
  });
});

describe("one host has one pool", () => {
  it("by name, by hash, in upper case or with a trailing dot", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    await fixture.take({ ipBucket: "holder" });
    const spellings = [
      { hostname: "EXAMPLE.com" },
      { hostname: "example.com." },
      { hostname: "Example.COM.", hostnameHash: HASH },
      { hostname: "Example.COM.", hostnameHash: sha256("Example.COM.") },
      { hostname: "Example.COM.", hostnameHash: sha256("Example.COM.").toUpperCase() },
      { hostname: "example.com.", hostnameHash: sha256("example.com.") },
      { hostname: undefined, hostnameHash: HASH },
      { hostname: undefined, hostnameHash: HASH.toUpperCase() },
    ];
    for (const [at, names] of spellings.entries()) {
      const { body } = await fixture.acquire({ ...names, ipBucket: `b${at}`, waitMs: 20 });
      expect([names, body.result]).toEqual([names, "pending"]);
    }
    expect((await hostsOf(fixture)).map(({ host }) => host)).toEqual([HASH]);
    await fixture.call("report", { hostname: "Example.com.", status: 200 });
    expect(await hostsOf(fixture)).toHaveLength(1);
  });

  it("a dot alone is not a name", async () => {
    const fixture = await startFixture();
    const reply = await fixture.acquire({ hostname: "." });
    expect([reply.status, reply.body.errors[0]?.field]).toEqual([400, "hostname"]);
  });
});

describe("overrides", () => {
  const hosts = { "Example.com": { maxSlotPerHost: 1 }, "*.pattern.example": { maxSlotPerHost: 1 } };

  it("for an exact name also apply to callers that send only the hash, in any order of calls", async () => {
    for (const first of ["acquire", "report"] as const) {
      const fixture = await startFixture({ config: { fairQueue: { hosts } } });
      if (first === "report") await fixture.call("report", { hostnameHash: HASH, status: 200 });
      const hash = { hostname: undefined, hostnameHash: HASH };
      await fixture.take({ ...hash, ipBucket: "a" });
      expect((await fixture.acquire({ ...hash, ipBucket: "b", waitMs: 20 })).body.result).toBe("pending");
    }
  });

  it("are not selected by a name with a hash that is not its SHA-256", async () => {
    const fixture = await startFixture({ config: { fairQueue: { hosts } } });
    const names = { hostname: "example.com", hostnameHash: "my-own-key" };
    await fixture.take({ ...names, ipBucket: "a" });
    await fixture.take({ ...names, ipBucket: "b" });
    await fixture.take({ hostname: "example.com", ipBucket: "a" });
    expect((await fixture.acquire({ ipBucket: "b", waitMs: 20 })).body.result).toBe("pending");
  });
});

describe("`bucket`", () => {
  it("is the same as `ipBucket`: one limit, one session of a request", async () => {
    const fixture = await startFixture();
    const { slotToken } = await fixture.take({ bucket: "a", requestId: "r" });
    expect((await fixture.take({ ipBucket: "a", requestId: "r" })).slotToken).toBe(slotToken);
    expect((await fixture.acquire({ ipBucket: "a", waitMs: 20 })).body.blockedBy).toBe("ip-limit");
    expect((await fixture.take({ bucket: "b", ipBucket: "b" })).result).toBe("granted");
  });

  it("with another value than `ipBucket` is 400", async () => {
    const fixture = await startFixture();
    const both = [
      { bucket: "a", ipBucket: "b" },
      { bucket: "a", ipBucket: "" },
    ];
    for (const names of both) {
      const { status, body } = await fixture.acquire(names);
      expect([status, body.errors.map(({ field }) => field)]).toEqual([400, ["bucket"]]);
    }
    expect((await fixture.acquire({ bucket: "a", ipBucket: null })).status).toBe(200);
    expect((await fixture.acquire({ bucket: "x".repeat(256), ipBucket: "b" })).body.errors).toHaveLength(1);
  });
});

describe("a request id", () => {
  it("belongs to its host and its bucket: another caller with the same id gets its own session", async () => {
    const fixture = await startFixture();
    const ask = (ipBucket: string) => fixture.take({ ipBucket, requestId: "42" });
    const [one, two] = [await ask("a"), await ask("b")];
    expect(two.slotToken).not.toBe(one.slotToken);
    expect((await ask("a")).slotToken).toBe(one.slotToken);
  });
});
