import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const tokens = (limit: number, perMs = 1_000) => ({ budgets: { tokens: { limit, perMs } } });

describe("the keys of a limiter", () => {
  test("an idle key is forgotten when nothing of it is left to remember, and costs nothing then", async () => {
    const limiter = world().limiter({ slots: 10, perKey: tokens(10) });
    for (let i = 0; i < 100; i++) (await limiter.acquire({ key: i, cost: { tokens: 10 } })).release();
    expect([limiter.size, limiter.sweep()]).toEqual([100, 0]);
    expect(limiter.tryAcquire({ key: 5 })).toBeUndefined();
    world().clock.advance(1_000);
    for (let i = 0; i < 50; i++) limiter.tryAcquire({ key: `new ${i}` })?.release();
    expect(limiter.size).toBeLessThanOrEqual(51);
    world().clock.advance(1_000);
    expect([limiter.sweep() > 0, limiter.size, limiter.stats().keys]).toEqual([true, 0, 0]);
  });

  test("a key in debt is kept until the debt is paid back (KEYS1)", async () => {
    const limiter = world().limiter({ slots: 1, perKey: tokens(10) });
    const slot = await limiter.acquire({ key: "a", cost: { tokens: 10 } });
    slot.settle({ tokens: 30 });
    slot.release();
    world().clock.advance(2_000);
    expect([limiter.sweep(), limiter.tryAcquire({ key: "a", cost: { tokens: 1 } })]).toEqual([0, undefined]);
    world().clock.advance(1_000);
    expect([limiter.sweep(), limiter.size]).toEqual([1, 0]);
  });

  test("a key without budgets is forgotten at once", async () => {
    const limiter = world().limiter({ slots: 10, perKey: { slots: 1 } });
    const slot = await limiter.acquire({ key: "a" });
    expect(limiter.size).toBe(1);
    slot.release();
    expect(limiter.size).toBe(0);
  });

  test("a slot keeps its key after the state of the key serves another one (KEYS2)", async () => {
    const limiter = world().limiter({ slots: 10, perKey: { slots: 1 } });
    const first = await limiter.acquire({ key: "a" });
    first.release();
    const second = await limiter.acquire({ key: "b" });
    const third = await limiter.acquire({ key: "a" });
    expect([first.key, second.key, third.key, limiter.size]).toEqual(["a", "b", "a", 2]);
    expect(limiter.tryAcquire({ key: "b" })).toBeUndefined();
    expect([first.release(), second.release(), third.release(), limiter.size]).toEqual([false, true, true, 0]);
  });

  test("budgets that are added later count for the next key, although a state without them is at hand (KEYS2)", async () => {
    const limiter = world().limiter({ slots: 10, perKey: { slots: 1 } });
    (await limiter.acquire({ key: "a" })).release();
    limiter.update({ perKey: tokens(10) });
    const slot = await limiter.acquire({ key: "b", cost: { tokens: 10 } });
    slot.release();
    expect(limiter.tryAcquire({ key: "b", cost: { tokens: 10 } })).toBeUndefined();
    world().clock.advance(2_000);
    limiter.sweep();
  });

  test("a request that is refused at once leaves no key behind (KEYS3)", async () => {
    const limiter = world().limiter({ slots: 10, perKey: tokens(10) });
    await expect(limiter.acquire({ key: "a", signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
    limiter.close();
    await expect(limiter.acquire({ key: "a" })).rejects.toThrow("is closed");
    expect([limiter.tryAcquire({ key: "a" }), limiter.size]).toEqual([undefined, 0]);
  });

  test("each new key removes two idle keys (KEYS2)", async () => {
    const limiter = world().limiter({ slots: 10, perKey: tokens(10) });
    for (let i = 0; i < 10; i++) (await limiter.acquire({ key: i })).release();
    world().clock.advance(1_000);
    const sizes = ["a", "b", "c"].map((key) => {
      limiter.tryAcquire({ key })?.release();
      return limiter.size;
    });
    expect(sizes).toEqual([9, 8, 7]);
  });

  test("new keys do not remove one that is in debt (KEYS1)", async () => {
    const limiter = world().limiter({ slots: 10, perKey: tokens(10) });
    const slot = await limiter.acquire({ key: "a", cost: { tokens: 10 } });
    slot.settle({ tokens: 30 });
    slot.release();
    world().clock.advance(1_500);
    for (const key of ["b", "c", "d"]) limiter.tryAcquire({ key })?.release();
    expect([limiter.tryAcquire({ key: "a" }), limiter.size]).toEqual([undefined, 4]);
  });

  test("a key that starts again keeps its new state while others are removed (KEYS1)", async () => {
    const limiter = world().limiter({ slots: 10, perKey: { slots: 1, ...tokens(10) } });
    for (const key of ["x", "y", "z", "a"]) (await limiter.acquire({ key })).release();
    world().clock.advance(1_000);
    const held = await limiter.acquire({ key: "a" });
    for (const key of ["new 1", "new 2", "new 3"]) limiter.tryAcquire({ key })?.release();
    expect([limiter.tryAcquire({ key: "a" }), held.release()]).toEqual([undefined, true]);
  });

  test("the share of a key counts for a window, even if the key has no budgets of its own (KEYSTATE2)", async () => {
    const limiter = world().limiter({ ...tokens(100), slots: 1, perKey: {} });
    (await limiter.acquire({ key: "a", cost: { tokens: 2 } })).release();
    world().clock.advance(999);
    expect([limiter.sweep(), limiter.size]).toEqual([0, 1]);
    const held = await limiter.acquire({ key: "b", cost: { tokens: 0 } });
    for (const key of ["a", "b"]) world().pass(limiter, key, { key, cost: { tokens: 0 } });
    held.release();
    expect(await world().granted()).toBe("b a");
    world().clock.advance(1_000);
    expect([limiter.sweep(), limiter.size]).toEqual([2, 0]);
  });

  test("clearing rejects the waiters of all keys and levels in the order of arrival", async () => {
    const limiter = world().limiter({ slots: 1, levels: 3, perKey: {} });
    const held = await limiter.acquire();
    const order: string[] = [];
    const asks = ["a 2", "b 0", "a 0", "c 1", "b 2", "a 1"];
    for (const ask of asks) {
      const [key, level] = ask.split(" ");
      limiter.acquire({ key, level: Number(level) }).catch(() => order.push(ask));
    }
    limiter.clear();
    await settled();
    expect([order, held.release()]).toEqual([asks, true]);
  });
});
