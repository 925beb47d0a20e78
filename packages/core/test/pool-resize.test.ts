import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("resize of a pool", () => {
  test("a larger max serves waiters at once, and leaves the limit per key as it is", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const waiters = ["b", "c", "a"].map((key) => outcome(pool.acquire(key)));
    pool.resize({ max: 3 });
    expect(pool.stats()).toMatchObject({ max: 3, maxPerKey: 1, inUse: 3, waiting: 1 });
    held.release();
    await settled();
    for (const { value } of waiters) value.release();
    pool.close();
  });

  test("a larger limit per key serves the waiters of every key at once, and leaves max as it is", async () => {
    const pool = world().pool({ max: 4, maxPerKey: 1 });
    const slots = [await pool.acquire("a"), await pool.acquire("b")];
    const waiters = ["a", "a", "b"].map((key) => outcome(pool.acquire(key)));
    pool.resize({ maxPerKey: 2 });
    expect(pool.stats()).toMatchObject({ max: 4, maxPerKey: 2, inUse: 4, waiting: 1 });
    for (const slot of slots) slot.release();
    await settled();
    for (const { value } of waiters) value.release();
    pool.close();
  });

  test.each([{ max: 0 }, { maxPerKey: 0 }])("%o lifts the limit", async (limits) => {
    const pool = world().pool({ max: 2, maxPerKey: 2 });
    const slots = [await pool.acquire("a"), await pool.acquire("a")];
    const waiters = ["a", "b"].map((key) => outcome(pool.acquire(key)));
    pool.resize(limits);
    expect(pool.stats()).toMatchObject("max" in limits ? { max: Infinity } : { maxPerKey: Infinity });
    pool.resize({ max: 0, maxPerKey: 0 });
    await settled();
    expect([pool.inUse, pool.waiting]).toEqual([4, 0]);
    for (const slot of [...slots, ...waiters.map(({ value }) => value)]) slot.release();
    pool.close();
  });

  test("a smaller limit takes no slot from a holder, and holds for the next callers", async () => {
    const pool = world().pool({ max: 4, maxPerKey: 2 });
    const slots = [await pool.acquire("a"), await pool.acquire("a"), await pool.acquire("b")];
    pool.resize({ max: 3, maxPerKey: 1 });
    expect([pool.inUse, slots.some(({ released }) => released)]).toEqual([3, false]);
    slots[0]?.release();
    expect([pool.tryAcquire("a"), pool.tryAcquire("b")]).toEqual([undefined, undefined]);
    const third = pool.tryAcquire("c");
    expect([third?.released, pool.tryAcquire("d")]).toEqual([false, undefined]);
    for (const slot of [...slots, third]) slot?.release();
    pool.close();
  });

  test("a smaller max rejects the waiters of a key that are wider than it", async () => {
    const pool = world().pool({ max: 4, maxPerKey: 4 });
    const held = await pool.acquire("a", { width: 4 });
    const waiter = outcome(pool.acquire("a", { width: 3 }));
    pool.resize({ max: 2 });
    await settled();
    expect(waiter.reason).toEqual(new RangeError("Expected `width` to be an integer from 1 to 2, got 3"));
    expect(pool.stats()).toMatchObject({ rejected: 1, waiting: 0, inUse: 4 });
    held.release();
    pool.close();
  });

  test("a keyed semaphore that grows serves the waiters of every key at once", async () => {
    const keyed = world().keyed(1);
    const slots = [await keyed.acquire("a"), await keyed.acquire("b")];
    const waiters = ["a", "b"].map((key) => outcome(keyed.acquire(key)));
    keyed.resize({ maxPerKey: 2 });
    await settled();
    expect([keyed.inUse, keyed.waiting]).toEqual([4, 0]);
    for (const slot of [...slots, ...waiters.map(({ value }) => value)]) slot.release();
    keyed.close();
  });
});
