import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const tokens = (limit: number, perMs = 1_000) => ({ budgets: { tokens: { limit, perMs } } });

describe("pausing", () => {
  test("grants nothing until resume, keeps who waits, and holders keep their slots", async () => {
    const limiter = world().limiter({ slots: 2, ...tokens(10) });
    const held = await limiter.acquire();
    limiter.pause();
    expect([limiter.paused, limiter.locked, limiter.tryAcquire()]).toEqual([true, true, undefined]);
    world().pass(limiter, "a");
    world().pass(limiter, "b");
    await world().clock.advanceAsync(10_000);
    expect([await world().granted(), held.release(), world().clock.pending]).toEqual(["", true, 0]);
    limiter.resume();
    expect([await world().granted(), limiter.paused]).toEqual(["a b", false]);
  });

  test("timeouts of waiters run on", async () => {
    const limiter = world().limiter({ slots: 1 });
    limiter.pause();
    const waiter = world().ask(limiter, "a", { timeoutMs: 50 });
    await world().clock.advanceAsync(50);
    expect(waiter.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
  });

  test("with refuse, newcomers are refused, and those who wait already go on waiting", async () => {
    const limiter = world().limiter({ slots: 1, name: "api" });
    const held = await limiter.acquire();
    world().pass(limiter, "waiter");
    limiter.pause({ refuse: true });
    const refused = await limiter.acquire().catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "QUEUE_FULL", retryable: true });
    expect(String(refused)).toContain('No caller may wait: limiter "api" is paused (');
    held.release();
    expect(await world().granted()).toBe("");
    limiter.resume();
    expect(await world().granted()).toBe("waiter");
  });
});

describe("clearing", () => {
  test("rejects who waits, each with the reason, and the limiter stays usable", async () => {
    const limiter = world().limiter({ slots: 1 });
    const held = await limiter.acquire();
    const waiters = ["a", "b", "c"].map((label) => world().ask(limiter, label));
    const reason = new Error("not needed any more");
    limiter.clear(reason);
    await settled();
    expect(waiters.map((waiter) => waiter.reason)).toEqual([reason, reason, reason]);
    expect([limiter.waiting, limiter.stats().aborted]).toEqual([0, 3]);
    world().pass(limiter, "next");
    held.release();
    expect(await world().granted()).toBe("next");
  });

  test("without a reason rejects with an AbortError", async () => {
    const limiter = world().limiter({ slots: 1 });
    const held = await limiter.acquire();
    const waiter = world().ask(limiter, "a");
    limiter.clear();
    await settled();
    expect(waiter.reason).toMatchObject({ name: "AbortError" });
    held.release();
  });
});

describe("updating", () => {
  test("a changed limit keeps what was charged, and refills at the new rate", async () => {
    const limiter = world().limiter(tokens(100));
    (await limiter.acquire({ cost: { tokens: 100 } })).release();
    world().clock.advance(100);
    limiter.update({ budgets: { tokens: { limit: 200 } } });
    expect(limiter.stats().budgets.tokens).toEqual({ limit: 200, perMs: 1_000, burst: 200, available: 110 });
    (await limiter.acquire({ cost: { tokens: 110 } })).release();
    world().pass(limiter, "next", { cost: { tokens: 100 } });
    await world().clock.advanceAsync(500);
    expect(world().grants).toEqual(["next 600"]);
  });

  test("a debt stays a debt, and a strict budget its window", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    const slot = await limiter.acquire({ cost: { tokens: 10 } });
    slot.settle({ tokens: 15 });
    slot.release();
    limiter.update({ budgets: { tokens: { limit: 20 } } });
    expect(limiter.stats().budgets.tokens?.available).toBe(5);
    limiter.update({ budgets: { tokens: { strict: false } } });
    expect(limiter.stats().budgets.tokens?.available).toBe(5);
    limiter.update({ budgets: { tokens: { strict: true, limit: 10 } } });
    expect(limiter.stats().budgets.tokens?.available).toBe(-5);
  });

  test("a budget that becomes strict counts a window, and one that is no longer strict is refilled continuously", async () => {
    const limiter = world().limiter(tokens(10));
    limiter.update({ budgets: { tokens: { strict: true } } });
    (await limiter.acquire({ cost: { tokens: 10 } })).release();
    world().clock.advance(900);
    expect(limiter.stats().budgets.tokens?.available).toBe(0);
    world().clock.advance(100);
    expect(limiter.stats().budgets.tokens?.available).toBe(10);
    limiter.update({ budgets: { tokens: { strict: false } } });
    (await limiter.acquire({ cost: { tokens: 10 } })).release();
    world().clock.advance(500);
    expect(limiter.stats().budgets.tokens?.available).toBe(5);
  });

  test("a budget that is given as undefined stays as it is", () => {
    const limiter = world().limiter(tokens(10));
    limiter.update({ budgets: { tokens: undefined } });
    expect(limiter.stats().budgets.tokens?.limit).toBe(10);
  });

  test("a changed limit of a strict budget leaves each charge its time", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    (await limiter.acquire({ cost: { tokens: 10 } })).release();
    world().clock.advance(600);
    limiter.update({ budgets: { tokens: { limit: 20 } } });
    world().clock.advance(400);
    expect(limiter.stats().budgets.tokens?.available).toBe(20);
  });

  test("more slots serve who waits at once; fewer evict no holder", async () => {
    const limiter = world().limiter({ slots: 1 });
    const slots = ["a", "b", "c"].map((label) => world().ask(limiter, label));
    await settled();
    limiter.update({ slots: 3 });
    expect([await world().granted(), limiter.capacity]).toEqual(["a b c", 3]);
    limiter.update({ slots: 1 });
    world().pass(limiter, "d");
    expect([limiter.inUse, limiter.available]).toEqual([3, 0]);
    for (const slot of slots) slot.value.release();
    expect(await world().granted()).toBe("a b c d");
  });

  test("a waiter that could never be paid any more is refused with a RangeError", async () => {
    const limiter = world().limiter(tokens(100));
    (await limiter.acquire({ cost: { tokens: 100 } })).release();
    const waiter = world().ask(limiter, "big", { cost: { tokens: 50 } });
    world().pass(limiter, "small", { cost: { tokens: 1 } });
    limiter.update({ budgets: { tokens: { limit: 20 } } });
    await settled();
    expect(String(waiter.reason)).toMatch(
      /RangeError: Expected `cost.tokens` to be at most 20 under the new limits, got 50/,
    );
    await world().clock.advanceAsync(10_000);
    expect(await world().granted()).toBe("small");
  });

  test("a new budget starts full, and who waits pays for it, too", async () => {
    const limiter = world().limiter<"tokens" | "requests">(tokens(10));
    (await limiter.acquire({ cost: { tokens: 10 } })).release();
    world().pass(limiter, "waiter", { cost: { tokens: 1 } });
    limiter.update({ budgets: { requests: { limit: 5, perMs: 1_000 } } });
    await world().clock.advanceAsync(100);
    expect([await world().granted(), limiter.stats().budgets.requests?.available]).toEqual(["waiter", 4]);
  });

  test("limits per key change for all keys", async () => {
    const limiter = world().limiter({ slots: 9, perKey: { slots: 1, ...tokens(10) } });
    const held = await limiter.acquire({ key: "a", cost: { tokens: 8 } });
    const waiters = ["1", "2"].map((label) => world().ask(limiter, label, { key: "a", cost: { tokens: 5 } }));
    limiter.update({ perKey: { slots: 2, budgets: { tokens: { limit: 20 } } } });
    await settled();
    expect(await world().granted()).toBe("1");
    held.release();
    expect(await world().granted()).toBe("1 2");
    for (const waiter of waiters) waiter.value.release();
  });

  test("what is wrong is refused before anything changes", () => {
    const limiter = world().limiter({ slots: 2, ...tokens(10) });
    expect(() => limiter.update({ slots: 5, budgets: { tokens: { limit: -1 } } })).toThrow(/`budgets.tokens.limit`/);
    expect(() => limiter.update({ level: 2 } as never)).toThrow(/Unknown option `level`/);
    expect(() => limiter.update({ perKey: { slots: 1 } })).toThrow(/`perKey`/);
    expect(() => limiter.update({ ageAfterMs: 0 })).toThrow(RangeError);
    expect([limiter.capacity, limiter.stats().budgets.tokens?.limit]).toEqual([2, 10]);
  });
});

describe("invalid costs and options", () => {
  test("one default above its burst is enough to require a cost", async () => {
    const limiter = world().limiter({
      budgets: { requests: { limit: 5, perMs: 1_000 }, money: { limit: 0.5, perMs: 1_000 } },
    });
    await expect(limiter.acquire()).rejects.toThrow("`cost.money`");
    (await limiter.acquire({ cost: { money: 0.5 } })).release();
  });

  test("a default above the burst of a key requires a cost with a key, and none without", async () => {
    const limiter = world().limiter({ slots: 1, perKey: { budgets: { money: { limit: 0.5, perMs: 1_000 } } } });
    await expect(limiter.acquire({ key: "a" })).rejects.toThrow("`cost.money`");
    (await limiter.acquire()).release();
  });

  test("an unknown budget is refused with the names of those that exist", () => {
    const limiter = world().limiter({
      budgets: { requests: { limit: 5, perMs: 1_000 }, money: { limit: 5, perMs: 1_000 } },
    });
    expect(() => limiter.learn("token" as never, { remaining: 1 })).toThrow(
      "`budget` to be one of requests, money, got",
    );
    const bare = world().limiter({ slots: 1 });
    expect(() => bare.learn("token", { remaining: 1 })).toThrow("`budget` to be one of no budgets, got");
  });

  test.each([
    [{ budgets: 5 }, "`budgets`"],
    [{ budgets: { tokens: 5 } }, "`budgets.tokens`"],
    [{ perKey: { budgets: 5 } }, "`perKey.budgets`"],
    [{ perKey: { budgets: { tokens: 5 } } }, "`perKey.budgets.tokens`"],
  ])("%o is refused with the name of the field", (options, field) => {
    expect(() => world().limiter(options as never)).toThrow(field);
  });
});
