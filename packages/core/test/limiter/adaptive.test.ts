import type { Limiter, LimiterSlot } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();

/** Takes every slot there is while another caller waits, and answers all with that outcome. */
async function answerAll(limiter: Limiter, outcome: "ok" | "overload"): Promise<void> {
  const slots: LimiterSlot[] = [];
  for (let slot = limiter.tryAcquire(); slot; slot = limiter.tryAcquire()) slots.push(slot);
  const controller = new AbortController();
  limiter.acquire({ signal: controller.signal }).catch(() => {});
  controller.abort();
  await settled(2);
  for (const slot of slots) slot.release({ outcome });
}

describe("adaptive slots", () => {
  test("begin at `start` and rise by one after a window of answers while the limit was binding (ADAPT1)", async () => {
    const limiter = world().limiter({ slots: 20, adaptive: { min: 2, start: 8 } });
    expect(limiter.capacity).toBe(8);
    await answerAll(limiter, "ok");
    expect(limiter.capacity).toBe(9);
    await answerAll(limiter, "ok");
    expect(limiter.capacity).toBe(10);
  });

  test("do not rise while no caller had to wait for a slot", async () => {
    const limiter = world().limiter({ slots: 20, adaptive: { min: 2, start: 4 } });
    for (let i = 0; i < 100; i++) await limiter.run(() => 1);
    expect(limiter.capacity).toBe(4);
  });

  test("fall by a tenth on an overload, once for all requests of one time (ADAPT2, ADAPT3)", async () => {
    const limiter = world().limiter({ slots: 40, adaptive: { min: 2, start: 30 } });
    await answerAll(limiter, "overload");
    expect([limiter.capacity, limiter.stats().overloads]).toEqual([27, 30]);
    await answerAll(limiter, "overload");
    expect(limiter.capacity).toBe(24);
  });

  test("stay between `min` and `slots` (ADAPT5)", async () => {
    const limiter = world().limiter({ slots: 5, adaptive: { min: 2, start: 4 } });
    for (let i = 0; i < 20; i++) await answerAll(limiter, "ok");
    expect(limiter.capacity).toBe(5);
    for (let i = 0; i < 20; i++) await answerAll(limiter, "overload");
    expect(limiter.capacity).toBe(2);
    limiter.update({ slots: 1 });
    expect(limiter.capacity).toBe(1);
  });

  test("try a refused number again only after many good answers (ADAPT4)", async () => {
    const limiter = world().limiter({ slots: 40, adaptive: { min: 2, start: 10 } });
    await answerAll(limiter, "overload");
    let answers = 0;
    for (; limiter.capacity < 10; answers += limiter.capacity) await answerAll(limiter, "ok");
    expect(answers).toBeGreaterThan(240);
    expect(answers).toBeLessThan(320);
  });

  test("an answer that is ignored says nothing, and neither does an expired slot", async () => {
    const limiter = world().limiter({ slots: 8, ttlMs: 10, adaptive: { min: 1, start: 1 } });
    for (let i = 0; i < 5; i++) {
      const slot = await limiter.acquire();
      const waiter = world().ask(limiter, "w");
      slot.release({ outcome: "ignore" });
      await settled();
      expect(waiter.status).toBe("fulfilled");
      world().clock.advance(10);
    }
    expect(limiter.capacity).toBe(1);
  });

  test("retryAfterMs holds all callers back until then, without adaptive slots too", async () => {
    for (const adaptive of [{ min: 1, start: 5 }, undefined]) {
      const limiter = world().limiter({ slots: 5, adaptive, perKey: {} });
      world().grants.length = 0;
      const startedAt = world().clock.now() - 1_000_000;
      const slot = await limiter.acquire({ key: "a" });
      slot.release({ outcome: "overload", retryAfterMs: 500 });
      world().pass(limiter, "b", { key: "b" });
      expect(limiter.tryAcquire()).toBeUndefined();
      await world().clock.advanceAsync(500);
      expect(world().grants).toEqual([`b ${startedAt + 500}`]);
      await world().clock.advanceAsync(100);
    }
  });

  test("release refuses outcomes that it does not know", async () => {
    const limiter = world().limiter({ slots: 1 });
    const slot = await limiter.acquire();
    expect(() => slot.release({ outcome: "bad" as never })).toThrow(
      /`outcome` to be one of ok, overload, ignore, got "bad"/,
    );
    expect(() => slot.release({ retryAfterMs: 5 })).toThrow(/overload if `retryAfterMs` is given/);
    expect(() => slot.release({ outcome: "overload", retryAfterMs: -1 })).toThrow(RangeError);
    expect(slot.release()).toBe(true);
  });
});

describe("run and overload", () => {
  test("isOverload sees the value, since fetch returns a 429", async () => {
    const limiter = world().limiter({ slots: 10, adaptive: { min: 1, start: 10 } });
    const isOverload = ({ value }: { value?: { status: number } }) => value?.status === 429 && { retryAfterMs: 100 };
    expect(await limiter.run(() => ({ status: 429 }), { isOverload })).toEqual({ status: 429 });
    expect([limiter.capacity, limiter.tryAcquire()]).toEqual([9, undefined]);
    world().clock.advance(100);
    await limiter.run(() => ({ status: 200 }), { isOverload });
    expect([limiter.capacity, limiter.stats().overloads]).toEqual([9, 1]);
  });

  test("isOverload sees the error; other failures say nothing about the capacity", async () => {
    const limiter = world().limiter({ slots: 10, adaptive: { min: 1, start: 10 } });
    const isOverload = ({ error }: { error?: unknown }) => error === "busy";
    const fail = (reason: string) => limiter.run(() => Promise.reject(reason), { isOverload });
    await expect(fail("busy")).rejects.toBe("busy");
    await expect(fail("typo")).rejects.toBe("typo");
    expect([limiter.capacity, limiter.stats().overloads, limiter.inUse]).toEqual([9, 1, 0]);
  });

  test("an isOverload that throws fails the run, and the slot goes back", async () => {
    const limiter = world().limiter({ slots: 1 });
    const broken = limiter.run(() => 1, {
      isOverload: () => {
        throw new Error("broken");
      },
    });
    await expect(broken).rejects.toThrow("broken");
    expect(limiter.inUse).toBe(0);
  });

  test("work that throws at once gives the slot back", async () => {
    const limiter = world().limiter({ slots: 1 });
    const failed = limiter.run(() => {
      throw new Error("at once");
    });
    await expect(failed).rejects.toThrow("at once");
    expect([limiter.inUse, await limiter.wrap((a: number, b: number) => a + b)(1, 2)]).toEqual([0, 3]);
  });
});
