import { MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { describe, expect, it } from "vitest";
import { type Fixture, openWith, startFixture, stopFixture } from "./service-fixture.ts";

const [OLD, NEW, OTHER] = ["old key, long enough to be one", "new key, long enough to be one", "another fleet's key"];
const QUEUE = { fairQueue: { maxSlotPerHost: 1 } };

/** The token of a pending session at a service whose only slot is held. */
async function pendingToken(tokenKeys: string[]) {
  const fixture = await startFixture({ config: { ...QUEUE, tokenKeys } });
  const slot = await fixture.take({ ipBucket: "holder" });
  const { queryToken } = (await fixture.acquire({ ipBucket: "waiter" })).body;
  return { fixture, slot, queryToken };
}

describe("a query token", () => {
  it("that was altered anywhere is 400 or unknown, never a session, and never reaches the store", async () => {
    const { fixture, queryToken } = await pendingToken([NEW]);
    const before = fixture.service.dump().counts.session_created;
    for (let at = 0; at < queryToken.length; at++) {
      const other = queryToken[at] === "A" ? "B" : "A";
      const altered = queryToken.slice(0, at) + other + queryToken.slice(at + 1);
      const reply = await fixture.poll(altered);
      const isRefused = reply.status === 400 && reply.body.code === "BAD_TOKEN";
      const isUnknown = reply.body.result === "timeout" && reply.body.reason === "unknown-token";
      expect([altered, isRefused || isUnknown]).toEqual([altered, true]);
    }
    expect(fixture.service.dump().counts.session_created).toBe(before);
  });

  it("with a known key id and a bad signature is 400 for polls and cancels alike", async () => {
    const { fixture, queryToken } = await pendingToken([NEW]);
    const [version, key, claims = "", mac = ""] = queryToken.split(".");
    const rich = JSON.parse(Buffer.from(claims, "base64url").toString()) as unknown[];
    rich[3] = 0;
    const forgedClaims = Buffer.from(JSON.stringify(rich)).toString("base64url");
    const forgeries = [
      [version, key, forgedClaims, mac],
      [version, key, claims, mac.slice(0, -1)],
      [version, key, claims, ""],
      [version, key, claims],
      [version, key, claims, mac, mac],
      [version, key],
      [version, key, "", ""],
    ];
    for (const forged of forgeries.map((parts) => parts.join("."))) {
      expect((await fixture.poll(forged)).body.code).toBe("BAD_TOKEN");
      expect((await fixture.call("cancel", { queryToken: forged })).body.code).toBe("BAD_TOKEN");
    }
    expect((await fixture.call("cancel", { queryToken })).body.result).toBe("canceled");
  });

  it("of an unknown key, of the original service, or an invalid one is a timeout: unknown-token", async () => {
    const stranger = await pendingToken([OTHER]);
    const fixture = await startFixture({ config: { tokenKeys: [NEW] } });
    for (const token of [stranger.queryToken, "6b1f0d2e-9f0c-4f0e-8a57-0f6f3d1c2b3a", "x", "fq1", "fq1..", "...."]) {
      expect((await fixture.poll(token)).body).toEqual({ result: "timeout", reason: "unknown-token" });
      expect((await fixture.call("cancel", { queryToken: token })).body.result).toBe("gone");
    }
    expect(fixture.service.dump().sessions.total).toBe(0);
  });

  it("of a process that created its own key is unknown to the next process", async () => {
    const first = await startFixture();
    const { queryToken } = (await first.acquire()).body;
    const second = await startFixture();
    expect((await second.poll(queryToken)).body.reason).toBe("unknown-token");
  });

  it("signed by an old key is valid while that key is listed, and the first key signs", async () => {
    const { queryToken } = await pendingToken([OLD]);
    const rotated = await startFixture({ config: { tokenKeys: [NEW, OLD] } });
    const { body } = await rotated.poll(queryToken);
    expect(body.result).toBe("granted");
    expect(body.queryToken.split(".")[1]).not.toBe(queryToken.split(".")[1]);
    const after = await startFixture({ config: { tokenKeys: [NEW] } });
    expect((await after.poll(queryToken)).body.reason).toBe("unknown-token");
    expect((await after.poll(body.queryToken)).body.result).toBe("granted");
  });

  it("stays valid after a restart of its instance, with its place and its deadline", async () => {
    const config = { ...QUEUE, tokenKeys: [NEW] };
    const first = await startFixture({ config });
    await first.take({ ipBucket: "holder" });
    const early = (await first.acquire({ ipBucket: "waiter" })).body.queryToken;
    await stopFixture(first);
    const second = await startFixture({ config });
    await second.take({ ipBucket: "holder" });
    const late = (await second.acquire({ ipBucket: "waiter" })).body.queryToken;
    const answers = [second.poll(late), second.poll(early)];
    await expect.poll(() => second.service.dump().hosts[0]?.waiting.filter(({ polls }) => polls > 0).length).toBe(2);
    const { waiting } = second.service.dump().hosts[0] ?? { waiting: [] };
    const [id] = JSON.parse(Buffer.from(early.split(".")[2] ?? "", "base64url").toString()) as [string];
    expect(waiting.find(({ session }) => session === id)?.arrivedAt).toBeLessThan(
      waiting.find(({ session }) => session !== id)?.arrivedAt ?? 0,
    );
    await stopFixture(second);
    expect((await Promise.all(answers)).map(({ body }) => [body.result, body.position])).toEqual([
      ["pending", 2],
      ["pending", 1],
    ]);
  });

  it("is invalid after the deadline it contains, at any instance", async () => {
    const config = { fairQueue: { maxSlotPerHost: 1, maxWaitMs: 2_000 }, tokenKeys: [NEW] };
    const first = await startFixture({ config });
    await first.take({ ipBucket: "holder" });
    const { queryToken } = (await first.acquire({ ipBucket: "waiter" })).body;
    expect((await first.poll(queryToken)).body.reason).toBe("deadline");
    const second = await startFixture({ config });
    expect((await second.poll(queryToken)).body).toEqual({ result: "timeout", reason: "deadline" });
    expect(second.service.dump().sessions.total).toBe(0);
  });

  it("that is used again after its grant returns the same slot, and after its end that end: never a second slot", async () => {
    const fixture = await startFixture({ config: { ...QUEUE, tokenKeys: [NEW] } });
    const slot = await fixture.take({ ipBucket: "a" });
    for (let replay = 0; replay < 3; replay++) {
      expect((await fixture.poll(slot.queryToken)).body).toMatchObject({
        result: "granted",
        slotToken: slot.slotToken,
      });
    }
    await fixture.release(slot.slotToken);
    expect((await fixture.poll(slot.queryToken)).body).toEqual({ result: "timeout", reason: "released" });
    expect(fixture.service.dump().counts.granted).toBe(1);
  });

  it("of a named semaphore keeps its capacity at an instance that does not know it", async () => {
    const config = { tokenKeys: [NEW] };
    const first = await startFixture({ config });
    const { queryToken } = (await first.acquire({ hostname: "sem:x", limit: 1 })).body;
    const second = await startFixture({ config });
    expect((await second.poll(queryToken)).body.result).toBe("granted");
    expect((await second.acquire({ hostname: "sem:x", limit: 1, waitMs: 20 })).body.result).toBe("pending");
    expect((await second.acquire({ hostname: "sem:x", limit: 5 })).status).toBe(409);
  });

  it("keeps the width at an instance that does not know the session, and in the tokens of later answers", async () => {
    const config = { fairQueue: { maxSlotPerHost: 4, pollWindowMs: 50 }, tokenKeys: [NEW] };
    const first = await startFixture({ config });
    await first.take({ width: 2 });
    const { queryToken } = (await first.acquire({ width: 3, waitMs: 20 })).body;
    const second = await startFixture({ config });
    await second.take({ width: 2 });
    const { body: moved } = await second.poll(queryToken);
    expect(moved).toMatchObject({ result: "pending", blockedBy: "width" });
    const third = await startFixture({ config });
    expect((await third.poll(moved.queryToken)).body).toMatchObject({ result: "granted", width: 3 });
  });

  it("keeps the cost at an instance that does not know the session", async () => {
    const budgets = { tokens: { limit: 100, perSeconds: 3_600 } };
    const config = { fairQueue: { maxSlotPerHost: 4, maxSlotPerIp: -1, budgets }, tokenKeys: [NEW] };
    const first = await startFixture({ config });
    await first.take({ cost: { tokens: 80 } });
    const { body: waiting } = await first.acquire({ cost: { tokens: 50 }, waitMs: 20 });
    expect(waiting).toMatchObject({ result: "pending", blockedBy: "budget:tokens" });
    const second = await startFixture({ config });
    expect((await second.poll(waiting.queryToken)).body).toMatchObject({ result: "granted", charged: { tokens: 50 } });
  });
});

it("the token of a session keeps its keys at an instance that does not know the session", async () => {
  const fairQueue = { maxSlotPerHost: 4, maxSlotPerIp: -1, keys: { tenant: { slots: 1 } } };
  const config = { fairQueue, tokenKeys: [NEW] };
  const first = await startFixture({ config });
  await first.take({ keys: { tenant: "acme" } });
  const { body: waiting } = await first.acquire({ keys: { tenant: "acme" }, waitMs: 20 });
  const second = await startFixture({ config });
  await second.take({ keys: { tenant: "acme" } });
  expect((await second.poll(waiting.queryToken)).body).toMatchObject({ result: "pending", blockedBy: "key:tenant" });
});

describe("requestId", () => {
  it("gives the same session to a repeated first call, one after the other and at the same time", async () => {
    const fixture = await startFixture({ config: QUEUE });
    const first = await fixture.acquire({ requestId: "r1", ipBucket: "a" });
    const again = await fixture.acquire({ requestId: "r1", ipBucket: "a" });
    const many = await Promise.all(
      Array.from({ length: 10 }, () => fixture.acquire({ requestId: "r1", ipBucket: "a" })),
    );
    expect(new Set([first, again, ...many].map(({ body }) => body.queryToken)).size).toBe(1);
    expect(fixture.service.dump().counts.session_created).toBe(1);
    expect((await fixture.acquire({ requestId: "r2", ipBucket: "a" })).body.queryToken).not.toBe(first.body.queryToken);
    expect((await fixture.acquire({ requestId: "r1", hostname: "other" })).body.queryToken).not.toBe(
      first.body.queryToken,
    );
  });

  it("leaves no second session if the answer to a granted first call is lost", async () => {
    const fixture = await startFixture({ config: QUEUE });
    const slot = await fixture.take({ requestId: "r1" });
    expect((await fixture.take({ requestId: "r1" })).slotToken).toBe(slot.slotToken);
    await fixture.release(slot.slotToken);
    await fixture.take({ requestId: "r2" });
  });

  it("identifies the same session at every instance with the same keys", async () => {
    const config = { ...QUEUE, tokenKeys: [NEW] };
    const [a, b] = [await startFixture({ config }), await startFixture({ config })];
    const ids = await Promise.all(
      [a, b].map(async (fixture) => {
        const { queryToken } = (await fixture.acquire({ requestId: "r1" })).body;
        return (JSON.parse(Buffer.from(queryToken.split(".")[2] ?? "", "base64url").toString()) as string[])[0];
      }),
    );
    expect(ids[0]).toBe(ids[1]);
  });

  it("continues its session until its deadline or while it has its slot, and then begins another", async () => {
    let aheadMs = 0;
    const clock = { ...realClock, now: () => realClock.now() + aheadMs };
    const config = { fairQueue: { maxSlotPerHost: 2, maxWaitMs: 300_000, zombieTimeoutSeconds: 3_600 } };
    const store = new MemoryStore({ clock, isShared: true });
    // Each start reads the clock of the store.
    const start = () => startFixture({ config, open: openWith(() => store) });
    const ask = async (fixture: Fixture, requestId: string) =>
      (await fixture.acquire({ requestId, waitMs: 5_000 })).body;
    const before = await start();
    const [short, long] = [await ask(before, "short"), await ask(before, "long")];
    await before.release(short.slotToken);
    expect(await ask(before, "short")).toEqual({ result: "timeout", reason: "released" });
    aheadMs = 301_000;
    const later = await start();
    const next = await ask(later, "short");
    expect([next.result, next.slotToken === short.slotToken]).toEqual(["granted", false]);
    expect((await ask(later, "long")).slotToken).toBe(long.slotToken);
    await later.release(long.slotToken);
    // The repeated call may have moved the deadline.
    aheadMs = 602_000;
    const last = await ask(await start(), "long");
    expect([last.result, last.slotToken === long.slotToken]).toEqual(["granted", false]);
  });

  it("a caller that hangs up does not affect another with the same requestId", async () => {
    const fixture = await startFixture({ config: QUEUE });
    const slot = await fixture.take({ ipBucket: "holder" });
    const leaving = new AbortController();
    const left = fixture.acquire({ requestId: "r", waitMs: 5_000, ipBucket: "b" }, { signal: leaving.signal });
    const stays = fixture.acquire({ requestId: "r", waitMs: 5_000, ipBucket: "b" });
    await expect.poll(() => fixture.service.dump().hosts[0]?.waiting[0]?.polls ?? 0).toBeGreaterThan(0);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await fixture.release(slot.slotToken);
    expect((await stays).body.result).toBe("granted");
  });
});
