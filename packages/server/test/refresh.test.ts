import { writeFileSync } from "node:fs";
import { type Commit, type CommitReply, MemoryStore } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import { configFile, type Fixture, openWith, startFixture } from "./service-fixture.ts";

const BEARER = { headers: { authorization: "Bearer internal" } };
const base = { internalApiToken: "internal", listen: "127.0.0.1:0" };

async function start(config: object): Promise<{ fixture: Fixture; write: (config: object | string) => void }> {
  const file = configFile({ ...base, ...config });
  const fixture = await startFixture({ file });
  return {
    fixture,
    write: (next) => writeFileSync(file, typeof next === "string" ? next : JSON.stringify({ ...base, ...next })),
  };
}

const refresh = (fixture: Fixture) => fixture.request("POST", "/api/v0/refresh", BEARER);

describe("a refresh", () => {
  it("raises a limit live: sessions are kept, and a waiting one is granted immediately", async () => {
    const { fixture, write } = await start({ fairQueue: { maxSlotPerHost: 1 } });
    const slot = await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = fixture.poll(queryToken);
    write({ fairQueue: { maxSlotPerHost: 2 } });
    expect((await refresh(fixture)).status).toBe(204);
    expect((await held).body.result).toBe("granted");
    expect((await fixture.call("renew", { slotToken: slot.slotToken })).status).toBe(200);
    expect((await fixture.poll(slot.queryToken)).body.slotToken).toBe(slot.slotToken);
  });

  it("while the store cannot be written is 204: the limits apply as soon as it can be written", async () => {
    let isWritable = true;
    class Unwritable extends MemoryStore {
      override commit(commit: Commit): CommitReply | Promise<CommitReply> {
        return isWritable ? super.commit(commit) : Promise.reject(new Error("the journal cannot be written"));
      }
    }
    const file = configFile({ ...base, fairQueue: { maxSlotPerHost: 1, pollIntervalMs: 20 } });
    const fixture = await startFixture({ file, open: openWith((clock) => new Unwritable({ clock })) });
    await fixture.take({ ipBucket: "a" });
    isWritable = false;
    writeFileSync(file, JSON.stringify({ ...base, fairQueue: { maxSlotPerHost: 2, pollIntervalMs: 20 } }));
    expect((await refresh(fixture)).status).toBe(204);
    isWritable = true;
    await fixture.take({ ipBucket: "b" });
  });

  it("lowers a limit without taking a slot from its holder", async () => {
    const { fixture, write } = await start({ fairQueue: { maxSlotPerHost: 2 } });
    const slots = [await fixture.take({ ipBucket: "a" }), await fixture.take({ ipBucket: "b" })];
    write({ fairQueue: { maxSlotPerHost: 1 } });
    await refresh(fixture);
    for (const { slotToken } of slots) expect((await fixture.call("renew", { slotToken })).status).toBe(200);
    await fixture.release(slots[0]?.slotToken ?? "");
    expect((await fixture.acquire({ ipBucket: "c", waitMs: 20 })).body.result).toBe("pending");
  });

  it.each(["{ not json", "[]", '{"fairQueue":{"maxSlotPerHost":1.5}}', '{"colour":1}', '{"auth":{"enabled":true}}'])(
    "with %s is 502 with all problems, and the old configuration stays",
    async (bad) => {
      const { fixture, write } = await start({ fairQueue: { maxSlotPerHost: 1 } });
      await fixture.take({ ipBucket: "a" });
      write(bad);
      const reply = await refresh(fixture);
      expect([reply.status, reply.body.code]).toEqual([502, "BAD_CONFIG"]);
      expect(fixture.logged.join("")).toContain("the new configuration was refused");
      expect((await fixture.acquire({ ipBucket: "b", waitMs: 20 })).body.result).toBe("pending");
      expect((await fixture.request("GET", "/api/v0/health", BEARER)).status).toBe(204);
    },
  );

  it("rotates the shared key and the signing keys: old tokens stay valid while their key is listed", async () => {
    const { fixture, write } = await start({
      auth: { enabled: true, token: "one" },
      tokenKeys: ["signing key number one"],
    });
    const one = { headers: { "X-FQ-Auth": "one" } };
    const two = { headers: { "X-FQ-Auth": "two" } };
    const { queryToken } = (await fixture.acquire({}, one)).body;
    write({
      auth: { enabled: true, tokens: ["two"] },
      tokenKeys: ["signing key number two", "signing key number one"],
    });
    await refresh(fixture);
    expect((await fixture.acquire({}, one)).status).toBe(401);
    const { body } = await fixture.call("acquire", { queryToken }, two);
    expect(body.result).toBe("granted");
    expect(body.queryToken).not.toBe(queryToken);
  });

  it("keeps the key that the process created for itself", async () => {
    const { fixture, write } = await start({});
    const { queryToken } = (await fixture.acquire()).body;
    write({ logLevel: "debug" });
    await refresh(fixture);
    expect((await fixture.poll(queryToken)).body.result).toBe("granted");
  });

  it("reports that a new address or store needs a restart", async () => {
    const file = configFile(base);
    const fixture = await startFixture({ file, config: { listen: null } });
    writeFileSync(file, JSON.stringify({ ...base, listen: "127.0.0.1:1" }));
    const warned = async () => {
      fixture.logged.length = 0;
      expect((await refresh(fixture)).status).toBe(204);
      return fixture.logged.join("").includes("`listen` changed: restart the service to apply it");
    };
    // The warning is repeated while the file differs from the running configuration.
    expect([await warned(), await warned()]).toEqual([true, true]);
    writeFileSync(file, JSON.stringify(base));
    expect(await warned()).toBe(false);
  });
});
