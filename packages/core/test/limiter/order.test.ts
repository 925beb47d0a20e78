import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const tokens = (limit: number, perMs = 1_000) => ({ budgets: { tokens: { limit, perMs } } });

describe("levels and arrival (LINE1, LINE2)", () => {
  test("level 0 goes first; inside a level it is first come, first served", async () => {
    const limiter = world().limiter({ slots: 1, levels: 3 });
    const held = await limiter.acquire();
    for (const [label, level] of [
      ["c1", 2],
      ["b1", 1],
      ["a1", 0],
      ["b2", 1],
      ["a2", 0],
      ["c2", 2],
    ] as const) {
      world().pass(limiter, label, { level });
    }
    held.release();
    expect(await world().granted()).toBe("a1 a2 b1 b2 c1 c2");
  });

  test("a newcomer does not take what a waiter is waiting for, whatever it costs", async () => {
    const limiter = world().limiter({ ...tokens(10), slots: 5 });
    (await limiter.acquire({ cost: { tokens: 8 } })).release();
    world().pass(limiter, "costly", { cost: { tokens: 10 } });
    world().pass(limiter, "cheap", { cost: { tokens: 1 } });
    expect(limiter.tryAcquire({ cost: { tokens: 0 } })).toBeUndefined();
    await world().clock.advanceAsync(799);
    expect(await world().granted()).toBe("");
    await world().clock.advanceAsync(101);
    expect(world().grants).toEqual(["costly 800", "cheap 900"]);
  });

  test("requests without a level have `defaultLevel`, so some can be more urgent and some less", async () => {
    const limiter = world().limiter({ slots: 1, levels: 3, defaultLevel: 1 });
    const held = await limiter.acquire();
    for (const [label, level] of [["later", 2], ["plain"], ["empty", undefined], ["urgent", 0]] as const) {
      world().pass(limiter, label, level === undefined && label === "plain" ? undefined : { level });
    }
    held.release();
    expect(await world().granted()).toBe("urgent plain empty later");
  });

  test("a head that lacks a common budget blocks the lower levels, and a higher level passes it", async () => {
    const limiter = world().limiter({ ...tokens(10), levels: 3 });
    (await limiter.acquire({ cost: { tokens: 8 } })).release();
    world().pass(limiter, "costly", { cost: { tokens: 10 }, level: 1 });
    world().pass(limiter, "lower", { cost: { tokens: 1 }, level: 2 });
    expect(await world().granted()).toBe("");
    world().pass(limiter, "higher", { cost: { tokens: 1 }, level: 0 });
    expect(await world().granted()).toBe("higher");
    await world().clock.advanceAsync(1_000);
    expect(await world().granted()).toBe("higher costly lower");
  });
});

describe("keys (LINE2, LINE3)", () => {
  test("the key with the smallest charged share goes first", async () => {
    const limiter = world().limiter({ slots: 1, perKey: tokens(100) });
    (await limiter.acquire({ key: "heavy", cost: { tokens: 50 } })).release();
    const held = await limiter.acquire({ key: "light", cost: { tokens: 10 } });
    for (const label of ["h1", "h2"]) world().pass(limiter, label, { key: "heavy", cost: { tokens: 10 } });
    for (const label of ["l1", "l2", "l3"]) world().pass(limiter, label, { key: "light", cost: { tokens: 20 } });
    world().pass(limiter, "new", { key: "new", cost: { tokens: 1 } });
    held.release();
    expect(await world().granted()).toBe("new l1 l2 h1 l3 h2");
  });

  test("the share is the largest over the key's budgets", async () => {
    const budgets = { requests: { limit: 10, perMs: 1_000 }, tokens: { limit: 100, perMs: 1_000 } };
    const limiter = world().limiter({ slots: 1, perKey: { budgets } });
    (await limiter.acquire({ key: "requests", cost: { requests: 4, tokens: 1 } })).release();
    const held = await limiter.acquire({ key: "tokens", cost: { requests: 1, tokens: 30 } });
    world().pass(limiter, "requests", { key: "requests" });
    world().pass(limiter, "tokens", { key: "tokens" });
    held.release();
    expect(await world().granted()).toBe("tokens requests");
  });

  test("without budgets per key the common ones are shared out", async () => {
    const limiter = world().limiter({ ...tokens(100), slots: 1, perKey: { slots: 5 } });
    const held = await limiter.acquire({ key: "a", cost: { tokens: 10 } });
    world().pass(limiter, "a", { key: "a" });
    world().pass(limiter, "b", { key: "b" });
    held.release();
    expect(await world().granted()).toBe("b a");
  });

  test("a waiter blocked only by its own key is passed and reserves nothing", async () => {
    const limiter = world().limiter({ slots: 3, perKey: { slots: 1 } });
    const held = await limiter.acquire({ key: "a" });
    const blocked = world().ask(limiter, "a", { key: "a" });
    const others = ["b", "c"].map((key) => world().ask(limiter, key, { key }));
    await settled();
    expect([limiter.inUse, limiter.waiting, await world().granted()]).toEqual([3, 1, "b c"]);
    expect(limiter.tryAcquire({ key: "d" })).toBeUndefined();
    held.release();
    await settled();
    for (const slot of [blocked, ...others]) slot.value.release();
    expect(limiter.tryAcquire({ key: "a" })?.release()).toBe(true);
  });

  test("a waiter blocked by its key's budget is passed until that suffices", async () => {
    const limiter = world().limiter({ slots: 10, ...tokens(1_000), perKey: tokens(10) });
    (await limiter.acquire({ key: "a", cost: { tokens: 10 } })).release();
    world().pass(limiter, "a1", { key: "a", cost: { tokens: 5 } });
    world().pass(limiter, "a2", { key: "a", cost: { tokens: 1 } });
    world().pass(limiter, "b", { key: "b", cost: { tokens: 10 } });
    expect(limiter.tryAcquire({ key: "c" })?.release()).toBe(true);
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["b 0", "a1 500", "a2 600"]);
  });

  test("requests without a key are limited by nothing but the common limits", async () => {
    const limiter = world().limiter({ slots: 3, perKey: { slots: 1 } });
    const slots = await Promise.all([limiter.acquire(), limiter.acquire(), limiter.acquire({ key: "a" })]);
    expect(limiter.inUse).toBe(3);
    for (const slot of slots) slot.release();
  });

  test("keys that always wait are charged alike, whatever each request costs", async () => {
    const limiter = world().limiter({ ...tokens(1_000), slots: 4, perKey: {} });
    const charged: Record<string, number> = { heavy: 0, light: 0 };
    let isOpen = true;
    const caller = async (key: string, cost: number) => {
      while (isOpen) {
        const slot = await limiter.acquire({ key, cost: { tokens: cost } });
        charged[key] = (charged[key] ?? 0) + cost;
        slot.release();
      }
    };
    const callers = [...Array.from({ length: 20 }, () => caller("heavy", 100)), caller("light", 5), caller("light", 5)];
    await world().clock.advanceAsync(60_000);
    isOpen = false;
    limiter.clear("over");
    await Promise.allSettled(callers);
    const { heavy = 0, light = 0 } = charged;
    expect(Math.abs(heavy / (heavy + light) - 0.5)).toBeLessThan(0.02);
  });

  test("a key that comes late does not shut out the others until it has caught up with all they ever had", async () => {
    const limiter = world().limiter({ slots: 1, ...tokens(10), perKey: {} });
    for (let i = 0; i < 600; i++) {
      (await limiter.acquire({ key: "old" })).release();
      await world().clock.advanceAsync(100);
    }
    const held = await limiter.acquire({ key: "x" });
    for (let i = 0; i < 40; i++) {
      world().pass(limiter, "old", { key: "old" });
      world().pass(limiter, "new", { key: "new" });
    }
    held.release();
    await world().clock.advanceAsync(2_500);
    const grants = (await world().granted()).split(" ").slice(0, 30);
    expect(grants.filter((label) => label === "old").length).toBeGreaterThan(5);
    limiter.clear();
    await settled();
  });

  test.each([
    ["a thousand windows after the start", 1_000_000, 0],
    ["when the weights are scaled down in between", 49_900, 200],
  ])("shares decide %s", async (_, beforeMs, betweenMs) => {
    const limiter = world().limiter({ slots: 1, perKey: tokens(100) });
    world().clock.advance(beforeMs);
    (await limiter.acquire({ key: "b", cost: { tokens: 50 } })).release();
    world().clock.advance(betweenMs);
    (await limiter.acquire({ key: "a", cost: { tokens: 10 } })).release();
    const held = await limiter.acquire({ key: "c", cost: { tokens: 0 } });
    world().pass(limiter, "b", { key: "b" });
    world().pass(limiter, "a", { key: "a" });
    held.release();
    expect(await world().granted()).toBe("a b");
  });
});

describe("ageing (LINE4)", () => {
  test("a waiter rises a level every ageAfterMs", async () => {
    const limiter = world().limiter({ slots: 1, levels: 3, ageAfterMs: 100 });
    const held = await limiter.acquire();
    world().pass(limiter, "old", { level: 2 });
    await world().clock.advanceAsync(150);
    world().pass(limiter, "middle", { level: 1 });
    world().pass(limiter, "low", { level: 2 });
    held.release();
    expect(await world().granted()).toBe("old middle low");
  });

  test("after level × ageAfterMs no later arrival overtakes it, of whichever level", async () => {
    const limiter = world().limiter({ slots: 1, levels: 3, ageAfterMs: 100 });
    const held = await limiter.acquire();
    world().pass(limiter, "aged", { level: 2 });
    await world().clock.advanceAsync(199);
    world().pass(limiter, "before", { level: 0 });
    await world().clock.advanceAsync(1);
    for (let i = 0; i < 5; i++) world().pass(limiter, "later", { level: 0 });
    held.release();
    expect((await world().granted()).startsWith("aged before later")).toBe(true);
  });

  test("not even one of a key with a smaller share", async () => {
    const limiter = world().limiter({ slots: 1, levels: 2, ageAfterMs: 100, perKey: tokens(100, 60_000) });
    const held = await limiter.acquire({ key: "heavy", cost: { tokens: 90 } });
    world().pass(limiter, "heavy", { key: "heavy", level: 1 });
    await world().clock.advanceAsync(100);
    world().pass(limiter, "light", { key: "light", level: 0 });
    held.release();
    expect(await world().granted()).toBe("heavy light");
  });

  test("except past its own key's block", async () => {
    const limiter = world().limiter({ slots: 2, levels: 2, ageAfterMs: 100, perKey: { slots: 1 } });
    const held = await limiter.acquire({ key: "a" });
    const blocked = world().ask(limiter, "a", { key: "a", level: 1 });
    await world().clock.advanceAsync(500);
    world().pass(limiter, "b", { key: "b" });
    expect(await world().granted()).toBe("b");
    held.release();
    await settled();
    blocked.value.release();
  });

  test("one that rises above the one that blocked it is served at that moment, not at the next event", async () => {
    const limiter = world().limiter({ ...tokens(10), levels: 2, ageAfterMs: 100 });
    (await limiter.acquire({ cost: { tokens: 9 } })).release();
    world().pass(limiter, "cheap", { cost: { tokens: 1 }, level: 1, timeoutMs: 10_000 });
    expect(await world().granted()).toBe("cheap");
    world().pass(limiter, "old", { cost: { tokens: 1 }, level: 1 });
    world().pass(limiter, "costly", { cost: { tokens: 10 }, level: 0 });
    await world().clock.advanceAsync(1_500);
    expect(world().grants).toEqual(["cheap 0", "old 100", "costly 1100"]);
  });
});
