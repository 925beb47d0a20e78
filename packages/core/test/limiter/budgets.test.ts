import { Limiter } from "slotkeeper/limiter";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const tokens = (limit: number, perMs = 1_000) => ({ budgets: { tokens: { limit, perMs } } });

describe("a budget", () => {
  test("is refilled continuously, and saves up to its burst", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 10, perMs: 1_000, burst: 3 } } });
    for (let i = 0; i < 6; i++) world().pass(limiter, `${i}`);
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["0 0", "1 0", "2 0", "3 100", "4 200", "5 300"]);
    await world().clock.advanceAsync(60_000);
    expect(limiter.stats().budgets.requests?.available).toBe(3);
  });

  test("with strict, at most `limit` are granted in any window of `perMs` (BUDGET2)", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 3, perMs: 1_000, strict: true } } });
    world().pass(limiter, "0");
    await world().clock.advanceAsync(900);
    for (let i = 1; i < 7; i++) world().pass(limiter, `${i}`);
    await world().clock.advanceAsync(5_000);
    expect(world().grants).toEqual(["0 0", "1 900", "2 900", "3 1000", "4 1900", "5 1900", "6 2000"]);
  });

  test("with strict, each of many charges leaves the window at its own time", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 1_000, perMs: 100, strict: true } } });
    const costs: number[] = [];
    for (let i = 0; i < 400; i++) {
      costs.push(1 + (i % 7));
      (await limiter.acquire({ cost: { requests: costs.at(-1) } })).release();
      const inWindow = costs.slice(-100).reduce((sum, cost) => sum + cost);
      expect(limiter.stats().budgets.requests?.available).toBe(1_000 - inWindow);
      world().clock.advance(1);
    }
  });

  test("with strict, fractions that have left the window leave no rounding error", async () => {
    const limiter = world().limiter({ budgets: { money: { limit: 0.6, perMs: 100, strict: true } } });
    for (const money of [0.1, 0.2, 0.3]) {
      (await limiter.acquire({ cost: { money } })).release();
      world().clock.advance(1);
    }
    world().clock.advance(100);
    expect(limiter.stats().budgets.money?.available).toBe(0.6);
  });

  test("fractions of units and of milliseconds add up", async () => {
    const limiter = world().limiter({ budgets: { money: { limit: 0.7, perMs: 7, burst: 0.1 } } });
    for (let i = 0; i < 100; i++) world().pass(limiter, `${i}`, { cost: { money: 0.1 } });
    await world().clock.advanceAsync(99);
    expect(world().grants.at(-1)).toBe("99 99");
    await expect(limiter.acquire()).rejects.toThrow(/`cost.money` to be a number from 0 to 0.1, got 1/);
  });
});

describe("settling", () => {
  test("below the estimate gives the rest back at once, and serves who waits for it", async () => {
    const limiter = world().limiter(tokens(100));
    const slot = await limiter.acquire({ cost: { tokens: 80 } });
    const waiter = world().ask(limiter, "waiter", { cost: { tokens: 60 } });
    expect(slot.settle({ tokens: 30 })).toBe(true);
    expect(await world().granted()).toBe("waiter");
    expect(limiter.stats().budgets.tokens?.available).toBe(10);
    slot.release();
    waiter.value.release();
  });

  test("above the estimate charges now, into debt that is paid back before anything is granted (BUDGET3)", async () => {
    const limiter = world().limiter(tokens(100));
    const slot = await limiter.acquire({ cost: { tokens: 50 } });
    expect(slot.settle({ tokens: 250 })).toBe(true);
    expect(limiter.stats().budgets.tokens?.available).toBe(-150);
    slot.release();
    world().pass(limiter, "next", { cost: { tokens: 10 } });
    await world().clock.advanceAsync(1_600);
    expect(world().grants).toEqual(["next 1600"]);
  });

  test("counts once, and only before release or expiry", async () => {
    const limiter = world().limiter({ ...tokens(100), ttlMs: 50 });
    const slot = await limiter.acquire({ cost: { tokens: 10 } });
    expect([slot.settle({ tokens: 5 }), slot.settle({ tokens: 0 })]).toEqual([true, false]);
    slot.release();
    const late = await limiter.acquire({ cost: { tokens: 10 } });
    late.release();
    expect(late.settle({ tokens: 0 })).toBe(false);
    const expired = await limiter.acquire({ cost: { tokens: 10 } });
    world().clock.advance(50);
    expect([expired.settle({ tokens: 0 }), limiter.stats().budgets.tokens?.available]).toEqual([false, 80]);
  });

  test("refuses what it cannot be", async () => {
    const limiter = world().limiter(tokens(100));
    const slot = await limiter.acquire();
    expect(() => slot.settle({ tokens: -1 })).toThrow(/`settle.tokens`.*got -1/);
    expect(() => slot.settle({ token: 1 } as never)).toThrow(/Unknown option `settle.token`/);
    expect(() => slot.settle(5 as never)).toThrow(TypeError);
    expect([slot.settle({}), slot.release()]).toEqual([true, true]);
  });

  test("reaches the key's budget and its share, too", async () => {
    const limiter = world().limiter({ slots: 1, perKey: tokens(100) });
    (await limiter.acquire({ key: "b", cost: { tokens: 20 } })).release();
    const slot = await limiter.acquire({ key: "a", cost: { tokens: 90 } });
    slot.settle({ tokens: 10 });
    world().pass(limiter, "b", { key: "b" });
    world().pass(limiter, "a", { key: "a", cost: { tokens: 90 } });
    slot.release();
    expect(await world().granted()).toBe("a b");
  });

  test("of a strict budget shrinks the entry at its grant time, if that is still in the window", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    const slot = await limiter.acquire({ cost: { tokens: 8 } });
    world().clock.advance(500);
    slot.settle({ tokens: 2 });
    expect(limiter.tryAcquire({ cost: { tokens: 8 } })?.release()).toBe(true);
    world().clock.advance(500);
    expect([limiter.stats().budgets.tokens?.available, slot.release()]).toEqual([2, true]);
    const late = await limiter.acquire({ cost: { tokens: 2 } });
    world().clock.advance(1_000);
    late.settle({ tokens: 0 });
    expect([limiter.stats().budgets.tokens?.available, late.release()]).toEqual([10, true]);
  });

  test("of a strict budget changes no other entry", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    const old = await limiter.acquire({ cost: { tokens: 2 } });
    world().clock.advance(600);
    const next = await limiter.acquire({ cost: { tokens: 3 } });
    next.settle({ tokens: 1 });
    expect(limiter.stats().budgets.tokens?.available).toBe(7);
    world().clock.advance(400);
    old.settle({ tokens: 0 });
    expect([limiter.stats().budgets.tokens?.available, old.release(), next.release()]).toEqual([9, true, true]);
  });

  test("counts for the share of the key: more at the time of the settlement, less at the time of the charge", async () => {
    const limiter = world().limiter({ slots: 1, perKey: tokens(100) });
    const charge = async (key: string, cost: number) => limiter.acquire({ key, cost: { tokens: cost } });
    (await charge("b", 30)).release();
    const raised = await charge("a", 0);
    world().clock.advance(900);
    raised.settle({ tokens: 20 });
    // 20 now weigh more than 30 almost a window ago.
    world().pass(limiter, "a", { key: "a", cost: { tokens: 0 } });
    world().pass(limiter, "b", { key: "b", cost: { tokens: 0 } });
    raised.release();
    expect(await world().granted()).toBe("b a");
  });

  test("below the estimate takes the share back at the weight of the charge", async () => {
    const limiter = world().limiter({ slots: 2, perKey: tokens(100) });
    const charge = async (key: string, cost: number) => limiter.acquire({ key, cost: { tokens: cost } });
    const lowered = await charge("a", 30);
    world().clock.advance(1_000);
    (await charge("a", 10)).release();
    const held = await charge("b", 15);
    lowered.settle({ tokens: 20 });
    // By weight: a has 20 + 10 e, b has 15 e, which is less.
    world().pass(limiter, "a", { key: "a", cost: { tokens: 0 } });
    world().pass(limiter, "b", { key: "b", cost: { tokens: 0 } });
    held.release();
    expect(await world().granted()).toBe("b a");
    lowered.release();
  });

  test("gives back what the bucket still misses, not what has flowed in since", async () => {
    const limiter = world().limiter(tokens(100));
    const slot = await limiter.acquire({ cost: { tokens: 100 } });
    world().clock.advance(900);
    (await limiter.acquire({ cost: { tokens: 90 } })).release();
    slot.settle({ tokens: 0 });
    // With nothing charged at first, the second request would have left 10.
    expect([limiter.stats().budgets.tokens?.available, slot.release()]).toEqual([10, true]);
  });

  test("late refunds of many small requests never give back more than was missing", async () => {
    const limiter = world().limiter(tokens(1_000, 1_000));
    const slots = [];
    for (let i = 0; i < 400; i++) {
      slots.push(await limiter.acquire({ cost: { tokens: 3 } }));
      world().clock.advance(1);
    }
    for (const slot of slots) slot.settle({ tokens: 0 });
    const { available = Number.NaN } = limiter.stats().budgets.tokens ?? {};
    expect(available).toBeLessThanOrEqual(1_000);
    for (const slot of slots) slot.release();
  });

  test("expiry keeps the charge; an abort before the work starts gives all of it back (LIMIT5)", async () => {
    const limiter = world().limiter({ ...tokens(100, 1e9), slots: 1, ttlMs: 50 });
    await limiter.acquire({ cost: { tokens: 30 } });
    await world().clock.advanceAsync(50);
    expect(Math.round(limiter.stats().budgets.tokens?.available ?? 0)).toBe(70);
    const controller = new AbortController();
    const held = await limiter.acquire({ cost: { tokens: 0 } });
    const run = limiter.run(() => "never", { cost: { tokens: 50 }, signal: controller.signal });
    held.release();
    controller.abort("stop");
    await expect(run).rejects.toBe("stop");
    expect([Math.round(limiter.stats().budgets.tokens?.available ?? 0), limiter.inUse]).toEqual([70, 0]);
  });
});

describe("learning from the upstream", () => {
  test("lowers a budget to what remains, and never raises it (BUDGET4)", async () => {
    const limiter = world().limiter(tokens(100));
    const { budgets } = limiter.stats();
    expect(budgets.tokens?.available).toBe(100);
    limiter.learn("tokens", { remaining: 40, resetMs: 500 });
    limiter.learn("tokens", { remaining: 90 });
    expect(limiter.stats().budgets.tokens?.available).toBe(40);
    world().pass(limiter, "next", { cost: { tokens: 60 } });
    await world().clock.advanceAsync(300);
    expect(world().grants).toEqual(["next 200"]);
  });

  test("with nothing remaining, nothing is granted for resetMs, however much would have flowed in", async () => {
    const limiter = world().limiter(tokens(100));
    limiter.learn("tokens", { remaining: 0, resetMs: 3_000 });
    world().pass(limiter, "a", { cost: { tokens: 0 } });
    world().pass(limiter, "b", { cost: { tokens: 100 } });
    await world().clock.advanceAsync(3_000);
    expect(world().grants).toEqual(["a 3000", "b 3000"]);
  });

  test("moves the time for which a waiter is woken", async () => {
    const limiter = world().limiter(tokens(100));
    (await limiter.acquire({ cost: { tokens: 100 } })).release();
    world().pass(limiter, "waiter", { cost: { tokens: 10 } });
    limiter.learn("tokens", { remaining: 0, resetMs: 700 });
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["waiter 700"]);
  });

  test("of a strict budget withholds what others have used until the upstream resets it", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    limiter.learn("tokens", { remaining: 3, resetMs: 400 });
    expect(limiter.tryAcquire({ cost: { tokens: 4 } })).toBeUndefined();
    world().pass(limiter, "waiter", { cost: { tokens: 4 } });
    await world().clock.advanceAsync(500);
    expect(world().grants).toEqual(["waiter 400"]);
  });

  test("of a strict budget without resetMs withholds for a whole window", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    limiter.learn("tokens", { remaining: 3 });
    world().pass(limiter, "waiter", { cost: { tokens: 4 } });
    await world().clock.advanceAsync(2_000);
    expect(world().grants).toEqual(["waiter 1000"]);
  });

  test.each([false, true])("a later report with an earlier reset shortens nothing, strict: %s", async (strict) => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 100, strict } } });
    limiter.learn("tokens", { remaining: 0, resetMs: 700 });
    limiter.learn("tokens", { remaining: 0, resetMs: 300 });
    world().pass(limiter, "waiter");
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["waiter 700"]);
  });

  test("of a strict budget withholds units that two reports took away until the later reset", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000, strict: true } } });
    limiter.learn("tokens", { remaining: 6, resetMs: 700 });
    limiter.learn("tokens", { remaining: 4, resetMs: 300 });
    expect(limiter.stats().budgets.tokens?.available).toBe(4);
    world().pass(limiter, "waiter", { cost: { tokens: 10 } });
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["waiter 700"]);
  });

  test("stays in force when the budget becomes strict", async () => {
    const limiter = world().limiter(tokens(10, 100));
    limiter.learn("tokens", { remaining: 0, resetMs: 700 });
    limiter.update({ budgets: { tokens: { strict: true } } });
    world().pass(limiter, "waiter");
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["waiter 700"]);
  });
});

describe("clocks", () => {
  test("a sleep of the machine grants no more than the burst", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 10, perMs: 1_000 } } });
    for (let i = 0; i < 200; i++) world().pass(limiter, "x");
    await world().clock.advanceAsync(100);
    expect(world().grants.length).toBe(11);
    // The timer fires an hour late.
    const sleeping = new FakeClock(world().clock.now());
    const asleep = new Limiter({ budgets: { requests: { limit: 10, perMs: 1_000 } }, clock: sleeping });
    let granted = 0;
    for (let i = 0; i < 200; i++)
      void asleep.acquire().then(
        () => granted++,
        () => {},
      );
    Object.defineProperty(sleeping, "now", { value: () => world().clock.now() + 3_600_000 });
    await sleeping.advanceAsync(100);
    expect(granted).toBe(20);
    asleep.close();
    limiter.clear();
    await world().granted();
  });

  test("a clock that is set back stalls nothing for as long as it was set back, and pays nothing twice", async () => {
    let offset = 0;
    const { clock } = world();
    const stepping = {
      now: () => clock.now() + offset,
      setTimer: (callback: () => void, ms: number) => clock.setTimer(callback, ms),
      clearTimer: (timer: unknown) => clock.clearTimer(timer),
    };
    const limiter = world().limiter({
      slots: 5,
      budgets: { bucket: { limit: 10, perMs: 1_000 }, window: { limit: 10, perMs: 1_000, strict: true } },
      clock: stepping,
    });
    for (let i = 0; i < 30; i++) world().pass(limiter, `${i}`);
    await clock.advanceAsync(900);
    expect(limiter.stats().budgets.window?.available).toBe(0);
    offset = -3_600_000;
    // How much of the next 100 ms passed before the clock was set back cannot be known: it counts for nothing.
    await clock.advanceAsync(199);
    expect(world().grants.length).toBe(10);
    await clock.advanceAsync(1);
    expect(world().grants.length).toBe(20);
    await clock.advanceAsync(2_000);
    expect(world().grants.length).toBe(30);
    const times = world().grants.map((grant) => Number(grant.split(" ")[1]));
    for (const at of times)
      expect(times.filter((time) => time >= at && time < at + 1_000).length).toBeLessThanOrEqual(10);
  });
});
