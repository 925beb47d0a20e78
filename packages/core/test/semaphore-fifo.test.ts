import type { Slot } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("FIFO, no barging", () => {
  test("an acquire gets a free slot at once", async () => {
    const sem = world().semaphore(2);
    const slot = await sem.acquire();
    expect(sem.inUse).toBe(1);
    expect(sem.available).toBe(1);
    expect(slot.release()).toBe(true);
    expect(sem.inUse).toBe(0);
  });

  test("waiters are served in order of arrival", async () => {
    const sem = world().semaphore(1);
    const order: number[] = [];
    const first = await sem.acquire();
    const all = [0, 1, 2, 3, 4].map((index) =>
      sem.acquire(index % 2 ? { timeoutMs: 1_000 } : undefined).then((slot) => {
        order.push(index);
        slot.release();
      }),
    );
    first.release();
    await Promise.all(all);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test("the order holds for waiters of every kind together: plain, with a signal, with a timeout, wide, and by run", async () => {
    const sem = world().semaphore(2);
    const order: string[] = [];
    const holders = [await sem.acquire(), await sem.acquire()];
    const note = (what: string) => (slot: Slot) => {
      order.push(what);
      slot.release();
    };
    const { signal } = new AbortController();
    const all = [
      sem.acquire().then(note("plain")),
      sem.acquire({ signal }).then(note("signal")),
      sem.acquire({ width: 2 }).then(note("wide")),
      sem.acquire({ timeoutMs: 5 }).then(note("timeout")),
      sem.run(() => order.push("run")),
      sem.acquire().then(note("last")),
    ];
    for (const holder of holders) holder.release();
    await Promise.all(all);
    expect(order).toEqual(["plain", "signal", "wide", "timeout", "run", "last"]);
  });

  test("while a caller waits, tryAcquire gives undefined even if a slot is free for a smaller width", async () => {
    const sem = world().semaphore(3);
    const held = await sem.acquire({ width: 2 });
    const wide = outcome(sem.acquire({ width: 2 }));
    expect(sem.available).toBe(1);
    expect(sem.tryAcquire()).toBeUndefined();
    held.release();
    await settled();
    wide.value.release();
  });

  test("while a caller waits, a new acquire queues even if a slot is free for a smaller width", async () => {
    const sem = world().semaphore(3);
    const held = await sem.acquire({ width: 2 });
    const wide = outcome(sem.acquire({ width: 2 }));
    const narrow = outcome(sem.acquire());
    await settled();
    expect([wide.status, narrow.status, sem.waiting]).toEqual(["pending", "pending", 2]);
    held.release();
    await settled();
    wide.value.release();
    narrow.value.release();
  });

  test("while a caller waits, an acquire with timeoutMs 0 fails even if a slot is free for a smaller width", async () => {
    const sem = world().semaphore(3);
    const held = await sem.acquire({ width: 2 });
    const wide = outcome(sem.acquire({ width: 2 }));
    await expect(sem.acquire({ timeoutMs: 0 })).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT", waiting: 1 });
    held.release();
    await settled();
    wide.value.release();
  });

  test("an endless stream of narrow waiters never overtakes a wide waiter at the head", async () => {
    const sem = world().semaphore(2);
    const held = [await sem.acquire(), await sem.acquire()];
    const wide = outcome(sem.acquire({ width: 2 }));
    const narrow = [outcome(sem.acquire()), outcome(sem.acquire())];
    held[0]?.release();
    await settled();
    expect([wide.status, ...narrow.map((one) => one.status)]).toEqual(["pending", "pending", "pending"]);
    expect(sem.inUse).toBe(1);
    held[1]?.release();
    await settled();
    expect([wide.status, ...narrow.map((one) => one.status)]).toEqual(["fulfilled", "pending", "pending"]);
    wide.value.release();
    await settled();
    for (const one of narrow) one.value.release();
  });

  test("tryAcquire takes a free slot and gives undefined when there is none", () => {
    const sem = world().semaphore(1);
    const slot = sem.tryAcquire();
    expect(slot?.released).toBe(false);
    expect(sem.tryAcquire()).toBeUndefined();
    expect(slot?.release()).toBe(true);
  });
});

describe("direct hand-off", () => {
  test("release moves the slot to the first waiter before it returns", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    held.release();
    expect([sem.inUse, sem.waiting, sem.stats().acquired]).toEqual([1, 0, 2]);
    await settled();
    next.value.release();
  });

  test("no call can steal the slot between release and resumption", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    held.release();
    expect(sem.tryAcquire()).toBeUndefined();
    const late = outcome(sem.acquire());
    await settled();
    expect([next.status, late.status]).toEqual(["fulfilled", "pending"]);
    next.value.release();
    await settled();
    late.value.release();
  });

  test("a release that makes room for two waiters serves both", async () => {
    const sem = world().semaphore(3);
    const wide = await sem.acquire({ width: 3 });
    const waiters = [1, 1, 1, 1].map((width) => outcome(sem.acquire({ width })));
    wide.release();
    expect([sem.inUse, sem.waiting]).toEqual([3, 1]);
    await settled();
    expect(waiters.map((one) => one.status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "pending"]);
    for (const one of waiters) {
      await settled();
      one.value.release();
    }
  });

  test("a hand-off never results in more holders than slots", async () => {
    const sem = world().semaphore(3);
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await settled(3);
      running--;
    };
    await Promise.all(Array.from({ length: 50 }, () => sem.run(work)));
    expect([most, running]).toEqual([3, 0]);
  });
});
