import { AcquireTimeoutError, ClosedError, type SemaphoreEvent, SlotExpiredError, SlotPool } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("limits", () => {
  test("the global limit applies to all keys together", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 2 });
    const slots = [await pool.acquire("a"), await pool.acquire("b")];
    expect([pool.tryAcquire("c"), pool.tryAcquire("a"), pool.inUse]).toEqual([undefined, undefined, 2]);
    for (const slot of slots) slot.release();
    pool.close();
  });

  test("the limit per key applies while global slots are free", async () => {
    const pool = world().pool({ max: 10, maxPerKey: 1 });
    const slot = await pool.acquire("a");
    expect(pool.tryAcquire("a")).toBeUndefined();
    const other = pool.tryAcquire("b");
    expect(other?.released).toBe(false);
    slot.release();
    other?.release();
    pool.close();
  });

  test("without maxPerKey only the global limit counts, whatever the key", async () => {
    const pool = world().pool({ max: 2 });
    const slots = [await pool.acquire("a"), await pool.acquire("a")];
    expect(pool.tryAcquire("b")).toBeUndefined();
    for (const slot of slots) slot.release();
    expect([pool.size, world().clock.pending]).toEqual([0, 0]);
  });

  test("without a limit per key, a call needs no key", async () => {
    const pool = world().pool({ max: 3 });
    const slots = [await pool.acquire(), await pool.acquire(), await pool.acquire("a")];
    expect(pool.tryAcquire()).toBeUndefined();
    for (const slot of slots) slot.release();
    pool.close();
  });

  test.each([1, 0])(
    "with max %i and a limit per key, a call without a key is refused: it would bypass the limit",
    async (max) => {
      const pool = world().pool({ max, maxPerKey: 1 });
      const error = new TypeError("Expected `key` to be given with `maxPerKey`, got undefined");
      await expect(pool.run(undefined, () => "bypass")).rejects.toEqual(error);
      await expect(pool.acquire()).rejects.toEqual(error);
      expect(() => pool.tryAcquire()).toThrow(error);
      expect([pool.inUse, pool.size, pool.stats().rejected]).toEqual([0, 0, 0]);
      pool.close();
      await expect(pool.acquire()).rejects.toEqual(error);
    },
  );

  test("a limit per key that is set later refuses calls without a key from then on", async () => {
    const pool = world().pool({ max: 2 });
    const held = await pool.acquire();
    pool.resize({ maxPerKey: 1 });
    await expect(pool.acquire()).rejects.toThrow("`key`");
    expect([held.release(), pool.inUse]).toEqual([true, 0]);
    pool.close();
  });

  test("the empty string is a key like any other", async () => {
    const pool = world().pool({ max: 3, maxPerKey: 1 });
    const slot = await pool.acquire("");
    expect([pool.tryAcquire(""), pool.size]).toEqual([undefined, 1]);
    slot.release();
    pool.close();
  });

  test("0 means no limit for max and maxPerKey, and slots are counted", async () => {
    const pool = world().pool({ max: 0, maxPerKey: 0 });
    const slots = await Promise.all(Array.from({ length: 50 }, (_, index) => pool.acquire(`k${index % 2}`)));
    expect([pool.inUse, pool.stats().inUse]).toEqual([50, 50]);
    for (const slot of slots) slot.release();
    expect(pool.stats()).toMatchObject({ inUse: 0, acquired: 50, released: 50 });
  });

  test("max 0 with a limit per key: no global limit, counted over all keys", async () => {
    const pool = world().pool({ max: 0, maxPerKey: 1 });
    const slots = await Promise.all(["a", "b", "c"].map((key) => pool.acquire(key)));
    expect([pool.inUse, pool.tryAcquire("a")]).toEqual([3, undefined]);
    for (const slot of slots) slot.release();
    expect(pool.stats()).toMatchObject({ inUse: 0, acquired: 3, released: 3 });
    pool.close();
  });

  test.each([{ max: -1 }, { max: 1.5 }, { max: Number.NaN }, { max: 1, maxPerKey: -1 }, { max: 1, maxPerKey: 0.5 }])(
    "%o is a RangeError that names the field",
    (options) => {
      expect(() => new SlotPool(options)).toThrow(RangeError);
      expect(() => new SlotPool(options)).toThrow(/`max(PerKey)?`.*got/);
    },
  );

  test("a pool without max is refused", () => {
    expect(() => new SlotPool({} as never)).toThrow(/`max`/);
  });
});

describe("per key first, then global", () => {
  test("the waiters of one key never hold global slots", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 1 });
    const held = await pool.acquire("greedy");
    const backlog = Array.from({ length: 20 }, () => outcome(pool.acquire("greedy")));
    await settled();
    expect([pool.inUse, pool.waiting]).toEqual([1, 20]);
    const other = await pool.acquire("modest", { timeoutMs: 0 });
    other.release();
    held.release();
    for (const one of backlog) {
      await settled();
      one.value.release();
    }
    pool.close();
  });

  test("a caller that waits for the global limit holds its key's slot, so a second of the same key waits for the key", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const waiters = ["b", "b", "c"].map((key) => outcome(pool.acquire(key)));
    await settled();
    held.release();
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["fulfilled", "pending", "pending"]);
    waiters[0]?.value.release();
    await settled();
    // c has been waiting for the global slot. The second b starts to wait for it only now.
    expect(waiters.map(({ status }) => status)).toEqual(["fulfilled", "pending", "fulfilled"]);
    waiters[2]?.value.release();
    await settled();
    waiters[1]?.value.release();
    pool.close();
  });

  test("a release frees the slot of the key first, then the global slot", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const sameKey = outcome(pool.acquire("a"));
    const otherKey = outcome(pool.acquire("b"));
    await settled();
    held.release();
    await settled();
    // b already waited for the global slot. The next caller of a had to get the slot of its key first.
    expect([sameKey.status, otherKey.status]).toEqual(["pending", "fulfilled"]);
    otherKey.value.release();
    await settled();
    sameKey.value.release();
    pool.close();
  });

  test("one release frees both slots, and a second release frees nothing", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const slot = await pool.acquire("a");
    expect([slot.release(), slot.release(), pool.inUse]).toEqual([true, false, 0]);
    const again = await pool.acquire("a", { timeoutMs: 0 });
    expect([slot.release(), pool.inUse, pool.tryAcquire("a")]).toEqual([false, 1, undefined]);
    again.release();
    pool.close();
  });

  test("tryAcquire that fails in the second stage undoes the first in full", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    expect(pool.tryAcquire("b")).toBeUndefined();
    held.release();
    const slot = pool.tryAcquire("b");
    expect(slot?.released).toBe(false);
    slot?.release();
    pool.close();
  });

  test.each(["abort", "timeout", "close", "queue full"])(
    "an acquire that fails in the second stage by %s undoes the first in full",
    async (how) => {
      const pool = world().pool({ max: 1, maxPerKey: 1, maxWaiters: how === "queue full" ? 0 : Infinity });
      const controller = new AbortController();
      const held = await pool.acquire("a");
      const waiter = outcome(pool.acquire("b", { signal: controller.signal, timeoutMs: 10 }));
      await settled();
      if (how === "abort") controller.abort("stop");
      if (how === "timeout") world().clock.advance(10);
      if (how === "close") pool.close();
      await settled();
      expect(waiter.status).toBe("rejected");
      held.release();
      if (how !== "close") {
        const slot = await pool.acquire("b", { timeoutMs: 0 });
        slot.release();
      }
      expect([pool.inUse, pool.waiting]).toEqual([0, 0]);
      pool.close();
      expect(pool.size).toBe(0);
    },
  );

  test("an acquire that fails in the second stage hands the slot of its key to the next waiter of that key", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const first = outcome(pool.acquire("b", { timeoutMs: 10 }));
    const second = outcome(pool.acquire("b"));
    await world().clock.advanceAsync(10);
    expect([first.status, second.status]).toEqual(["rejected", "pending"]);
    held.release();
    await settled();
    second.value.release();
    pool.close();
  });
});

describe("timeoutMs and signal cover both stages together", () => {
  test("a caller that passes from its key to the common limit times out before callers that arrived later", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 1, acquireTimeoutMs: 100 });
    const slots = [await pool.acquire("a"), await pool.acquire("b")];
    const first = outcome(pool.acquire("a"));
    world().clock.advance(50);
    const later = ["c", "d"].map((key) => outcome(pool.acquire(key)));
    slots[0]?.release();
    await world().clock.advanceAsync(50);
    expect([first.status, ...later.map(({ status }) => status)]).toEqual(["rejected", "fulfilled", "pending"]);
    slots[1]?.release();
    await settled();
    for (const { value } of later) value.release();
    pool.close();
  });

  test("the timeout of the global stage is reduced by the time spent waiting for the key", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const holdsGlobal = await pool.acquire("x");
    const holdsKey = outcome(pool.acquire("a"));
    const waiter = outcome(pool.acquire("a", { timeoutMs: 100 }));
    await world().clock.advanceAsync(60);
    holdsGlobal.release();
    await settled();
    const blocker = outcome(pool.acquire("y"));
    await settled();
    holdsKey.value.release();
    await settled();
    expect([blocker.status, waiter.status]).toEqual(["fulfilled", "pending"]);
    await world().clock.advanceAsync(39);
    expect(waiter.status).toBe("pending");
    await world().clock.advanceAsync(1);
    expect(waiter.reason).toBeInstanceOf(AcquireTimeoutError);
    expect(waiter.reason).toMatchObject({ waitedMs: 100 });
    blocker.value.release();
    pool.close();
  });

  test("timeoutMs 0 does not wait in either stage", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const slot = await pool.acquire("a", { timeoutMs: 0 });
    await expect(pool.acquire("a", { timeoutMs: 0 })).rejects.toBeInstanceOf(AcquireTimeoutError);
    await expect(pool.acquire("b", { timeoutMs: 0 })).rejects.toBeInstanceOf(AcquireTimeoutError);
    slot.release();
    pool.close();
  });

  test("a signal aborts the wait in the first stage and in the second, with its reason", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("stop");
    const waiters = ["a", "b"].map((key) => outcome(pool.acquire(key, { signal })));
    await settled();
    controller.abort(reason);
    await settled();
    expect(waiters.map((waiter) => waiter.reason === reason)).toEqual([true, true]);
    await expect(pool.acquire("c", { signal })).rejects.toBe(reason);
    held.release();
    expect([pool.inUse, pool.stats().aborted]).toEqual([0, 3]);
    pool.close();
  });

  test("run re-checks the signal after both stages and releases both slots", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const controller = new AbortController();
    const held = await pool.acquire("x");
    let started = false;
    const run = outcome(pool.run("a", () => (started = true), { signal: controller.signal }));
    await settled();
    held.release();
    controller.abort("stop");
    await settled();
    expect([run.reason, started, pool.inUse, pool.sweep(0)]).toEqual(["stop", false, 0, 2]);
  });
});

describe("order", () => {
  test("if two callers find both stages free, the first one gets the last slot, with options or without", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const first = outcome(pool.acquire("a", { timeoutMs: 10 }));
    const second = outcome(pool.acquire("b"));
    await settled();
    const statuses = [first.status, second.status];
    for (const one of [first, second, first]) {
      if (one.status === "fulfilled") one.value.release();
      await settled();
    }
    pool.close();
    expect(statuses).toEqual(["fulfilled", "pending"]);
  });

  test("an acquire that finds both stages free holds them at once: a tryAcquire in the same turn gets nothing", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const first = outcome(pool.acquire("a", { timeoutMs: 0 }));
    const thief = pool.tryAcquire("b");
    await settled();
    thief?.release();
    if (first.status === "fulfilled") first.value.release();
    pool.close();
    expect([first.status, thief]).toEqual(["fulfilled", undefined]);
  });

  test("a slot released while a caller waits for its key is not taken by another key in the same turn", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const next = outcome(pool.acquire("a"));
    await settled();
    held.release();
    const thief = pool.tryAcquire("b");
    await settled();
    const statuses = [next.status, thief];
    thief?.release();
    await settled();
    next.value.release();
    pool.close();
    expect(statuses).toEqual(["fulfilled", undefined]);
  });
});

describe("refusals, widths, expiry, events and close", () => {
  test("an acquire that the second stage refuses at once has undone the first stage before any other call", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("x");
    const refused = outcome(pool.acquire("a", { timeoutMs: 0 }));
    const order: string[] = [];
    const all = ["a", "b"].map((key) => pool.run(key, () => void order.push(key)));
    await settled();
    held.release();
    await Promise.all(all);
    pool.close();
    expect([refused.status, order]).toEqual(["rejected", ["a", "b"]]);
  });

  test("maxWaiters does not refuse a waiter that moves from its key to the global limit", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1, maxWaiters: 2 });
    const held = await pool.acquire("a");
    const sameKey = outcome(pool.acquire("a"));
    const otherKey = outcome(pool.acquire("b"));
    await settled();
    held.release();
    await settled();
    otherKey.value.release();
    await settled();
    const { status } = sameKey;
    if (status === "fulfilled") sameKey.value.release();
    pool.close();
    expect(status).toBe("fulfilled");
  });

  test("maxWaiters counts every waiter once, for any key and in any stage", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1, maxWaiters: 2, name: "uploads" });
    const held = await pool.acquire("a");
    const waiters = [outcome(pool.acquire("a")), outcome(pool.acquire("b"))];
    for (const key of ["a", "b", "c"]) {
      await expect(pool.acquire(key)).rejects.toMatchObject({ code: "QUEUE_FULL" });
    }
    held.release();
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["pending", "fulfilled"]);
    waiters[1]?.value.release();
    await settled();
    waiters[0]?.value.release();
    pool.close();
  });

  test("a width beyond either limit is a RangeError at once, and takes nothing", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 3 });
    await expect(pool.acquire("a", { width: 4 })).rejects.toThrow(RangeError);
    await expect(pool.acquire("a", { width: 3 })).rejects.toThrow(RangeError);
    expect(() => pool.tryAcquire("a", { width: 3 })).toThrow(RangeError);
    const slot = await pool.acquire("a", { width: 2 });
    expect([slot.width, pool.inUse]).toEqual([2, 2]);
    slot.release();
    pool.close();
  });

  test("a width beyond the global limit is refused at once even while the key is taken", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 3 });
    const held = await pool.acquire("a", { width: 2 });
    const tooWide = outcome(pool.acquire("a", { width: 3 }));
    await settled();
    const { status } = tooWide;
    held.release();
    await settled();
    pool.close();
    expect(status).toBe("rejected");
  });

  test("an expiry frees both slots and aborts the slot's signal", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1, ttlMs: 10, abortOnExpiry: true });
    const slot = await pool.acquire("a");
    const sameKey = outcome(pool.acquire("a"));
    await world().clock.advanceAsync(10);
    expect([slot.released, slot.release(), sameKey.status]).toEqual([true, false, "fulfilled"]);
    expect(slot.signal.reason).toBeInstanceOf(SlotExpiredError);
    sameKey.value.release();
    pool.close();
  });

  test("waiting for the global stage does not count against the ttl", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1, ttlMs: 100 });
    const held = await pool.acquire("a");
    held.renew(500);
    const waiter = outcome(pool.acquire("b"));
    await world().clock.advanceAsync(300);
    held.release();
    await settled();
    expect(waiter.value.expiresAt).toBe(1_000_400);
    waiter.value.release();
    pool.close();
  });

  test("one acquire emits one acquired event and one released event, with the key if there is one", async () => {
    const events: SemaphoreEvent[] = [];
    const pool = world().pool({ max: 1, maxPerKey: 1, name: "media", onEvent: (event) => events.push(event) });
    (await pool.acquire("a")).release();
    const held = await pool.acquire("b");
    const waiters = [outcome(pool.acquire("b", { timeoutMs: 5 })), outcome(pool.acquire("c", { timeoutMs: 5 }))];
    await world().clock.advanceAsync(5);
    expect(waiters.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    held.release();
    pool.close();
    expect(events.map(({ type }) => type)).toEqual([
      "acquired",
      "released",
      "acquired",
      "timed-out",
      "timed-out",
      "released",
      "closed",
    ]);
    expect(new Set(events.map(({ name }) => name))).toEqual(new Set(["media"]));
  });

  test("stats reports limits, use, waiters, keys and counters; a slot of two stages counts once", async () => {
    const pool = world().pool({ max: 3, maxPerKey: 1, name: "media" });
    const held = await pool.acquire("a");
    const waiters = [outcome(pool.acquire("a", { timeoutMs: 5 })), outcome(pool.acquire("a"))];
    await settled();
    expect(pool.stats()).toMatchObject({
      name: "media",
      max: 3,
      maxPerKey: 1,
      inUse: 1,
      waiting: 2,
      keys: 1,
      acquired: 1,
    });
    await world().clock.advanceAsync(5);
    held.release();
    await settled();
    waiters[1]?.value.release();
    expect(pool.stats()).toMatchObject({ inUse: 0, waiting: 0, acquired: 2, released: 2, timedOut: 1, rejected: 0 });
    pool.close();
  });

  test("close rejects waiters of both stages and later acquires; holders may still release", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const waiters = [outcome(pool.acquire("a")), outcome(pool.acquire("b"))];
    await settled();
    pool.close("going down");
    const late = [outcome(pool.acquire("a")), outcome(pool.acquire("new"))];
    await settled();
    for (const { reason } of [...waiters, ...late]) {
      expect(reason).toBeInstanceOf(ClosedError);
      expect(reason).toMatchObject({ message: "going down" });
    }
    expect([pool.tryAcquire("a"), pool.closed]).toEqual([undefined, true]);
    expect([held.release(), pool.inUse, pool.waiting, pool.size, world().clock.pending]).toEqual([true, 0, 0, 0, 0]);
  });

  test("sweep never drops a key whose slot moves from the first stage to the second", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 1 });
    const inFlight = outcome(pool.acquire("a", { timeoutMs: 10 }));
    for (let turn = 0; turn < 6; turn++) {
      pool.sweep(0);
      expect(pool.tryAcquire("a")).toBeUndefined();
      await Promise.resolve();
    }
    await settled();
    inFlight.value.release();
    expect([pool.sweep(0), pool.size]).toEqual([1, 0]);
  });

  test("run holds the slots of both stages while the work runs", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    expect(await pool.run("a", () => [pool.inUse, pool.tryAcquire("b")])).toEqual([1, undefined]);
    await expect(pool.run("a", () => Promise.reject(new Error("inside")))).rejects.toThrow("inside");
    expect(pool.inUse).toBe(0);
    pool.close();
  });

  test("a renewed slot of a pool with abortOnExpiry but no ttl aborts its signal when it expires", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1, abortOnExpiry: true });
    const slot = await pool.acquire("a");
    const { signal } = slot;
    slot.renew(10);
    world().clock.advance(10);
    pool.close();
    expect([slot.released, signal.aborted]).toEqual([true, true]);
  });
});
