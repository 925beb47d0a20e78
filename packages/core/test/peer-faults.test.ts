/** Faults that were found in other libraries, each tested here. Cost is measured by counting work, not time. */
import "./work-done.ts";
import type { Semaphore, SemaphoreEvent, Slot } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { growthOf, workDone } from "./work-done.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const many = 100_000;

/** The largest growth of the cost per waiter if there are 20 times as many. A queue that scans or shifts has 20. */
const LINEAR = 1.2;

describe("long queues", () => {
  test("the count includes the work of array.shift, of a loop, and of any other array method", async () => {
    const numbers = (size: number) => Array.from({ length: size }, (_, index) => index);
    const drains: ((queue: number[]) => void)[] = [
      (queue) => queue.shift(),
      (queue) => queue.copyWithin(0, 1).pop(),
      (queue) => [...queue, queue.pop()],
      (queue) => {
        for (let index = 0; index < queue.length; index++) if (queue[index] === -1) break;
        queue.pop();
      },
    ];
    for (const drain of drains) {
      const growth = await growthOf(50, (size) => {
        const queue = numbers(size);
        while (queue.length > 0) drain(queue);
      });
      expect(growth).toBeGreaterThan(3);
    }
  });

  test.each(["plain", "with a timeout", "with a signal"])(
    "100,000 waiters, %s, are served in order with linear work",
    async (kind) => {
      const { signal } = new AbortController();
      const options = { plain: undefined, "with a timeout": { timeoutMs: 1e6 }, "with a signal": { signal } }[kind];
      const growth = await growthOf(many / 20, async (size) => {
        const sem = world().semaphore(1);
        const held = await sem.acquire();
        let served = 0;
        let inOrder = true;
        const all: Promise<void>[] = [];
        for (let index = 0; index < size; index++) {
          all.push(
            sem.acquire(options).then((slot) => {
              inOrder &&= served++ === index;
              slot.release();
            }),
          );
        }
        held.release();
        await Promise.all(all);
        expect([served, inOrder]).toEqual([size, true]);
      });
      expect(growth).toBeLessThan(LINEAR);
    },
  );

  test("20,000 waiters that abort one by one, last first, leave with linear work", async () => {
    const growth = await growthOf(1_000, async (size) => {
      const sem = world().semaphore(1);
      const held = await sem.acquire();
      const controllers = Array.from({ length: size }, () => new AbortController());
      const waiters = controllers.map(({ signal }) => outcome(sem.acquire({ signal })));
      for (let index = size - 1; index >= 0; index--) controllers[index]?.abort("stop");
      await settled();
      expect(sem.waiting).toBe(0);
      expect(waiters.every(({ reason }) => reason === "stop")).toBe(true);
      held.release();
    });
    expect(growth).toBeLessThan(LINEAR);
  });

  test("waiters that arrive and time out behind a head that never moves leave nothing in the queue", async () => {
    const growth = await growthOf(500, async (size) => {
      const sem = world().semaphore(1);
      const held = await sem.acquire();
      const head = outcome(sem.acquire());
      for (let round = 0; round < size / 10; round++) {
        for (let index = 0; index < 10; index++) outcome(sem.acquire({ timeoutMs: 1 }));
        world().clock.advance(1);
      }
      expect([sem.waiting, sem.stats().timedOut, world().clock.pending]).toEqual([1, size, 0]);
      held.release();
      await settled();
      head.value.release();
    });
    expect(growth).toBeLessThan(LINEAR);
  });

  test("an acquire after 25,000 waiters timed out is immediate: it visits none of them", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiters = Array.from({ length: 25_000 }, () => outcome(sem.acquire({ timeoutMs: 10 })));
    world().clock.advance(10);
    held.release();
    expect([sem.inUse, sem.waiting]).toEqual([0, 0]);
    await settled();
    const done = await workDone(async () => {
      (await sem.acquire()).release();
    });
    expect(done).toBeLessThan(waiters.length / 5);
    expect(waiters.every(({ status }) => status === "rejected")).toBe(true);
  });
});

describe("stacks", () => {
  test("25,000 timeouts at once overflow no stack and leave the semaphore usable", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiters = Array.from({ length: 25_000 }, (_, index) => outcome(sem.acquire({ timeoutMs: 10 + (index % 3) })));
    world().clock.advance(12);
    await settled();
    expect(waiters.every(({ reason }) => (reason as { code: string }).code === "ACQUIRE_TIMEOUT")).toBe(true);
    held.release();
    const slot = await sem.acquire({ timeoutMs: 0 });
    slot.release();
  });

  test("25,000 waiters aborted by one signal overflow no stack", async () => {
    const sem = world().semaphore(2);
    const controller = new AbortController();
    const held = await sem.acquire({ width: 2 });
    const waiters = Array.from({ length: 25_000 }, () => outcome(sem.acquire({ signal: controller.signal, width: 2 })));
    const last = outcome(sem.acquire());
    controller.abort();
    expect(sem.waiting).toBe(1);
    held.release();
    await settled();
    expect(waiters.every(({ status }) => status === "rejected")).toBe(true);
    last.value.release();
  });

  test("a slot that a listener of the same signal frees before its 25,000 waiters are rejected overflows no stack", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const held = await sem.acquire();
    controller.signal.addEventListener("abort", () => held.release());
    const waiters = Array.from({ length: 25_000 }, () => outcome(sem.acquire({ signal: controller.signal })));
    controller.abort("stop");
    expect([sem.waiting, sem.inUse]).toEqual([0, 0]);
    await settled();
    expect(waiters.every(({ reason }) => reason === "stop")).toBe(true);
  });

  test("25,000 slots that expire at once, and 25,000 waiters served by one resize, overflow no stack", async () => {
    const sem = world().semaphore(1, { ttlMs: 10 });
    await sem.acquire();
    const waiters = Array.from({ length: 25_000 }, () => outcome(sem.acquire()));
    sem.resize(Infinity);
    expect([sem.inUse, sem.waiting]).toEqual([25_001, 0]);
    world().clock.advance(10);
    expect([sem.inUse, sem.stats().expired, world().clock.pending]).toEqual([0, 25_001, 0]);
    await settled();
    expect(waiters.every(({ status }) => status === "fulfilled")).toBe(true);
  });

  test("closing with 25,000 waiters rejects them all", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const kinds = [undefined, { timeoutMs: 1e6 }, { signal: new AbortController().signal }];
    const waiters = Array.from({ length: 25_000 }, (_, index) => outcome(sem.acquire(kinds[index % 3])));
    sem.close();
    await settled();
    expect([sem.waiting, world().clock.pending]).toEqual([0, 0]);
    expect(waiters.every(({ reason }) => (reason as { code: string }).code === "CLOSED")).toBe(true);
    held.release();
  });
});

/** The states of three waiters behind a wide holder, after `free` made room for them. */
async function afterRoomWasMade(
  free: (sem: Semaphore, held: Slot, controller: AbortController) => void,
): Promise<string[]> {
  const sem = world().semaphore(3, { ttlMs: 50 });
  const held = await sem.acquire({ width: 2 });
  const controller = new AbortController();
  const waiters = [
    outcome(sem.acquire({ width: 3, signal: controller.signal })),
    outcome(sem.acquire()),
    outcome(sem.acquire({ width: 2 })),
  ];
  free(sem, held, controller);
  await settled();
  const statuses = waiters.map(({ status }) => status);
  sem.close();
  world().clock.advance(100);
  return statuses;
}

describe("the limit", () => {
  test("a double release breaks no limit", async () => {
    const sem = world().semaphore(1);
    const slot = await sem.acquire();
    slot.release();
    slot.release();
    slot.release();
    const next = await sem.acquire();
    expect([sem.available, sem.tryAcquire()]).toEqual([0, undefined]);
    next.release();
    expect([sem.available, sem.capacity]).toEqual([1, 1]);
  });

  test("a double release while others wait serves one waiter, not two", async () => {
    const sem = world().semaphore(1);
    const slot = await sem.acquire();
    const waiters = [outcome(sem.acquire()), outcome(sem.acquire())];
    slot.release();
    slot.release();
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["fulfilled", "pending"]);
    waiters[0]?.value.release();
    await settled();
    waiters[1]?.value.release();
  });

  test("an already aborted signal does not hang, and takes nothing", async () => {
    const sem = world().semaphore(1);
    await expect(sem.acquire({ signal: AbortSignal.abort("no"), timeoutMs: 1_000 })).rejects.toBe("no");
    expect([sem.inUse, sem.waiting, world().clock.pending]).toEqual([0, 0, 0]);
  });

  test("if two waiters fit, two are served: after a wide release, an expiry, a head that leaves, a resize", async () => {
    expect(await afterRoomWasMade((_, held, controller) => (controller.abort(), held.release()))).toEqual([
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect(await afterRoomWasMade((_, __, controller) => (controller.abort(), world().clock.advance(50)))).toEqual([
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect(await afterRoomWasMade((sem) => sem.resize(6))).toEqual(["fulfilled", "fulfilled", "pending"]);
    expect(await afterRoomWasMade((sem) => sem.resize(8))).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });
});

/** A semaphore whose `onEvent` calls `inside` during the first event of a type. */
function reentrant(type: SemaphoreEvent["type"], inside: (sem: Semaphore) => void): Semaphore {
  let isDone = false;
  const sem: Semaphore = world().semaphore(1, {
    ttlMs: 1_000,
    onEvent: (event) => {
      if (event.type !== type || isDone) return;
      isDone = true;
      inside(sem);
    },
  });
  return sem;
}

describe("re-entrancy", () => {
  const types = ["acquired", "released", "expired", "timed-out", "aborted", "resized"] as const;
  const acts = {
    acquire: (sem: Semaphore) => void outcome(sem.acquire().then((slot) => slot.release())),
    tryAcquire: (sem: Semaphore) => void sem.tryAcquire()?.release(),
    resize: (sem: Semaphore) => sem.resize(2),
    close: (sem: Semaphore) => sem.close(),
    "advance time": () => world().clock.advance(5_000),
  };

  for (const type of types) {
    test.each(Object.entries(acts))(`${type}: an onEvent that calls %s inside breaks nothing`, async (_, act) => {
      const sem = reentrant(type, act);
      const controller = new AbortController();
      const held = await sem.acquire().catch(() => undefined);
      const waiters = [
        outcome(sem.acquire({ signal: controller.signal })),
        outcome(sem.acquire({ timeoutMs: 10 })),
        outcome(sem.acquire()),
        outcome(sem.acquire()),
      ];
      controller.abort("stop");
      world().clock.advance(10);
      await settled();
      expect(sem.inUse).toBeLessThanOrEqual(sem.capacity);
      sem.resize(sem.capacity);
      held?.release();
      for (const waiter of waiters) {
        expect(sem.inUse).toBeLessThanOrEqual(sem.capacity);
        await world().clock.advanceAsync(1_000);
        if (waiter.status === "fulfilled") waiter.value.release();
      }
      await world().clock.advanceAsync(10_000);
      await settled();
      expect([sem.inUse, sem.waiting]).toEqual([0, 0]);
      expect(waiters.map(({ status }) => status)).not.toContain("pending");
      const { acquired, released, expired } = sem.stats();
      expect(acquired).toBe(released + expired);
    });
  }

  test("while listeners of a released event run, their own acquire cannot overtake a waiter", async () => {
    const order: string[] = [];
    const sem = reentrant("released", (inner) => {
      expect(inner.tryAcquire()).toBeUndefined();
      void inner.acquire().then((slot) => {
        order.push("listener");
        slot.release();
      });
    });
    const held = await sem.acquire();
    const waiter = sem.acquire().then((slot) => {
      order.push("waiter");
      slot.release();
    });
    held.release();
    await waiter;
    await settled();
    expect(order).toEqual(["waiter", "listener"]);
  });

  test.each(Object.entries(acts))(
    "an abort listener of the caller that calls %s inside breaks nothing",
    async (_, act) => {
      for (const isFirst of [true, false]) {
        const sem = world().semaphore(1);
        const controller = new AbortController();
        const { signal } = controller;
        const held = await sem.acquire();
        if (isFirst) signal.addEventListener("abort", () => act(sem));
        const waiters = [outcome(sem.acquire({ signal })), outcome(sem.acquire({ signal })), outcome(sem.acquire())];
        if (!isFirst) signal.addEventListener("abort", () => act(sem));
        signal.addEventListener("abort", () => held.release());
        controller.abort("stop");
        await settled();
        expect(waiters.slice(0, 2).every(({ status }) => status !== "pending")).toBe(true);
        for (const waiter of waiters) if (waiter.status === "fulfilled") waiter.value.release();
        await settled();
        expect([sem.inUse, sem.waiting]).toEqual([0, 0]);
      }
    },
  );

  test("a listener of the slot's own signal may call release, acquire and close", async () => {
    const sem = world().semaphore(1, { ttlMs: 10, abortOnExpiry: true });
    const slot = await sem.acquire();
    const waiter = outcome(sem.acquire());
    let again: ReturnType<typeof outcome<Slot>> | undefined;
    slot.signal.addEventListener("abort", () => {
      expect([slot.released, slot.release(), sem.inUse]).toEqual([true, false, 1]);
      again = outcome(sem.acquire());
      sem.close();
    });
    world().clock.advance(10);
    await settled();
    expect(again?.reason).toMatchObject({ code: "CLOSED" });
    waiter.value.release();
  });

  test("work inside run that acquires the same semaphore waits for a slot like any other caller", async () => {
    const sem = world().semaphore(2);
    const depth = await sem.run(() => sem.run(() => sem.inUse));
    expect(depth).toBe(2);
  });
});
