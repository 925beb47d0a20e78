import "./work-done.ts";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { growthOf } from "./work-done.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("release", () => {
  test("release returns true the first time and false after that, and never frees the slot of another caller", async () => {
    const sem = world().semaphore(2);
    const slots = [await sem.acquire(), await sem.acquire()];
    expect([slots[0]?.release(), slots[0]?.release(), slots[0]?.release()]).toEqual([true, false, false]);
    expect([slots[0]?.released, slots[1]?.released, sem.inUse]).toEqual([true, false, 1]);
    const next = await sem.acquire();
    expect([slots[0]?.release(), sem.inUse, sem.tryAcquire()]).toEqual([false, 2, undefined]);
    slots[1]?.release();
    next.release();
  });

  test("a semaphore does not keep a released slot whose id was read", async () => {
    const sem = world().semaphore(1);
    const use = () => {
      const slot = sem.tryAcquire();
      expect([slot?.id.length, slot?.release()]).toEqual([expect.any(Number), true]);
      return new WeakRef(slot as object);
    };
    const slots = Array.from({ length: 100 }, use);
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    expect(slots.filter((slot) => slot.deref() !== undefined)).toEqual([]);
  });

  test("release by id returns true only if that id held a slot", async () => {
    const sem = world().semaphore(2);
    const slot = await sem.acquire();
    expect(sem.release("no such id")).toBe(false);
    expect(sem.release("")).toBe(false);
    const { id } = slot;
    expect([sem.release(id), slot.released, sem.release(id), slot.release(), sem.inUse]).toEqual([
      true,
      true,
      false,
      false,
      0,
    ]);
  });

  test("an id of one semaphore releases nothing of another", async () => {
    const [a, b] = [world().semaphore(1), world().semaphore(1)];
    const slots = [await a.acquire(), await b.acquire()];
    expect(b.release(slots[0]?.id ?? "")).toBe(false);
    expect([a.inUse, b.inUse]).toEqual([1, 1]);
    for (const slot of slots) slot.release();
  });

  test("an id read after the release releases nothing", async () => {
    const sem = world().semaphore(1);
    const slot = await sem.acquire();
    slot.release();
    const next = await sem.acquire();
    expect([sem.release(slot.id), sem.inUse]).toEqual([false, 1]);
    next.release();
  });

  test("release by id hands over as slot.release does", async () => {
    const sem = world().semaphore(1);
    const { id } = await sem.acquire();
    const next = outcome(sem.acquire());
    expect(sem.release(id)).toBe(true);
    expect([sem.inUse, sem.waiting]).toEqual([1, 0]);
    await settled();
    next.value.release();
  });
});

describe("using", () => {
  test("a slot is released at the end of its scope", async () => {
    const sem = world().semaphore(1);
    {
      using slot = await sem.acquire();
      expect([slot.released, sem.inUse]).toEqual([false, 1]);
    }
    expect(sem.inUse).toBe(0);
  });

  test("a slot is released when its scope throws, and a second dispose does nothing", async () => {
    const sem = world().semaphore(1);
    const fail = async () => {
      using slot = await sem.acquire();
      slot.release();
      throw new Error("inside");
    };
    await expect(fail()).rejects.toThrow("inside");
    expect(sem.stats()).toMatchObject({ inUse: 0, released: 1 });
  });
});

describe("id", () => {
  test("an id is unique and cannot be guessed: many ids are all different, each is long, and stays the same", async () => {
    const sem = world().semaphore(Infinity);
    const slots = Array.from({ length: 1_000 }, () => sem.tryAcquire());
    const ids = slots.map((slot) => slot?.id ?? "");
    expect(new Set(ids).size).toBe(1_000);
    expect(Math.min(...ids.map((id) => id.length))).toBeGreaterThanOrEqual(20);
    expect(slots.map((slot) => slot?.id)).toEqual(ids);
    for (const slot of slots) slot?.release();
  });
});

describe("number", () => {
  test("numbers are 1 to capacity and unique among the slots held", async () => {
    const sem = world().semaphore(3);
    const slots = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    expect(new Set(slots.map((slot) => slot.number))).toEqual(new Set([1, 2, 3]));
    slots[1]?.release();
    const next = await sem.acquire();
    expect(next.number).toBe(slots[1]?.number);
    for (const slot of [...slots, next]) slot.release();
  });

  test("a number is assigned when first read and does not change, even after the release", async () => {
    const sem = world().semaphore(3);
    const slots = [await sem.acquire(), await sem.acquire()];
    expect(slots[1]?.number).toBe(1);
    expect(slots[0]?.number).toBe(2);
    slots[1]?.release();
    expect([slots[1]?.number, slots[1]?.number]).toEqual([1, 1]);
    slots[0]?.release();
  });

  test("reading the number of a released slot assigns no number", async () => {
    const sem = world().semaphore(1);
    const old = await sem.acquire();
    old.release();
    const slot = await sem.acquire();
    expect(old.number).not.toBe(1);
    expect(slot.number).toBe(1);
    slot.release();
  });

  test("a slot whose number is not read uses up no number", async () => {
    const sem = world().semaphore(1);
    const first = await sem.acquire();
    expect([first.number, first.release()]).toEqual([1, true]);
    const second = await sem.acquire();
    expect([second.id.length > 0, second.release()]).toEqual([true, true]);
    const third = await sem.acquire();
    expect([third.number, third.release()]).toEqual([1, true]);
  });

  test("after a shrink the cost of a number does not depend on how many numbers are above the capacity", async () => {
    const growth = await growthOf(200, (size) => {
      const sem = world().semaphore(size);
      const slots = Array.from({ length: size }, () => sem.tryAcquire());
      for (const slot of slots) expect(slot?.number).toBeLessThanOrEqual(size);
      // Release the low numbers first, so that the numbers above the capacity are the next to be assigned.
      for (const slot of slots) slot?.release();
      sem.resize(1);
      for (let round = 0; round < size; round++) {
        const slot = sem.tryAcquire();
        expect(slot?.number).toBe(1);
        slot?.release();
      }
    });
    expect(growth).toBeLessThan(1.2);
  });

  test("numbers are again at most the capacity after a shrink and the release of all slots, and after it grows", async () => {
    const sem = world().semaphore(4);
    const slots = Array.from({ length: 4 }, () => sem.tryAcquire());
    expect(slots.map((slot) => slot?.number)).toEqual([1, 2, 3, 4]);
    sem.resize(2);
    for (const slot of slots) slot?.release();
    const after = [sem.tryAcquire(), sem.tryAcquire()];
    expect(new Set(after.map((slot) => slot?.number))).toEqual(new Set([1, 2]));
    sem.resize(4);
    after.push(sem.tryAcquire(), sem.tryAcquire());
    expect(new Set(after.map((slot) => slot?.number))).toEqual(new Set([1, 2, 3, 4]));
    for (const slot of after) slot?.release();
  });

  test("a wide slot has one number", async () => {
    const sem = world().semaphore(4);
    const slots = [await sem.acquire({ width: 3 }), await sem.acquire()];
    expect(slots.map((slot) => slot.number)).toEqual([1, 2]);
    for (const slot of slots) slot.release();
  });
});

describe("signal", () => {
  test("each slot has its own signal, which is the same at every read", async () => {
    const sem = world().semaphore(2);
    const slots = [await sem.acquire(), await sem.acquire()];
    expect(slots[0]?.signal).toBe(slots[0]?.signal);
    expect(slots[0]?.signal).not.toBe(slots[1]?.signal);
    for (const slot of slots) slot.release();
    expect(slots[0]?.signal.aborted).toBe(false);
  });
});

describe("stats", () => {
  test("stats has exactly the fields of the contract, and counts", async () => {
    const sem = world().semaphore(4, { name: "db", maxWaiters: 2 });
    const held = await sem.acquire({ width: 3 });
    const controller = new AbortController();
    const waiters = [sem.acquire({ width: 2, timeoutMs: 10 }), sem.acquire({ signal: controller.signal })].map(outcome);
    await expect(sem.acquire()).rejects.toMatchObject({ code: "QUEUE_FULL" });
    expect(sem.stats()).toEqual({
      name: "db",
      capacity: 4,
      inUse: 3,
      waiting: 2,
      percent: 75,
      acquired: 1,
      released: 0,
      expired: 0,
      timedOut: 0,
      aborted: 0,
      rejected: 1,
    });
    controller.abort();
    world().clock.advance(10);
    held.release();
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(sem.stats()).toMatchObject({ inUse: 0, waiting: 0, percent: 0, released: 1, timedOut: 1, aborted: 1 });
  });
});
