import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { type Fixture, startFixture } from "./service-fixture.ts";

/** Only an event can answer in time: neither the window nor the fallback cycle ends within a test. */
const EVENTS_ONLY = { maxSlotPerHost: 1, pollWindowMs: 3_600_000, pollIntervalMs: 3_600_000, maxWaitMs: 3_600_000 };

const openPolls = (fixture: Fixture) =>
  fixture.service
    .dump()
    .hosts.flatMap(({ waiting }) => waiting.map(({ polls }) => polls))
    .reduce((a, b) => a + b, 0);

describe("a held poll", () => {
  it("is answered by the release that frees its slot, not by a timer", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    const slot = await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = fixture.poll(queryToken);
    await expect.poll(() => openPolls(fixture)).toBe(1);
    await fixture.release(slot.slotToken);
    expect((await held).body.result).toBe("granted");
  });

  it("and a waiting first call are served in their order", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    let { slotToken } = await fixture.take({ ipBucket: "holder" });
    const waiting = [];
    for (const ipBucket of ["a", "b", "c"]) {
      waiting.push(fixture.acquire({ ipBucket, waitMs: 3_600_000 }));
      await expect.poll(() => openPolls(fixture)).toBe(waiting.length);
    }
    for (const next of waiting) {
      await fixture.release(slotToken);
      const { body } = await next;
      expect(body.result).toBe("granted");
      slotToken = body.slotToken;
    }
  });

  it("is answered pending when its window ends", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, pollWindowMs: 20 } } });
    await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    expect((await fixture.poll(queryToken)).body).toMatchObject({
      result: "pending",
      queryToken,
      position: 1,
      waiters: 1,
    });
  });

  it("may be open many times for the same token: all get the same slot", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    const slot = await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = Array.from({ length: 5 }, () => fixture.poll(queryToken));
    await expect.poll(() => openPolls(fixture)).toBe(5);
    await fixture.release(slot.slotToken);
    const answers = await Promise.all(held);
    expect(new Set(answers.map(({ body }) => body.slotToken)).size).toBe(1);
    expect(fixture.service.dump().counts.granted).toBe(2);
  });

  it("is answered immediately if the same token has too many of them open", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const polls = Array.from({ length: 40 }, () => fixture.poll(queryToken));
    const answered: string[] = [];
    for (const poll of polls) void poll.then(({ body }) => answered.push(body.result));
    await expect.poll(() => answered).toHaveLength(24);
    expect(new Set(answered)).toEqual(new Set(["pending"]));
    expect(openPolls(fixture)).toBe(16);
    await fixture.call("cancel", { queryToken });
    await Promise.all(polls);
    expect((await fixture.acquire({ ipBucket: "c", waitMs: 1 })).body.result).toBe("pending");
  });

  it("is dropped when its caller hangs up; the session keeps its place but gets no slot", async () => {
    const fixture = await startFixture({ config: { fairQueue: { ...EVENTS_ONLY, collectMs: 1 } } });
    const slot = await fixture.take({ ipBucket: "a" });
    const vanished = (await fixture.acquire({ ipBucket: "vanished" })).body.queryToken;
    const leaving = new AbortController();
    const left = fixture.poll(vanished, { signal: leaving.signal });
    await expect.poll(() => openPolls(fixture)).toBe(1);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(() => openPolls(fixture)).toBe(0);
    await expect.poll(() => fixture.service.dump().hosts[0]?.waiting[0]?.isAwake).toBe(false);
    const present = fixture.acquire({ ipBucket: "present", waitMs: 3_600_000 });
    await expect.poll(() => openPolls(fixture)).toBe(1);
    await fixture.release(slot.slotToken);
    const { body } = await present;
    expect(body.result).toBe("granted");
    const back = fixture.poll(vanished);
    await expect.poll(() => openPolls(fixture)).toBe(1);
    await fixture.release(body.slotToken);
    expect((await back).body.result).toBe("granted");
  });

  it("does not block a cancellation", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = fixture.poll(queryToken);
    await expect.poll(() => openPolls(fixture)).toBe(1);
    expect((await fixture.call("cancel", { queryToken })).body.result).toBe("canceled");
    expect((await held).body.reason).toBe("canceled");
  });
});

describe("a release", () => {
  it("does not depend on its caller's connection", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    const { slotToken } = await fixture.take({ ipBucket: "a" });
    const next = fixture.acquire({ ipBucket: "b", waitMs: 3_600_000 });
    await expect.poll(() => openPolls(fixture)).toBe(1);
    const { port, hostname } = new URL(fixture.url);
    const body = JSON.stringify({ slotToken });
    const socket = connect(Number(port), hostname, () => {
      const head = `POST /api/v0/fairqueue/release HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
      socket.write(head + body, () => socket.destroy());
    });
    expect((await next).body.result).toBe("granted");
  });
});
