import type { HostPolicy } from "@slotkeeper/queue";
import { JournalCorruptError, openJournaledMemoryStore } from "@slotkeeper/server/journal";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { MemoryDisk } from "./memory-disk.ts";
import { Calls, HOST, policyOf } from "./store-calls.ts";

/** A store that can be restarted: each life begins where the file of the one before ended. */
class Lives {
  readonly policy: HostPolicy;
  readonly disk = new MemoryDisk();
  #lives = 0;

  constructor(config: Parameters<typeof policyOf>[0]) {
    this.policy = policyOf({ maxWaitersPerHost: 0, ...config });
  }

  async start(clock: FakeClock) {
    const life = ++this.#lives;
    let made = 0;
    const opened = await openJournaledMemoryStore({
      path: "journal",
      disk: this.disk,
      clock,
      newToken: () => `token-${life}-${made++}`,
      newTokenKey: () => `key-${life}`,
    });
    return { ...opened, calls: new Calls(opened.store, this.policy), policy: this.policy };
  }
}

describe("after a restart", () => {
  test("a held slot is held, by the same token, and frees at the same moment", async () => {
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
    expect(await two.store.renew({ slotToken: slot?.slotToken ?? "" })).toBeUndefined();
  });

  test("a slot can be renewed and released before its host was asked for again", async () => {
    const lives = new Lives({ maxSlotPerHost: 2, zombieTimeoutSeconds: 30, maxHoldSeconds: 40 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    const [a, b] = [await one.calls.grant("a-1"), await one.calls.grant("b-1")];
    clock.advance(20_000);
    const two = await lives.start(clock);
    expect(await two.store.renew({ slotToken: a?.slotToken ?? "" })).toEqual({ leaseMs: 20_000 });
    const bare = {
      host: undefined,
      policy: undefined,
      hitAgoMs: undefined,
      status: undefined,
      uncollectedBy: undefined,
    };
    expect(await two.store.release({ slotToken: b?.slotToken ?? "", ...bare })).toMatchObject({
      isReleased: true,
      endsInMs: 0,
    });
    const three = await lives.start(clock);
    expect((await three.store.snapshot()).hosts[0]?.leases).toMatchObject([{ slot: a?.fence, endsInMs: 20_000 }]);
  });

  test("a slot that an earlier life may have delivered is not taken for uncollected", async () => {
    const lives = new Lives({ maxSlotPerHost: 1 });
    const clock = new FakeClock(1e12);
    const slot = await (await lives.start(clock)).calls.grant("a-1");
    const two = await lives.start(clock);
    expect(await two.calls.grant("a-1")).toEqual(slot);
    expect(await two.calls.release(slot?.slotToken ?? "", { uncollectedBy: "test" })).toEqual({ isReleased: false });
    expect(await two.calls.grant("b-1")).toBeUndefined();
  });

  test("ended sessions stay ended until their deadline", async () => {
    const lives = new Lives({ maxSlotPerHost: 5, maxSlotPerIp: 0 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    await one.calls.withdraw("a-1");
    const slot = await one.calls.grant("a-2");
    await one.calls.release(slot?.slotToken ?? "");
    const two = await lives.start(clock);
    const verdicts = await two.calls.tryAcquire("a-1", "a-2");
    expect(verdicts).toEqual([
      { status: "ENDED", end: "canceled" },
      { status: "ENDED", end: "released" },
    ]);
    clock.advance(20_000);
    const three = await lives.start(clock);
    expect((await three.store.snapshot()).sessions).toBe(0);
  });

  test("the breaker, live limits, cooldowns and the spacing of releases are as they were", async () => {
    const lives = new Lives({ maxSlotPerHost: 5, smoothReleaseIntervalMs: 700, ipCooldownSeconds: 9 });
    const clock = new FakeClock(1e12);
    const one = await lives.start(clock);
    const { policy } = lives;
    for (let n = 0; n < 4; n++) await one.store.report({ host: "other", policy, status: 503 });
    await one.store.operate({ kind: "limits", host: HOST, policy, limits: { slots: 3 } });
    const slots = [await one.calls.grant("a-1"), await one.calls.grant("b-1"), await one.calls.grant("c-1")];
    expect(await one.calls.grant("d-1")).toBeUndefined();
    await one.calls.release(slots[0]?.slotToken ?? "");
    const two = await lives.start(clock);
    expect(await two.store.checkThrottle({ host: "other", policy })).toMatchObject({
      breaker: { phase: "open", code: 503, openForMs: 0 },
    });
    expect(await two.calls.tryAcquire("a-2")).toMatchObject([
      { status: "IP_TOO_MANY", blockedBy: "cooldown", retryInMs: 9000 },
    ]);
    expect(await two.calls.release(slots[1]?.slotToken ?? "")).toMatchObject({ endsInMs: 700 });
    expect((await two.store.snapshot()).hosts.find(({ host }) => host === HOST)).toMatchObject({
      slots: 3,
      live: { slots: 3 },
    });
    await two.store.cleanup({ waiterTtlMs: 1000, resetSmoothing: true });
    const three = await lives.start(clock);
    expect(await three.calls.release(slots[2]?.slotToken ?? "")).toMatchObject({ endsInMs: 0 });
  });

  test("counts inside the breaker's window go on", async () => {
    const lives = new Lives({});
    const clock = new FakeClock(1e12);
    const { policy } = lives;
    for (let life = 0; life < 4; life++) {
      const { store } = await lives.start(clock);
      const view = await store.report({ host: "h", policy, status: 500 });
      expect(view.phase).toBe(life === 3 ? "open" : "closed");
    }
  });

  test("the capacity that users of a named semaphore fixed holds while one of them does", async () => {
    const lives = new Lives({ maxSlotPerHost: 2 });
    const clock = new FakeClock(1e12);
    const { policy } = lives;
    const waiter = { bucket: "a", weight: 1, arrivedAt: 0, ttlMs: 20_000, openMs: 0, isGrantable: true };
    const want = (session: string, slots: number) => ({
      host: "sem:x",
      instance: "test",
      policy: { ...policy, slots, slotsPerBucket: Number.POSITIVE_INFINITY },
      isSemaphore: true,
      waiters: [{ ...waiter, session }],
    });
    const one = await lives.start(clock);
    await one.store.tryAcquire(want("s1", 1));
    const two = await lives.start(clock);
    expect(await two.store.checkThrottle({ host: "sem:x", policy })).toMatchObject({ capacity: 1 });
    expect((await two.store.tryAcquire(want("s2", 7))).verdicts).toMatchObject([{ status: "WAIT" }]);
    clock.advance(31_000);
    const three = await lives.start(clock);
    expect(await three.store.checkThrottle({ host: "sem:x", policy })).toMatchObject({ capacity: undefined });
  });

  test("signing keys are the same in every life", async () => {
    const lives = new Lives({});
    const clock = new FakeClock(1e12);
    const keys = [await lives.start(clock), await lives.start(clock), await lives.start(clock)].map((l) => l.tokenKeys);
    expect(keys).toEqual([["key-1"], ["key-1"], ["key-1"]]);
  });

  test("a clock that was set back lengthens no lease, and fences grow all the same", async () => {
    const lives = new Lives({ maxSlotPerHost: 1, zombieTimeoutSeconds: 30 });
    const slot = await (await lives.start(new FakeClock(1e12))).calls.grant("a-1");
    const clock = new FakeClock(1e12 - 3_600_000);
    const two = await lives.start(clock);
    expect(await two.calls.grant("a-1")).toEqual(slot);
    clock.advance(30_000);
    const next = await two.calls.grant("b-1");
    expect(next?.fence).toBeGreaterThan(slot?.fence ?? 0);
  });

  test("a damaged journal is refused with the place of the damage, and left alone", async () => {
    const lives = new Lives({ maxSlotPerHost: 5, maxSlotPerIp: 0 });
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
});
