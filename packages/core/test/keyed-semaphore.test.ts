import { ClosedError, type KeyedSemaphore } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const quarterHour = 900_000;

describe("KeyedSemaphore", () => {
  test("every key has its own slots and its own queue", async () => {
    const keyed = world().keyed(1);
    const a = await keyed.acquire("a");
    const b = await keyed.acquire("b");
    const nextA = outcome(keyed.acquire("a"));
    expect([keyed.tryAcquire("a"), keyed.tryAcquire("b")]).toEqual([undefined, undefined]);
    b.release();
    await settled();
    expect(nextA.status).toBe("pending");
    a.release();
    await settled();
    nextA.value.release();
    keyed.close();
  });

  test("every value is a key of its own: the empty string, undefined, null, NaN, 0, objects, symbols", async () => {
    const keyed = world().keyed<unknown>(1);
    const keys = ["", undefined, null, Number.NaN, 0, false, {}, {}, Symbol("k"), "undefined"];
    const slots = await Promise.all(keys.map((key) => keyed.acquire(key)));
    expect(keyed.size).toBe(keys.length);
    for (const key of keys) expect(keyed.tryAcquire(key)).toBeUndefined();
    for (const slot of slots) slot.release();
    for (const key of keys) keyed.tryAcquire(key)?.release();
    expect(keyed.stats().acquired).toBe(2 * keys.length);
    keyed.close();
  });

  test("a key is dropped only when idle for idleMs, with nothing held", async () => {
    const keyed = world().keyed(1, { idleMs: 100 });
    const held = await keyed.acquire("held");
    (await keyed.acquire("idle")).release();
    world().clock.advance(99);
    expect(keyed.sweep()).toBe(0);
    world().clock.advance(1);
    expect([keyed.sweep(), keyed.size]).toEqual([1, 1]);
    held.release();
    expect(keyed.sweep()).toBe(0);
    world().clock.advance(100);
    expect([keyed.sweep(), keyed.size]).toEqual([1, 0]);
  });

  test("sweep accepts an idle time for one call", async () => {
    const keyed = world().keyed(1);
    (await keyed.acquire("a")).release();
    expect([keyed.sweep(0), keyed.size]).toEqual([1, 0]);
    expect(() => keyed.sweep(-1)).toThrow(/`idleMs`.*got -1/);
  });

  test("a key with a waiter is not dropped", async () => {
    const keyed = world().keyed(1);
    const held = await keyed.acquire("a");
    const waiter = outcome(keyed.acquire("a"));
    expect(keyed.sweep(0)).toBe(0);
    held.release();
    await settled();
    waiter.value.release();
    expect(keyed.sweep(0)).toBe(1);
  });

  test("a key is not dropped during a hand-over: it counts as held", async () => {
    const keyed = world().keyed(1);
    const held = await keyed.acquire("a");
    const waiter = outcome(keyed.acquire("a"));
    held.release();
    expect([keyed.sweep(0), keyed.tryAcquire("a")]).toEqual([0, undefined]);
    await settled();
    waiter.value.release();
    keyed.close();
  });

  test("a key is not dropped before the caller of a free slot has resumed", async () => {
    const keyed = world().keyed(1);
    const slot = outcome(keyed.acquire("a", { timeoutMs: 10 }));
    expect([keyed.sweep(0), keyed.tryAcquire("a")]).toEqual([0, undefined]);
    await settled();
    slot.value.release();
    keyed.close();
  });

  test("a sweep every sweepEveryMs drops the keys that have been idle for idleMs", async () => {
    const keyed = world().keyed(1, { idleMs: 100, sweepEveryMs: 1_000 });
    (await keyed.acquire("a")).release();
    world().clock.advance(999);
    expect(keyed.size).toBe(1);
    world().clock.advance(1);
    expect(keyed.size).toBe(0);
  });

  test("the default of idleMs and sweepEveryMs is 15 minutes", async () => {
    const keyed = world().keyed(1);
    (await keyed.acquire("a")).release();
    world().clock.advance(quarterHour - 1);
    expect(keyed.size).toBe(1);
    world().clock.advance(1);
    expect(keyed.size).toBe(0);
    (await keyed.acquire("a")).release();
    world().clock.advance(quarterHour - 1);
    expect([keyed.sweep(), keyed.size]).toEqual([0, 1]);
    world().clock.advance(1);
    expect([keyed.sweep(), keyed.size]).toEqual([1, 0]);
  });

  test("the timer starts again after every sweep, also after a call of `sweep`", async () => {
    const keyed = world().keyed(1);
    (await keyed.acquire("a")).release();
    world().clock.advance(quarterHour - 1);
    keyed.sweep();
    world().clock.advance(quarterHour - 1);
    expect(keyed.size).toBe(1);
    world().clock.advance(1);
    expect(keyed.size).toBe(0);
  });

  test("a new key does not postpone the sweep", () => {
    const keyed = world().keyed(1, { idleMs: 100, sweepEveryMs: 1_000 });
    keyed.tryAcquire("a")?.release();
    world().clock.advance(999);
    keyed.tryAcquire("b")?.release();
    world().clock.advance(1);
    expect(keyed.size).toBe(1);
    keyed.close();
  });

  test("with sweepEveryMs Infinity, the timer has the longest delay that hosts support", async () => {
    const delays: number[] = [];
    const { clock } = world();
    const noting = {
      now: () => clock.now(),
      setTimer: (callback: () => void, delayMs: number) => {
        delays.push(delayMs);
        return clock.setTimer(callback, delayMs);
      },
      clearTimer: (timer: unknown) => clock.clearTimer(timer),
    };
    const keyed = world().keyed(1, { sweepEveryMs: Infinity, clock: noting });
    (await keyed.acquire("a")).release();
    expect(delays).toEqual([2 ** 31 - 1]);
    keyed.close();
  });

  test("the sweep timer stops when no key is left, and starts again with the next key", async () => {
    const keyed = world().keyed(1, { idleMs: 10, sweepEveryMs: 50 });
    for (let round = 0; round < 3; round++) {
      (await keyed.acquire("a")).release();
      expect(world().clock.pending).toBe(1);
      world().clock.advance(100);
      expect([keyed.size, world().clock.pending]).toEqual([0, 0]);
    }
  });

  test("a drop and a lookup never give one key two gates", async () => {
    const keyed = world().keyed(1);
    for (let round = 0; round < 20; round++) {
      const slot = outcome(keyed.acquire("a", round % 2 ? { timeoutMs: 5 } : undefined));
      keyed.sweep(0);
      const rival = outcome(keyed.acquire("a", { timeoutMs: 0 }));
      keyed.sweep(0);
      await settled();
      expect([slot.status, rival.status]).toEqual(["fulfilled", "rejected"]);
      slot.value.release();
      keyed.sweep(0);
    }
  });

  test("run holds a slot of the key while the work runs", async () => {
    const keyed = world().keyed(1);
    expect(await keyed.run("a", (slot) => [slot.width, keyed.inUse])).toEqual([1, 1]);
    await expect(keyed.run("a", () => Promise.reject(new Error("inside")))).rejects.toThrow("inside");
    expect(keyed.inUse).toBe(0);
    keyed.close();
  });

  test("options of acquire apply per key: width, timeoutMs, signal", async () => {
    const keyed = world().keyed(2);
    const wide = await keyed.acquire("a", { width: 2 });
    const controller = new AbortController();
    const waiters = [keyed.acquire("a", { timeoutMs: 10 }), keyed.acquire("a", { signal: controller.signal })].map(
      outcome,
    );
    controller.abort("stop");
    await world().clock.advanceAsync(10);
    expect(waiters[0]?.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    expect(waiters[1]?.reason).toBe("stop");
    await expect(keyed.acquire("a", { width: 3 })).rejects.toThrow(RangeError);
    wide.release();
    keyed.close();
  });

  test("options of the semaphore apply per key: ttlMs, maxWaiters, acquireTimeoutMs, onEvent", async () => {
    const types: string[] = [];
    const onEvent = ({ type, key }: { type: string; key: unknown }) => types.push(`${type} ${String(key)}`);
    const keyed = world().keyed(1, { ttlMs: 50, maxWaiters: 1, acquireTimeoutMs: 10, onEvent });
    await keyed.acquire("a");
    const waiter = outcome(keyed.acquire("a"));
    await expect(keyed.acquire("a")).rejects.toMatchObject({ code: "QUEUE_FULL" });
    await world().clock.advanceAsync(50);
    expect(waiter.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    expect(types).toEqual(["acquired a", "timed-out a", "expired a"]);
    expect(keyed.stats()).toMatchObject({ acquired: 1, expired: 1, timedOut: 1, rejected: 1, inUse: 0, waiting: 0 });
    keyed.close();
  });

  test("close rejects the waiters of every key, and later acquires of known and new keys", async () => {
    const keyed = world().keyed(1);
    const held = await keyed.acquire("a");
    const waiter = outcome(keyed.acquire("a"));
    keyed.close("going down");
    const late = [outcome(keyed.acquire("a")), outcome(keyed.acquire("new")), outcome(keyed.run("b", () => 0))];
    await settled();
    for (const { reason } of [waiter, ...late]) {
      expect(reason).toBeInstanceOf(ClosedError);
      expect(reason).toMatchObject({ message: "going down" });
    }
    expect([keyed.tryAcquire("a"), keyed.tryAcquire("x"), keyed.closed]).toEqual([undefined, undefined, true]);
    expect([held.release(), keyed.inUse, keyed.size, world().clock.pending]).toEqual([true, 0, 0, 0]);
  });

  test("a second close changes nothing and emits no event", () => {
    const types: string[] = [];
    const keyed = world().keyed(1, { onEvent: ({ type }) => types.push(type) });
    keyed.tryAcquire("a")?.release();
    keyed.close();
    keyed.close();
    expect(types).toEqual(["acquired", "released", "closed"]);
  });

  test("a key with nothing held costs no memory after the sweep", async () => {
    const keyed = world().keyed<object>(1, { idleMs: 10 });
    const use = (index: number) => {
      const key = { index };
      keyed.tryAcquire(key)?.release();
      return new WeakRef(key);
    };
    const keys = Array.from({ length: 100 }, (_, index) => use(index));
    world().clock.advance(10);
    expect([keyed.sweep(), keyed.size]).toEqual([100, 0]);
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    expect(keys.filter((key) => key.deref() !== undefined)).toEqual([]);
  });

  test("KEYED3: after many keys, at most 1,000 idle ones and one for each key in use remain, including the newest", async () => {
    const keyed = world().keyed<number>(1);
    const held = Array.from({ length: 10 }, (_, key) => keyed.tryAcquire(-1 - key));
    for (let key = 0; key < 5_000; key++) {
      keyed.tryAcquire(key)?.release();
      expect(keyed.size).toBeLessThanOrEqual(1_020);
    }
    expect(keyed.size).toBeGreaterThan(500);
    expect(keyed.stats()).toMatchObject({ inUse: 10, acquired: 5_010, released: 5_000 });
    // A key in use is never dropped, so it never has two gates.
    for (let key = 0; key < 10; key++) expect(keyed.tryAcquire(-1 - key)).toBeUndefined();
    const before = keyed.size;
    keyed.tryAcquire(4_999)?.release();
    expect(keyed.size).toBe(before);
    for (const slot of held) slot?.release();
    expect([keyed.sweep(0), keyed.size]).toEqual([before, 0]);
  });

  test("KEYED3: one idle key more removes the older half of the idle keys, and no key in use", () => {
    const keyed = world().keyed<number>(1);
    const held = keyed.tryAcquire(0);
    const use = (key: number) => {
      keyed.tryAcquire(key)?.release();
      return keyed.size;
    };
    for (let key = 1; key <= 1_001; key++) expect(use(key)).toBe(key + 1);
    expect(use(1_002)).toBe(1 + 501);
    // Using a key that is still there does not change the size.
    expect([use(502), use(1_002), use(501)]).toEqual([502, 502, 503]);
    held?.release();
    keyed.close();
  });

  test("stats counts all keys together, and a sweep does not change the counts", async () => {
    const keyed = world().keyed(1, { name: "users" });
    const slots = await Promise.all(["a", "b", "c"].map((key) => keyed.acquire(key)));
    slots[0]?.release();
    keyed.sweep(0);
    expect(keyed.stats()).toMatchObject({ name: "users", keys: 2, inUse: 2, waiting: 0, acquired: 3, released: 1 });
    for (const slot of slots) slot.release();
    keyed.close();
  });
});

describe("the gate of an idle key", () => {
  test("is reused by the next key, and a late release of the previous slot does not free the new one", async () => {
    const keyed = world().keyed(1);
    const first = await keyed.acquire("a");
    first.release();
    const second = await keyed.acquire("b");
    expect([first.release(), first.renew(), first.number, keyed.inUse]).toEqual([false, false, 0, 1]);
    expect(keyed.tryAcquire("b")).toBeUndefined();
    const again = keyed.tryAcquire("a");
    expect(again?.released).toBe(false);
    again?.release();
    second.release();
    expect(keyed.size).toBe(2);
    expect([keyed.sweep(0), keyed.size]).toEqual([2, 0]);
  });

  test("that onEvent reuses inside a release never gives one key two gates", async () => {
    let isInside = false;
    const keyed: KeyedSemaphore = world().keyed(1, {
      onEvent: ({ type, key }) => {
        if (type !== "aborted" || isInside) return;
        isInside = true;
        for (const other of ["x", "y", key as string]) keyed.tryAcquire(other)?.release();
        isInside = false;
      },
    });
    const held = await keyed.acquire("a");
    const controller = new AbortController();
    const waiter = outcome(keyed.acquire("a", { signal: controller.signal }));
    held.release();
    await settled();
    waiter.value.release();
    const slot = await keyed.acquire("x");
    await keyed.acquire("a", { signal: AbortSignal.abort("no") }).catch(() => {});
    expect([keyed.tryAcquire("x"), keyed.inUse]).toEqual([undefined, 1]);
    slot.release();
    keyed.close();
  });
});
