import { ClosedError } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { Deferred } from "./deferred.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("resize", () => {
  test("growing serves as many waiters as fit, at once", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiters = [1, 2, 3].map(() => outcome(sem.acquire()));
    sem.resize(3);
    expect([sem.capacity, sem.inUse, sem.waiting]).toEqual([3, 3, 1]);
    await settled();
    expect(waiters.map((one) => one.status)).toEqual(["fulfilled", "fulfilled", "pending"]);
    held.release();
    await settled();
    for (const one of waiters) one.value.release();
  });

  test("shrinking takes no slot from a holder", async () => {
    const sem = world().semaphore(3);
    const slots = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    sem.resize(1);
    expect(slots.map((slot) => slot.released)).toEqual([false, false, false]);
    expect([sem.capacity, sem.inUse, sem.available, sem.locked]).toEqual([1, 3, 0, true]);
    for (const slot of slots) expect(slot.release()).toBe(true);
  });

  test("after shrinking no caller gets a slot until fewer slots are held than the capacity", async () => {
    const sem = world().semaphore(3);
    const slots = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    const waiter = outcome(sem.acquire());
    sem.resize(1);
    slots[0]?.release();
    slots[1]?.release();
    expect([sem.waiting, sem.tryAcquire()]).toEqual([1, undefined]);
    slots[2]?.release();
    expect(sem.waiting).toBe(0);
    await settled();
    waiter.value.release();
  });

  test("resizing below a queued width rejects those waiters with RangeError and leaves the others in order", async () => {
    const sem = world().semaphore(3);
    const held = await sem.acquire({ width: 3 });
    const wide = outcome(sem.acquire({ width: 3 }));
    const two = outcome(sem.acquire({ width: 2 }));
    const one = outcome(sem.acquire());
    sem.resize(2);
    await settled();
    expect(wide.reason).toBeInstanceOf(RangeError);
    expect([two.status, one.status, sem.waiting, sem.stats().rejected]).toEqual(["pending", "pending", 2, 1]);
    held.release();
    await settled();
    expect([two.status, one.status]).toEqual(["fulfilled", "pending"]);
    two.value.release();
    await settled();
    one.value.release();
  });

  test("when a resize rejects a wide head, the waiters behind it are served at once", async () => {
    const sem = world().semaphore(3);
    const held = await sem.acquire();
    const wide = outcome(sem.acquire({ width: 3, timeoutMs: 10 }));
    const narrow = outcome(sem.acquire());
    sem.resize(2);
    expect([sem.inUse, sem.waiting]).toEqual([2, 0]);
    await settled();
    expect(wide.reason).toBeInstanceOf(RangeError);
    narrow.value.release();
    held.release();
  });

  test("resizing to Infinity serves all waiters", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiters = Array.from({ length: 10 }, () => outcome(sem.acquire()));
    sem.resize(Infinity);
    await settled();
    for (const one of waiters) one.value.release();
    held.release();
  });

  test.each([0, -1, 1.5, Number.NaN])(
    "resizing to %s is a RangeError that names the value and changes nothing",
    (slots) => {
      const sem = world().semaphore(2);
      expect(() => sem.resize(slots)).toThrow(RangeError);
      expect(() => sem.resize(slots)).toThrow(String(slots));
      expect(sem.capacity).toBe(2);
    },
  );
});

describe("close", () => {
  test("waiters and later acquires reject with ClosedError", async () => {
    const sem = world().semaphore(1, { name: "door" });
    const held = await sem.acquire();
    const waiters = [outcome(sem.acquire()), outcome(sem.acquire({ timeoutMs: 5 })), outcome(sem.run(() => 0))];
    sem.close();
    const late = outcome(sem.acquire());
    const lateRun = outcome(sem.run(() => 0));
    await settled();
    for (const { reason } of [...waiters, late, lateRun]) {
      expect(reason).toBeInstanceOf(ClosedError);
      expect(reason).toMatchObject({ code: "CLOSED", semaphore: "door", retryable: false });
    }
    expect(sem.waiting).toBe(0);
    held.release();
  });

  test("a closed semaphore grants no slot even if one is free", async () => {
    const sem = world().semaphore(1);
    sem.close();
    expect(sem.tryAcquire()).toBeUndefined();
    await expect(sem.acquire()).rejects.toBeInstanceOf(ClosedError);
    await expect(sem.acquire({ timeoutMs: 0 })).rejects.toBeInstanceOf(ClosedError);
    expect(sem.stats()).toMatchObject({ acquired: 0, rejected: 2 });
  });

  test("holders may still release", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    sem.close();
    expect([held.released, sem.inUse, held.release(), sem.inUse]).toEqual([false, 1, true, 0]);
  });

  test("holders may still be renewed and expire", async () => {
    const sem = world().semaphore(1, { ttlMs: 10 });
    const held = await sem.acquire();
    sem.close();
    expect(held.renew()).toBe(true);
    world().clock.advance(10);
    expect([held.released, sem.inUse]).toEqual([true, 0]);
  });

  test("work that is running during close runs to its end", async () => {
    const sem = world().semaphore(1);
    const work = new Deferred<string>();
    const run = outcome(sem.run(() => work.promise));
    sem.close();
    work.resolve("done");
    await settled();
    expect(run.value).toBe("done");
  });

  test("a second close changes nothing: the first reason stays and there is one event", async () => {
    const types: string[] = [];
    const sem = world().semaphore(1, { onEvent: ({ type }) => types.push(type) });
    sem.close("first");
    sem.close("second");
    expect(types).toEqual(["closed"]);
    await expect(sem.acquire()).rejects.toMatchObject({ cause: "first" });
  });

  test("the reason given to close is the cause, whatever its type", async () => {
    for (const reason of [new Error("going down"), "text", { any: 1 }, 0, null]) {
      const sem = world().semaphore(1);
      sem.close(reason);
      const late = outcome(sem.acquire());
      await settled();
      expect((late.reason as Error).cause).toBe(reason);
    }
  });

  test("closed is true after close", () => {
    const sem = world().semaphore(1);
    expect(sem.closed).toBe(false);
    sem.close();
    expect(sem.closed).toBe(true);
  });

  test("a slot that was handed over before the close belongs to its new holder", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    held.release();
    sem.close();
    await settled();
    expect(next.value.release()).toBe(true);
  });
});

describe("idle", () => {
  test("idle resolves at once when nothing is held", async () => {
    await expect(world().semaphore(1).idle()).resolves.toBeUndefined();
  });

  test("idle resolves for every caller when the last slot is released, and not before", async () => {
    const sem = world().semaphore(2);
    const slots = [await sem.acquire(), await sem.acquire()];
    const idle = [outcome(sem.idle()), outcome(sem.idle())];
    slots[0]?.release();
    await settled();
    expect(idle.map((one) => one.status)).toEqual(["pending", "pending"]);
    slots[1]?.release();
    await settled();
    expect(idle.map((one) => one.status)).toEqual(["fulfilled", "fulfilled"]);
  });

  test("idle does not resolve during hand-offs", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    const idle = outcome(sem.idle());
    held.release();
    await settled();
    expect(idle.status).toBe("pending");
    next.value.release();
    await settled();
    expect(idle.status).toBe("fulfilled");
  });

  test("idle resolves when the last slot expires, and when the last slot is released after close", async () => {
    const sem = world().semaphore(1, { ttlMs: 10 });
    await sem.acquire();
    sem.close();
    const idle = outcome(sem.idle());
    await world().clock.advanceAsync(10);
    expect(idle.status).toBe("fulfilled");
  });
});
