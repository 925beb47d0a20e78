import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("width", () => {
  test("a slot of width n takes n slots and releases n", async () => {
    const sem = world().semaphore(5);
    const slot = await sem.acquire({ width: 3 });
    expect([slot.width, sem.inUse, sem.available, sem.locked]).toEqual([3, 3, 2, false]);
    expect(slot.release()).toBe(true);
    expect([slot.width, sem.inUse]).toEqual([3, 0]);
  });

  test("the default width is 1", async () => {
    const sem = world().semaphore(2);
    const slot = await sem.acquire();
    expect(slot.width).toBe(1);
    slot.release();
  });

  test("a width equal to the capacity is allowed", async () => {
    const sem = world().semaphore(3);
    const slot = sem.tryAcquire({ width: 3 });
    expect([sem.inUse, sem.locked]).toEqual([3, true]);
    slot?.release();
  });

  test("a width beyond the capacity is a RangeError that names the value, at once, and changes no state", async () => {
    const sem = world().semaphore(2);
    const held = await sem.acquire();
    await expect(sem.acquire({ width: 3 })).rejects.toThrow(RangeError);
    await expect(sem.acquire({ width: 3 })).rejects.toThrow(/`width`.*2.*got 3/);
    await expect(sem.run(() => 0, { width: 3 })).rejects.toThrow(RangeError);
    expect(() => sem.tryAcquire({ width: 3 })).toThrow(RangeError);
    expect([sem.inUse, sem.waiting]).toEqual([1, 0]);
    held.release();
  });

  test("a width beyond the capacity is a RangeError even while others wait", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    await expect(sem.acquire({ width: 2 })).rejects.toThrow(RangeError);
    expect(() => sem.tryAcquire({ width: 2 })).toThrow(RangeError);
    held.release();
    await settled();
    waiter.value.release();
  });

  test.each([0, -1, 1.5, Number.NaN, Infinity, "2" as unknown as number])(
    "a width of %s is a RangeError",
    async (width) => {
      const sem = world().semaphore(Infinity);
      await expect(sem.acquire({ width })).rejects.toThrow(RangeError);
      expect(() => sem.tryAcquire({ width })).toThrow(RangeError);
      expect(sem.inUse).toBe(0);
    },
  );

  test("run takes a width, too", async () => {
    const sem = world().semaphore(4);
    await sem.run((slot) => expect([slot.width, sem.inUse]).toEqual([3, 3]), { width: 3 });
    expect(sem.inUse).toBe(0);
  });

  test("several narrow releases together serve a wide waiter", async () => {
    const sem = world().semaphore(3);
    const held = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    const wide = outcome(sem.acquire({ width: 3 }));
    for (const slot of held) {
      expect(sem.waiting).toBe(1);
      slot.release();
    }
    expect(sem.waiting).toBe(0);
    await settled();
    wide.value.release();
  });

  test("a wide slot that expires frees its whole width", async () => {
    const sem = world().semaphore(3, { ttlMs: 10 });
    await sem.acquire({ width: 2 });
    world().clock.advance(10);
    expect(sem.inUse).toBe(0);
  });
});

describe("unlimited", () => {
  test("with Infinity slots every caller gets one, and the slots are counted", async () => {
    const sem = world().semaphore(Infinity);
    const slots = await Promise.all(Array.from({ length: 100 }, () => sem.acquire()));
    expect(sem.stats()).toMatchObject({ capacity: Infinity, inUse: 100, waiting: 0, percent: 0, acquired: 100 });
    expect([sem.available, sem.locked]).toEqual([Infinity, false]);
    expect(new Set(slots.map((slot) => slot.number)).size).toBe(100);
    for (const slot of slots) slot.release();
    expect(sem.inUse).toBe(0);
  });
});
