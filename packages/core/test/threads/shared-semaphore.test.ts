import { AcquireTimeoutError, ClosedError, QueueFullError } from "slotkeeper";
import { FakeClock, settled } from "slotkeeper/testing";
import { SharedSemaphore, type SharedSlot, watch } from "slotkeeper/threads";
import { describe, expect, it } from "vitest";

/** Two attachments, as two threads have them, on one virtual clock. */
function pair(slots: number, options: { ttlMs?: number; maxWaiters?: number; maxHolders?: number } = {}) {
  const clock = new FakeClock(1000);
  const a = SharedSemaphore.create(slots, { ...options, clock });
  const b = SharedSemaphore.attach(structuredClone(a.handle), { threadId: 7, clock });
  return { a, b, clock };
}

/** A promise's state, without waiting for it. */
function watched<T>(promise: Promise<T>): { value?: T; error?: unknown; isSettled: boolean } {
  const seen: { value?: T; error?: unknown; isSettled: boolean } = { isSettled: false };
  promise.then(
    (value) => Object.assign(seen, { value, isSettled: true }),
    (error: unknown) => Object.assign(seen, { error, isSettled: true }),
  );
  return seen;
}

/** Notifications between attachments come through the host's event loop. */
async function turn(): Promise<void> {
  for (let count = 0; count < 5; count++) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe("a slot", () => {
  it("is seen in use by every attachment, and free again after release", () => {
    const { a, b } = pair(2);
    const slot = a.tryAcquire();
    expect([a.inUse, b.inUse, b.available, b.capacity]).toEqual([1, 1, 1, 2]);
    expect(slot?.number).toBe(1);
    expect(slot?.release()).toBe(true);
    expect([a.inUse, b.inUse]).toEqual([0, 0]);
  });

  it("releases once, and never frees another's (DISPATCH2)", () => {
    const { a, b } = pair(1);
    const first = a.tryAcquire();
    expect(first?.release()).toBe(true);
    const second = b.tryAcquire();
    expect(first?.release()).toBe(false);
    expect(first?.released).toBe(true);
    expect(b.inUse).toBe(1);
    expect(second?.release()).toBe(true);
  });

  it("is not confused with a later one of the same thread whose tag came round again (DISPATCH2)", () => {
    const { a, clock } = pair(1, { ttlMs: 10 });
    const old = a.tryAcquire();
    clock.advance(100);
    // The first of these takes back the overdue one; 2 ** 20 acquisitions later tags repeat.
    let current: SharedSlot | undefined;
    for (let count = 0; count < 2 ** 20; count++) {
      current?.release();
      current = a.tryAcquire();
    }
    expect(old?.released).toBe(true);
    expect(old?.release()).toBe(false);
    expect(old?.renew()).toBe(false);
    expect(current?.release()).toBe(true);
  });

  it("is given back at the end of a using block", () => {
    const { a } = pair(1);
    const slot = a.tryAcquire();
    slot?.[Symbol.dispose]();
    expect(a.inUse).toBe(0);
  });

  it("is given back by run whatever becomes of the work", async () => {
    const { a, b } = pair(1);
    expect(await a.run(() => b.inUse)).toBe(1);
    await expect(a.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(b.inUse).toBe(0);
  });
});

describe("waiting", () => {
  it("is in the order of arrival across attachments, and no thread barges in (DISPATCH3, DISPATCH4)", async () => {
    const { a, b } = pair(1);
    const held = a.tryAcquire();
    const order: string[] = [];
    const asked = ["b1", "a1", "b2"].map(async (name) => {
      const slot = await (name.startsWith("a") ? a : b).acquire();
      order.push(name);
      expect(a.tryAcquire()).toBeUndefined();
      slot.release();
    });
    expect(a.waiting).toBe(3);
    held?.release();
    // Handed over before release returns.
    expect(a.tryAcquire()).toBeUndefined();
    await Promise.all(asked);
    expect(order).toEqual(["b1", "a1", "b2"]);
    expect([a.inUse, a.waiting]).toEqual([0, 0]);
  });

  it("ends with the signal's own reason, consumes no slot, and leaves no timer or listener", async () => {
    const { a, b, clock } = pair(1);
    const held = a.tryAcquire();
    const controller = new AbortController();
    const first = watched(b.acquire({ signal: controller.signal, timeoutMs: 50 }));
    const second = watched(b.acquire());
    const reason = { why: "changed my mind" };
    controller.abort(reason);
    await settled();
    expect(first.error).toBe(reason);
    expect([a.waiting, clock.pending]).toEqual([1, 1]);
    held?.release();
    await turn();
    expect(second.value?.release()).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it("rejects at once for a signal that is aborted already, even if a slot is free", async () => {
    const { a } = pair(1);
    await expect(a.acquire({ signal: AbortSignal.abort("no") })).rejects.toBe("no");
    expect(a.inUse).toBe(0);
  });

  it("ends with AcquireTimeoutError at its timeout; 0 does not wait", async () => {
    const { a, b, clock } = pair(1);
    (await a.acquire({ timeoutMs: 0 })).release();
    const held = a.tryAcquire();
    await expect(b.acquire({ timeoutMs: 0 })).rejects.toThrow(AcquireTimeoutError);
    const asked = watched(b.acquire({ timeoutMs: 30 }));
    await clock.advanceAsync(30);
    expect(asked.error).toBeInstanceOf(AcquireTimeoutError);
    expect((asked.error as AcquireTimeoutError).waitedMs).toBe(30);
    held?.release();
    expect(b.tryAcquire()).toBeDefined();
  });

  it("that was granted is not undone by an abort (DISPATCH6)", async () => {
    const { a, b } = pair(1);
    const held = a.tryAcquire();
    const controller = new AbortController();
    const asked = b.acquire({ signal: controller.signal });
    held?.release();
    controller.abort();
    expect((await asked).release()).toBe(true);
  });

  it("is bounded by maxWaiters over all attachments, and cancelled waiters do not count", async () => {
    const { a, b } = pair(1, { maxWaiters: 2 });
    const held = a.tryAcquire();
    const controller = new AbortController();
    const first = watched(a.acquire({ signal: controller.signal }));
    const second = watched(b.acquire());
    await expect(b.acquire()).rejects.toThrow(QueueFullError);
    controller.abort();
    const third = watched(b.acquire());
    await settled();
    expect([first.isSettled, second.isSettled, third.isSettled]).toEqual([true, false, false]);
    held?.release();
    await turn();
    second.value?.release();
    await turn();
    expect(third.value?.release()).toBe(true);
  });

  it("costs no wait cell once cancelled, however long the first in the queue stays (TQUEUE4)", async () => {
    const { a, b } = pair(1, { maxWaiters: 8 });
    const held = a.tryAcquire();
    const first = watched(b.acquire());
    for (let count = 0; count < 5000; count++) {
      const controller = new AbortController();
      const asked = a.acquire({ signal: controller.signal });
      controller.abort("gone");
      await asked.catch((reason: unknown) => expect(reason).toBe("gone"));
    }
    expect(a.waiting).toBe(1);
    held?.release();
    await turn();
    expect(first.value?.release()).toBe(true);
  });

  it("keeps the thread alive while it is pending, and not longer", async () => {
    const { a, b, clock } = pair(1);
    const held = a.tryAcquire();
    const asked = b.acquire();
    expect(clock.keepingAlive).toBe(1);
    held?.release();
    await asked;
    expect(clock.pending).toBe(0);
  });

  it("does not block the main thread, not even when asked to", () => {
    const { a } = pair(1);
    const slot = a.acquireSync();
    expect(() => a.acquireSync(0)).toThrow(AcquireTimeoutError);
    // Vitest may run this file in a worker, where blocking is allowed.
    expect(() => a.acquireSync(1)).toThrow(/main thread must not block|No slot within/);
    slot.release();
  });
});

describe("a ttl", () => {
  it("gives an overdue slot to a waiter, and the late release frees nothing", async () => {
    const { a, b, clock } = pair(1, { ttlMs: 100 });
    const old = a.tryAcquire();
    expect(old?.expiresAt).toBeGreaterThanOrEqual(1100);
    const asked = watched(b.acquire());
    await clock.advanceAsync(99);
    expect(asked.isSettled).toBe(false);
    await clock.advanceAsync(5);
    await turn();
    expect(asked.value?.released).toBe(false);
    expect(old?.release()).toBe(false);
    expect(old?.expiresAt).toBeUndefined();
    expect(a.inUse).toBe(1);
    asked.value?.release();
    expect(clock.pending).toBe(0);
  });

  it("is postponed by renewing", async () => {
    const { a, b, clock } = pair(1, { ttlMs: 100 });
    const slot = a.tryAcquire();
    const asked = watched(b.acquire());
    await clock.advanceAsync(80);
    expect(slot?.renew()).toBe(true);
    await clock.advanceAsync(80);
    expect([asked.isSettled, slot?.released]).toEqual([false, false]);
    expect(slot?.renew(500)).toBe(true);
    await clock.advanceAsync(400);
    expect(asked.isSettled).toBe(false);
    expect(slot?.release()).toBe(true);
    await turn();
    expect(asked.value?.release()).toBe(true);
  });

  it("that no caller waits for costs the holder nothing", () => {
    const { a, clock } = pair(1, { ttlMs: 100 });
    const slot = a.tryAcquire();
    expect(clock.pending).toBe(0);
    clock.advance(1000);
    expect(slot?.release()).toBe(true);
  });
});

describe("resize", () => {
  it("wakes waiters at once when it grows, and evicts no holder when it shrinks (DISPATCH1)", async () => {
    const { a, b } = pair(1);
    const first = a.tryAcquire();
    const asked = watched(b.acquire());
    b.resize(2);
    await turn();
    expect(asked.isSettled).toBe(true);
    a.resize(1);
    expect([a.capacity, a.inUse, a.available]).toEqual([1, 2, 0]);
    first?.release();
    expect(a.tryAcquire()).toBeUndefined();
    asked.value?.release();
    expect(a.tryAcquire()).toBeDefined();
    expect(a.tryAcquire()).toBeUndefined();
  });

  it("beyond the table of holders is a RangeError that changes nothing", () => {
    const { a } = pair(1, { maxHolders: 2 });
    expect(() => a.resize(3)).toThrow("Expected `slots` to be an integer from 1 to 2, got 3");
    expect(a.capacity).toBe(1);
  });
});

describe("close", () => {
  it("rejects waiters and later acquires everywhere; holders may still release; twice is once", async () => {
    const { a, b } = pair(1);
    const held = a.tryAcquire();
    const asked = watched(b.acquire());
    a.close(new Error("shutting down"));
    a.close();
    await turn();
    expect(asked.error).toBeInstanceOf(ClosedError);
    await expect(a.acquire()).rejects.toMatchObject({ code: "CLOSED", cause: { message: "shutting down" } });
    await expect(b.acquire()).rejects.toThrow(ClosedError);
    expect(() => b.acquireSync()).toThrow(ClosedError);
    expect(b.closed).toBe(true);
    expect(held?.release()).toBe(true);
    expect(b.tryAcquire()).toBeUndefined();
    expect(b.inUse).toBe(0);
  });
});

describe("reap", () => {
  it("takes back what a thread held and waited for, and says how many slots", async () => {
    const { a, b } = pair(2);
    b.tryAcquire();
    b.tryAcquire();
    const asked = watched(a.acquire());
    void b.acquire();
    expect(a.waiting).toBe(2);
    expect(a.reap(7)).toBe(2);
    await settled();
    expect(asked.isSettled).toBe(true);
    expect([a.inUse, a.waiting]).toEqual([1, 0]);
    expect(a.reap(7)).toBe(0);
  });

  it("gives the place in the table back", () => {
    const { a, clock } = pair(1);
    for (let count = 0; count < 3000; count++) {
      SharedSemaphore.attach(a.handle, { threadId: 8, clock });
      a.reap(8);
    }
    expect(a.tryAcquire()).toBeDefined();
  });

  it("of oneself is refused", () => {
    const { b } = pair(1);
    expect(() => b.reap(7)).toThrow(TypeError);
  });
});

describe("misuse", () => {
  it.each([
    [null, "null"],
    [5, "5"],
    [{ type: "slotkeeper.shared-semaphore" }, "[object Object]"],
  ])("a handle of %s is refused by name, expectation and value", (handle, shown) => {
    const message = `Expected \`handle\` to be the \`handle\` of a SharedSemaphore, got ${shown}`;
    expect(() => SharedSemaphore.attach(handle as never)).toThrow(new TypeError(message));
  });

  it("names the field, the expectation and the value", async () => {
    expect(() => SharedSemaphore.create(0)).toThrow("Expected `slots` to be an integer from 1 to 1024, got 0");
    expect(() => SharedSemaphore.create(Number.POSITIVE_INFINITY)).toThrow(RangeError);
    expect(() => SharedSemaphore.create(5, { maxHolders: 4 })).toThrow("Expected `slots` to be an integer from 1 to 4");
    expect(() => SharedSemaphore.create(1, { ttlMs: 0, maxWaiters: -1 })).toThrow(/`ttlMs`.*`maxWaiters`/);
    expect(() => SharedSemaphore.create(1, { slot: 2 } as object)).toThrow("Unknown option `slot`");
    expect(() => SharedSemaphore.attach({} as never)).toThrow(TypeError);
    expect(() =>
      SharedSemaphore.attach({ type: "slotkeeper.shared-semaphore", buffer: new SharedArrayBuffer(1024) }),
    ).toThrow(TypeError);
    const { a } = pair(1);
    await expect(a.acquire({ timeoutMs: -1 })).rejects.toThrow("Expected `timeoutMs` to be a number from 0 up, got -1");
    await expect(a.acquire({ timeout: 1 } as object)).rejects.toThrow(TypeError);
    expect(() => a.tryAcquire()?.renew(5)).toThrow(TypeError);
    expect(() => watch({ threadId: -1 } as never, a)).toThrow("threadId -1");
  });
});
