import { Mutex, Semaphore } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("Mutex", () => {
  test("a mutex is a semaphore with one slot", () => {
    const mutex = new Mutex();
    expect(mutex).toBeInstanceOf(Semaphore);
    expect([mutex.capacity, mutex.locked]).toEqual([1, false]);
  });

  test("two critical sections never overlap", async () => {
    const mutex = world().guard.track(new Mutex());
    let inside = 0;
    const section = async () => {
      expect(++inside).toBe(1);
      await settled(3);
      inside--;
    };
    await Promise.all(Array.from({ length: 10 }, () => mutex.run(section)));
  });

  test("a mutex takes the options of a semaphore", async () => {
    const { clock, registry, guard } = world();
    const mutex = guard.track(new Mutex({ name: "m", registry, clock, ttlMs: 10, maxWaiters: 1 }));
    await mutex.acquire();
    const waiter = outcome(mutex.acquire());
    await expect(mutex.acquire()).rejects.toMatchObject({ code: "QUEUE_FULL", semaphore: "m" });
    await clock.advanceAsync(10);
    waiter.value.release();
  });

  test("locked is true if an acquire would have to wait", async () => {
    const mutex = world().guard.track(new Mutex());
    const slot = await mutex.acquire();
    expect(mutex.locked).toBe(true);
    slot.release();
    expect(mutex.locked).toBe(false);
  });
});
