import { AcquireTimeoutError, ClosedError, QueueFullError } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("cancellation consumes no slot", () => {
  test("a cancelled waiter consumes no slot", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const held = await sem.acquire();
    const cancelled = outcome(sem.acquire({ signal: controller.signal }));
    const next = outcome(sem.acquire());
    controller.abort();
    expect(sem.waiting).toBe(1);
    held.release();
    await settled();
    expect([cancelled.status, next.status]).toEqual(["rejected", "fulfilled"]);
    next.value.release();
    expect(sem.stats()).toMatchObject({ acquired: 2, released: 2, aborted: 1 });
  });

  test("after many others have left, an abort still removes its own waiter and keeps the order (QUEUE2)", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const order: string[] = [];
    const ask = (label: string): AbortController => {
      const controller = new AbortController();
      sem.acquire({ signal: controller.signal }).then(
        (slot) => {
          order.push(label);
          slot.release();
        },
        () => order.push(`no ${label}`),
      );
      return controller;
    };
    const leaving = Array.from({ length: 50 }, () => ask("gap"));
    const stays = ["a", "b", "c"].map(ask);
    for (const controller of leaving) controller.abort();
    stays.push(ask("d"));
    stays[1]?.abort();
    held.release();
    await settled();
    expect(order.slice(50)).toEqual(["no b", "a", "c", "d"]);
  });

  test("an abort rejects with the reason of the signal, whatever its type", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    for (const reason of [new Error("mine"), "text", 0, null, { any: "thing" }]) {
      const controller = new AbortController();
      const waiter = outcome(sem.acquire({ signal: controller.signal }));
      controller.abort(reason);
      await settled();
      expect(waiter.status).toBe("rejected");
      expect(waiter.reason).toBe(reason);
    }
    held.release();
  });

  test("an already aborted signal rejects even if a slot is free", async () => {
    const sem = world().semaphore(1);
    const reason = new Error("before");
    const waiter = outcome(sem.acquire({ signal: AbortSignal.abort(reason) }));
    expect(sem.inUse).toBe(0);
    await settled();
    expect(waiter.reason).toBe(reason);
    expect(sem.stats()).toMatchObject({ acquired: 0, aborted: 1 });
  });

  test("an already aborted signal rejects and does not hang when none is free", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const reason = new Error("before");
    const waiter = outcome(sem.acquire({ signal: AbortSignal.abort(reason) }));
    expect(sem.waiting).toBe(0);
    await settled();
    expect(waiter.reason).toBe(reason);
    held.release();
  });

  test("an abort after the hand-off does not reject: the caller owns the slot", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const held = await sem.acquire();
    const next = outcome(sem.acquire({ signal: controller.signal }));
    held.release();
    controller.abort();
    await settled();
    expect(next.status).toBe("fulfilled");
    expect(sem.inUse).toBe(1);
    next.value.release();
    expect(sem.stats().aborted).toBe(0);
  });

  test("an abort of a signal whose slot was granted at once changes nothing", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const slot = await sem.acquire({ signal: controller.signal });
    controller.abort();
    expect([slot.released, sem.inUse]).toEqual([false, 1]);
    slot.release();
  });

  test("a slot is not handed to a waiter whose signal has aborted but whose listener has not run yet", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const held = await sem.acquire();
    // Registered first, so it runs before the semaphore's own listener.
    controller.signal.addEventListener("abort", () => held.release());
    const cancelled = outcome(sem.acquire({ signal: controller.signal }));
    const next = outcome(sem.acquire());
    controller.abort("stop");
    await settled();
    expect([cancelled.status, cancelled.reason, next.status]).toEqual(["rejected", "stop", "fulfilled"]);
    next.value.release();
    expect(sem.stats().aborted).toBe(1);
  });

  test("a timeout rejects with AcquireTimeoutError, with the time waited and the number of other waiters", async () => {
    const sem = world().semaphore(1, { name: "printer" });
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire({ timeoutMs: 50 }));
    const other = outcome(sem.acquire());
    world().clock.advance(49);
    await settled();
    expect(waiter.status).toBe("pending");
    world().clock.advance(1);
    await settled();
    expect(waiter.reason).toBeInstanceOf(AcquireTimeoutError);
    expect(waiter.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 50, waiting: 1, semaphore: "printer" });
    held.release();
    await settled();
    other.value.release();
    expect(sem.stats()).toMatchObject({ timedOut: 1, acquired: 2 });
  });

  test("a timeout records no stack trace and restores the host's stackTraceLimit", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire({ timeoutMs: 50 }));
    const limit = Error.stackTraceLimit;
    world().clock.advance(50);
    await settled();
    expect((waiter.reason as Error).stack).not.toContain("\n");
    expect(Error.stackTraceLimit).toBe(limit);
    held.release();
  });

  test("timeouts work on a host whose stackTraceLimit is read-only", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire({ timeoutMs: 50 }));
    const before = Object.getOwnPropertyDescriptor(Error, "stackTraceLimit");
    Object.defineProperty(Error, "stackTraceLimit", { ...before, writable: false });
    try {
      world().clock.advance(50);
    } finally {
      Object.defineProperty(Error, "stackTraceLimit", { ...before });
    }
    await settled();
    expect(waiter.reason).toBeInstanceOf(AcquireTimeoutError);
    held.release();
  });

  test("with timeoutMs 0, a free slot is granted", async () => {
    const sem = world().semaphore(1);
    const slot = await sem.acquire({ timeoutMs: 0 });
    expect(slot.release()).toBe(true);
  });

  test("with timeoutMs 0 and no free slot, acquire rejects at once and sets no timer", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const never = outcome(sem.acquire({ timeoutMs: 0 }));
    expect([sem.waiting, world().clock.pending, sem.stats().timedOut]).toEqual([0, 0, 1]);
    await settled();
    expect(never.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 0, waiting: 0 });
    held.release();
  });

  test("acquireTimeoutMs is the timeout of an acquire without timeoutMs", async () => {
    const sem = world().semaphore(1, { acquireTimeoutMs: 20 });
    const held = await sem.acquire();
    const byDefault = outcome(sem.acquire());
    const own = outcome(sem.acquire({ timeoutMs: 30 }));
    const endless = outcome(sem.acquire({ timeoutMs: Infinity }));
    await world().clock.advanceAsync(20);
    expect([byDefault.status, own.status]).toEqual(["rejected", "pending"]);
    await world().clock.advanceAsync(1_000_000);
    expect([own.status, endless.status]).toEqual(["rejected", "pending"]);
    held.release();
    await settled();
    endless.value.release();
  });

  test("acquireTimeoutMs applies to run, too", async () => {
    const sem = world().semaphore(1, { acquireTimeoutMs: 20 });
    const held = await sem.acquire();
    const run = outcome(sem.run(() => 1));
    await world().clock.advanceAsync(20);
    expect(run.reason).toBeInstanceOf(AcquireTimeoutError);
    held.release();
  });

  test("after close a waiter rejects with ClosedError and consumes no slot", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    sem.close();
    await settled();
    expect(waiter.reason).toBeInstanceOf(ClosedError);
    held.release();
    expect(sem.stats()).toMatchObject({ acquired: 1, released: 1, rejected: 1, waiting: 0 });
  });

  test("with maxWaiters waiters, a further acquire rejects with QueueFullError", async () => {
    const sem = world().semaphore(1, { maxWaiters: 1 });
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    const refused = outcome(sem.acquire());
    await settled();
    expect(refused.reason).toBeInstanceOf(QueueFullError);
    expect(refused.reason).toMatchObject({ code: "QUEUE_FULL", waiting: 1, retryable: true });
    expect(sem.stats().rejected).toBe(1);
    held.release();
    await settled();
    waiter.value.release();
  });

  test("a waiter that left makes room under maxWaiters", async () => {
    const sem = world().semaphore(1, { maxWaiters: 1 });
    const controller = new AbortController();
    const held = await sem.acquire();
    const left = outcome(sem.acquire({ signal: controller.signal }));
    controller.abort();
    const waiter = outcome(sem.acquire());
    held.release();
    await settled();
    expect(left.status).toBe("rejected");
    waiter.value.release();
  });

  test("with maxWaiters 0 no caller waits, and free slots are granted", async () => {
    const sem = world().semaphore(1, { maxWaiters: 0 });
    const slot = await sem.acquire();
    await expect(sem.acquire()).rejects.toBeInstanceOf(QueueFullError);
    slot.release();
  });

  test("when a wide waiter at the head leaves, the waiters behind it are served at once", async () => {
    for (const end of ["abort", "timeout"] as const) {
      const sem = world().semaphore(2);
      const controller = new AbortController();
      const held = await sem.acquire();
      const wide = outcome(sem.acquire({ width: 2, timeoutMs: 10, signal: controller.signal }));
      const narrow = outcome(sem.acquire());
      if (end === "abort") controller.abort();
      else world().clock.advance(10);
      expect([sem.inUse, sem.waiting], end).toEqual([2, 0]);
      await settled();
      expect(wide.status).toBe("rejected");
      narrow.value.release();
      held.release();
    }
  });

  test("a waiter leaves no listener or timer, however its wait ends", async () => {
    const sem = world().semaphore(1);
    const { clock, guard } = world();
    for (const end of ["granted", "aborted", "timed out", "refused"]) {
      const controller = new AbortController();
      const held = await sem.acquire();
      const waiter = outcome(sem.acquire({ signal: controller.signal, timeoutMs: 10, width: 1 }));
      expect(clock.pending).toBe(1);
      if (end === "granted") held.release();
      if (end === "aborted") controller.abort();
      if (end === "timed out") clock.advance(10);
      if (end === "refused") sem.close();
      expect(clock.pending, end).toBe(0);
      await settled();
      if (end === "granted") waiter.value.release();
      held.release();
      guard.check();
    }
  });

  test("a signal ends all waits that use it, in order, and no other wait", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const held = await sem.acquire();
    const order: string[] = [];
    const wait = (what: string, signal?: AbortSignal) =>
      sem.acquire({ signal }).then(
        (slot) => slot.release(),
        () => order.push(what),
      );
    const all = [wait("a", controller.signal), wait("b"), wait("c", controller.signal), wait("d", controller.signal)];
    controller.abort();
    expect(sem.waiting).toBe(1);
    held.release();
    await Promise.all(all);
    expect(order).toEqual(["a", "c", "d"]);
  });
});
