import type { HostPolicy } from "@slotkeeper/queue";
import { JournalCorruptError, JournalFormatError, JournalPathError } from "@slotkeeper/server";
import { openJournaledMemoryStore } from "@slotkeeper/server/internals";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { MemoryDisk } from "./memory-disk.ts";
import { Calls, policyOf } from "./store-calls.ts";

/** A store that can be restarted: each process begins with the file of the one before. */
class Lives {
  readonly policy: HostPolicy;
  readonly disk = new MemoryDisk();
  #lives = 0;

  constructor(config: Parameters<typeof policyOf>[0]) {
    this.policy = policyOf({ maxWaitersPerHost: 0, ...config });
  }

  /** `uptime`: undefined if the system does not say it. */
  async start(clock: FakeClock, uptime?: { readonly boot: string; readonly ms: number }) {
    const life = ++this.#lives;
    const opened = await openJournaledMemoryStore({
      path: "journal",
      disk: this.disk,
      clock,
      uptime: async () => uptime,
      graceMs: 1_000,
      newTokenKey: () => `key-${life}`,
    });
    const callsOf = (host?: string) => new Calls(opened.store, this.policy, host);
    return { ...opened, calls: callsOf(), callsOf };
  }
}

describe("after a restart", () => {
  test("a held slot is still held by the same token, and ends at the same time", async () => {
    const lives = new Lives({ maxSlotPerHost: 1, zombieTimeoutSeconds: 30 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    const slot = await one.calls.grant("a-1");
    clock.advance(10_000);
    const two = await lives.start(clock);
    expect(await two.calls.grant("b-1")).toBeUndefined();
    expect(await two.calls.grant("a-1")).toEqual({ ...slot, leaseMs: 20_000 });
    clock.advance(19_999);
    expect(await two.calls.grant("b-1")).toBeUndefined();
    clock.advance(1);
    const next = await two.calls.grant("b-1");
    expect(next?.fence).toBeGreaterThan(slot?.fence ?? 0);
    expect(await two.calls.renew(slot?.slotToken ?? "")).toBeUndefined();
  });

  test("a slot can be renewed and released before its host is used again", async () => {
    const lives = new Lives({ maxSlotPerHost: 2, zombieTimeoutSeconds: 30, maxHoldSeconds: 40 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    const [a, b] = [await one.calls.grant("a-1"), await one.calls.grant("b-1")];
    clock.advance(20_000);
    const two = await lives.start(clock);
    expect(await two.calls.renew(a?.slotToken ?? "")).toEqual({ leaseMs: 20_000 });
    expect(await two.calls.release(b?.slotToken ?? "")).toEqual({ endsInMs: 0 });
    const three = await lives.start(clock);
    expect((await three.calls.snapshot())?.leases).toMatchObject([
      { slot: `host.example.${a?.fence}`, endsInMs: 20_000 },
    ]);
  });

  test("ended sessions stay ended until their deadline", async () => {
    const lives = new Lives({ maxSlotPerHost: 5, maxSlotPerIp: -1 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    await one.calls.report(200);
    await one.calls.withdraw("a-1");
    const slot = await one.calls.grant("a-2");
    await one.calls.release(slot?.slotToken ?? "");
    const two = await lives.start(clock);
    expect(await two.calls.ask("a-1")).toEqual({ status: "ENDED", end: "canceled" });
    expect(await two.calls.ask("a-2")).toEqual({ status: "ENDED", end: "released" });
    clock.advance(20_000);
    const three = await lives.start(clock);
    expect(await three.calls.ask("a-2")).toMatchObject({ status: "HELD" });
  });

  test("waiters keep their places, and slot-seconds their sums", async () => {
    const lives = new Lives({ maxSlotPerHost: 1, maxSlotPerIp: -1, zombieTimeoutSeconds: 30 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    const slot = await one.calls.grant("a-1");
    await one.calls.wait("a-2");
    await one.calls.wait("b-1");
    clock.advance(4_000);
    await one.close();
    const two = await lives.start(clock);
    const before = await two.calls.snapshot();
    expect(before).toMatchObject({ waiting: 2, inFlight: 1 });
    expect(before?.buckets.find(({ bucket }) => bucket === "a")?.usedMs).toBeCloseTo(4_000);
    // New sessions of both buckets: the free slot goes to the bucket that has used least, and there to the first
    // arrival.
    await two.calls.wait("a-3");
    await two.calls.wait("b-2");
    await two.calls.release(slot?.slotToken ?? "");
    expect(await two.calls.ask("b-1")).toMatchObject({ status: "HELD" });
  });

  test("a waiter whose client does not return is skipped after one `collectMs`", async () => {
    const lives = new Lives({ maxSlotPerHost: 1, maxSlotPerIp: -1 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    await one.calls.grant("a-1");
    await one.calls.wait("b-1");
    await one.close();
    clock.advance(10_000);
    const two = await lives.start(clock);
    const slot = await two.calls.grant("a-1");
    await two.calls.release(slot?.slotToken ?? "");
    expect(await two.calls.grant("c-1")).toBeUndefined();
    clock.advance(1_000);
    expect(await two.calls.grant("c-1")).toBeDefined();
  });

  test("the instances from before the restart count as alive as long as their waiters keep their places", async () => {
    const lives = new Lives({ maxSlotPerHost: 1 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    await one.calls.grant("a-1");
    await one.calls.wait("b-1");
    await one.close();
    const two = await lives.start(clock);
    expect((await two.store.instances()).map(({ instance }) => instance)).toEqual(["test"]);
    clock.advance(1_000);
    expect(await two.store.instances()).toEqual([]);
  });

  test("the breaker, live limits, cooldowns and the spacing of releases are restored", async () => {
    const lives = new Lives({ maxSlotPerHost: 5, smoothReleaseIntervalMs: 700, ipCooldownSeconds: 9 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    for (let n = 0; n < 4; n++) await one.callsOf("other").report(503);
    await one.calls.report(200);
    await one.calls.limits({ slots: 3 });
    const slots = [await one.calls.grant("a-1"), await one.calls.grant("b-1"), await one.calls.grant("c-1")];
    expect(await one.calls.grant("d-1")).toBeUndefined();
    await one.calls.release(slots[0]?.slotToken ?? "");
    const two = await lives.start(clock);
    expect(await two.callsOf("other").snapshot()).toMatchObject({
      breaker: { phase: "open", code: 503, openForMs: 0 },
    });
    expect(await two.calls.grant("a-2")).toBeUndefined();
    expect(await two.calls.release(slots[1]?.slotToken ?? "")).toEqual({ endsInMs: 700 });
    expect(await two.calls.snapshot()).toMatchObject({ slots: 3, live: { slots: 3 } });
    await two.calls.unspace();
    const three = await lives.start(clock);
    expect(await three.calls.release(slots[2]?.slotToken ?? "")).toEqual({ endsInMs: 0 });
    clock.advance(8_999);
    expect(await three.calls.grant("a-2")).toBeUndefined();
  });

  test("counts in the breaker's window continue", async () => {
    const lives = new Lives({});
    const clock = new FakeClock(1e12);
    for (let life = 0; life < 4; life++) {
      const { calls } = await lives.start(clock);
      await calls.report(500);
      expect((await calls.snapshot())?.breaker.phase).toBe(life === 3 ? "open" : "closed");
    }
  });

  test("the capacity that users of a named semaphore chose stays while one of them is left", async () => {
    const lives = new Lives({ maxSlotPerHost: 2 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    expect(await one.callsOf("sem:x").ask("a-1", 1)).toMatchObject({ status: "HELD" });
    const two = await lives.start(clock);
    expect(await two.callsOf("sem:x").snapshot()).toMatchObject({ slots: 1, inFlight: 1 });
    expect(await two.callsOf("sem:x").ask("a-2", 7)).toEqual({ status: "WAIT" });
    clock.advance(31_000);
    const three = await lives.start(clock);
    expect(await three.callsOf("sem:x").ask("b-1", 7)).toMatchObject({ status: "HELD" });
    expect(await three.callsOf("sem:x").snapshot()).toMatchObject({ slots: 7 });
  });

  test("fences of a forgotten host are not issued again", async () => {
    const lives = new Lives({ maxSlotPerHost: 1 });
    const late = new FakeClock(1e12);
    const one = await lives.start(late);
    const slot = await one.calls.grant("a-1");
    await one.calls.release(slot?.slotToken ?? "");
    late.advance(600_000);
    expect(await one.store.cleanup({ idleMs: 90_000 })).toMatchObject({ hosts: 1 });
    await one.close();
    // The second restart reads the file that the first one wrote.
    await (await lives.start(new FakeClock(1e12 - 3_600_000))).close();
    const three = await lives.start(new FakeClock(1e12 - 3_600_000));
    expect((await three.calls.grant("b-1"))?.fence).toBeGreaterThan(slot?.fence ?? 0);
  });

  test("signing keys stay the same", async () => {
    const lives = new Lives({});
    const clock = new FakeClock(1e12);
    const keys = [await lives.start(clock), await lives.start(clock), await lives.start(clock)].map((l) => l.tokenKeys);
    expect(keys).toEqual([["key-1"], ["key-1"], ["key-1"]]);
  });

  test("a clock that was set back extends no lease, and fences still grow", async () => {
    const lives = new Lives({ maxSlotPerHost: 1, zombieTimeoutSeconds: 30 });
    const slot = await (await lives.start(new FakeClock(1e12))).calls.grant("a-1");
    const clock = new FakeClock(1e12 - 3_600_000);
    const two = await lives.start(clock);
    expect(await two.calls.grant("a-1")).toEqual(slot);
    clock.advance(30_000);
    const next = await two.calls.grant("b-1");
    expect(next?.fence).toBeGreaterThan(slot?.fence ?? 0);
  });

  test.each([
    { set: "back by an hour", changedMs: -3_600_000 },
    { set: "ahead by an hour", changedMs: 3_600_000 },
  ])("while the machine runs, a clock that was set $set changes no lease (RESUME2)", async ({ changedMs }) => {
    const lives = new Lives({ maxSlotPerHost: 1, zombieTimeoutSeconds: 30 });
    const one = await lives.start(new FakeClock(1e12), { boot: "b", ms: 5_000 });
    const slot = await one.calls.grant("a-1");
    const clock = new FakeClock(1e12 + 10_000 + changedMs);
    const two = await lives.start(clock, { boot: "b", ms: 15_000 });
    expect(await two.calls.grant("a-1")).toEqual({ ...slot, leaseMs: 20_000 });
    clock.advance(19_999);
    expect(await two.calls.grant("b-1")).toBeUndefined();
    // The next process starts at the true time again.
    const three = await lives.start(new FakeClock(1e12 + 29_999), { boot: "b", ms: 34_999 });
    expect(await three.calls.grant("b-1")).toBeUndefined();
  });

  test("after a start of the machine the clock decides, but the time never goes back (RESUME1, RESUME3)", async () => {
    const lives = new Lives({ maxSlotPerHost: 1, zombieTimeoutSeconds: 30 });
    const one = await lives.start(new FakeClock(1e12), { boot: "b", ms: 5_000 });
    const slot = await one.calls.grant("a-1");
    const two = await lives.start(new FakeClock(1e12 - 1), { boot: "c", ms: 100 });
    expect(await two.calls.grant("a-1")).toEqual(slot);
    // An uptime that contradicts the journal does not count.
    const three = await lives.start(new FakeClock(1e12 + 10_000), { boot: "c", ms: 50 });
    expect(await three.calls.grant("a-1")).toEqual({ ...slot, leaseMs: 20_000 });
    const four = await lives.start(new FakeClock(1e12 + 30_000), { boot: "d", ms: 1 });
    expect(await four.calls.grant("b-1")).toBeDefined();
  });

  test("a damaged journal is refused with the position of the damage, and not changed", async () => {
    const lives = new Lives({ maxSlotPerHost: 5, maxSlotPerIp: -1 });
    const clock = new FakeClock(1e12);
    const { calls } = await lives.start(clock);
    for (let n = 0; n < 5; n++) await calls.grant(`a-${n}`);
    const sound = lives.disk.content as Uint8Array;
    for (let at = 0; at < sound.length; at += 7) {
      const damaged = Buffer.from(sound);
      damaged[at] = (damaged[at] as number) ^ 1;
      lives.disk.content = damaged;
      await expect(lives.start(clock)).rejects.toThrow(JournalCorruptError);
      expect(lives.disk.content).toBe(damaged);
    }
  });

  test.each([
    [
      "slotkeeper-journal 3\n=1 …",
      JournalFormatError,
      "a newer version of slotkeeper (format 3, this one reads up to 2)",
    ],
    [
      "slotkeeper-journal 1\n=1 …",
      JournalFormatError,
      "an older version of slotkeeper (format 1, this one reads only 2)",
    ],
    ["a shopping list\n", JournalPathError, "the file is not a slotkeeper journal"],
  ])("a file that begins with %j is refused with a matching message, and not changed", async (text, kind, words) => {
    const lives = new Lives({ maxSlotPerHost: 5, maxSlotPerIp: -1 });
    const content = Buffer.from(text);
    lives.disk.content = content;
    const refused = await lives.start(new FakeClock(1e12)).catch((error: unknown) => error as Error);
    expect(refused).toBeInstanceOf(kind);
    expect(refused).toMatchObject({ message: expect.stringContaining(words) });
    expect((refused as Error).message).not.toMatch(/cut|damaged/);
    expect(lives.disk.content).toBe(content);
  });
});
