import { isSlotkeeperError } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "../outcome.ts";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const perMinute = (limit: number) => ({ limit, perMs: 60_000 });

describe("all or nothing (LIMIT1)", () => {
  test("a waiter for a slot has paid nothing, and a waiter for a budget holds no slot", async () => {
    const limiter = world().limiter({ slots: 2, budgets: { tokens: { ...perMinute(10), burst: 10 } } });
    const first = await limiter.acquire({ cost: { tokens: 8 } });
    const second = world().ask(limiter, "second", { cost: { tokens: 8 } });
    expect([limiter.inUse, limiter.waiting, limiter.stats().budgets.tokens?.available]).toEqual([1, 1, 2]);
    await world().clock.advanceAsync(36_000);
    expect([second.status, limiter.inUse, limiter.stats().budgets.tokens?.available]).toEqual(["fulfilled", 2, 0]);
    const third = world().ask(limiter, "third", { cost: { tokens: 1 } });
    await world().clock.advanceAsync(60_000);
    expect([third.status, limiter.stats().budgets.tokens?.available]).toEqual(["pending", 10]);
    first.release();
    await settled();
    expect(limiter.stats().budgets.tokens?.available).toBe(9);
    second.value.release();
    third.value.release();
  });

  test("a slot, the key's slot and every budget are taken in one step", async () => {
    const limiter = world().limiter({
      slots: 5,
      budgets: { requests: perMinute(10), tokens: perMinute(100) },
      perKey: { slots: 1, budgets: { tokens: perMinute(50) } },
    });
    const slot = await limiter.acquire({ key: "a", cost: { tokens: 50 } });
    const other = world().ask(limiter, "other", { key: "a", cost: { tokens: 1 } });
    slot.release();
    await settled();
    expect([other.status, limiter.inUse]).toEqual(["pending", 0]);
    expect(limiter.stats().budgets).toMatchObject({ requests: { available: 9 }, tokens: { available: 50 } });
    await world().clock.advanceAsync(1_200);
    other.value.release();
  });

  test("a cost that no burst could ever pay is a RangeError at once, with the field, the most and the value", async () => {
    const limiter = world().limiter({
      budgets: { tokens: { ...perMinute(100), burst: 20 } },
      perKey: { budgets: { tokens: perMinute(5) } },
    });
    await expect(limiter.acquire({ cost: { tokens: 21 } })).rejects.toThrow(/`cost.tokens`.*from 0 to 20, got 21/);
    await expect(limiter.acquire({ key: "a", cost: { tokens: 6 } })).rejects.toThrow(RangeError);
    await expect(limiter.run(() => 1, { cost: { tokens: 21 } })).rejects.toThrow(RangeError);
    expect(() => limiter.tryAcquire({ cost: { tokens: 21 } })).toThrow(RangeError);
    expect(limiter.size).toBe(0);
  });

  test("a missing cost is the budget's default, 1 unless given", async () => {
    const limiter = world().limiter({
      budgets: { requests: perMinute(10), tokens: { ...perMinute(100), default: 7 } },
    });
    (await limiter.acquire()).release();
    (await limiter.acquire({ cost: { requests: 3 } })).release();
    const { requests, tokens } = limiter.stats().budgets;
    expect([requests?.available, tokens?.available]).toEqual([6, 86]);
  });

  test("without slots and budgets every caller passes, and is counted", async () => {
    const limiter = world().limiter({});
    const slots = await Promise.all([limiter.acquire(), limiter.acquire(), limiter.acquire()]);
    expect([limiter.inUse, limiter.capacity, limiter.stats().percent]).toEqual([3, Infinity, 0]);
    for (const slot of slots) expect([slot.release(), slot.release()]).toEqual([true, false]);
    expect(limiter.stats()).toMatchObject({ acquired: 3, released: 3 });
  });
});

describe("the slot is that of a semaphore", () => {
  test("it has an id, a number, a width, a signal, and releases once, by itself, by id and by `using`", async () => {
    const limiter = world().limiter({ slots: 2, perKey: {} });
    const [one, two] = [await limiter.acquire(), await limiter.acquire({ key: "k" })];
    expect([one.number, two.number, one.width, one.expiresAt, two.key]).toEqual([1, 2, 1, undefined, "k"]);
    expect(one.id).not.toBe(two.id);
    expect([one.signal.aborted, limiter.release(one.id), limiter.release(one.id)]).toEqual([false, true, false]);
    expect([one.released, one.renew(), one.release()]).toEqual([true, false, false]);
    two[Symbol.dispose]();
    expect([limiter.inUse, one.number]).toEqual([0, 1]);
  });

  test("a ttl takes it back, renewing postpones that, and a late release is a no-op", async () => {
    const limiter = world().limiter({ slots: 1, ttlMs: 100, abortOnExpiry: true });
    const slot = await limiter.acquire();
    const { signal } = slot;
    expect(slot.expiresAt).toBe(1_000_100);
    world().clock.advance(60);
    expect([slot.renew(), slot.expiresAt]).toEqual([true, 1_000_160]);
    const waiter = world().ask(limiter, "waiter");
    await world().clock.advanceAsync(100);
    expect([slot.released, slot.release(), limiter.inUse]).toEqual([true, false, 1]);
    expect(signal.reason).toMatchObject({ code: "SLOT_EXPIRED", heldMs: 160 });
    waiter.value.release();
    expect(limiter.stats()).toMatchObject({ expired: 1, released: 1 });
  });

  test("a slot that was granted without a ttl can be given one", async () => {
    const limiter = world().limiter({ slots: 1 });
    const slot = await limiter.acquire();
    expect(slot.renew(10)).toBe(true);
    expect([slot.expiresAt, world().clock.keepingAlive]).toEqual([1_000_010, 0]);
    world().clock.advance(10);
    expect(slot.released).toBe(true);
    expect(() => slot.renew(0)).toThrow(/`ttlMs`.*got 0/);
  });

  test("with abortOnExpiry, run rejects as soon as the slot expires and a later failure is ignored", async () => {
    const limiter = world().limiter({ name: "api", ttlMs: 10, abortOnExpiry: true });
    const result = outcome(
      limiter.run(({ signal }) => new Promise((_, fail) => signal.addEventListener("abort", fail))),
    );
    await world().clock.advanceAsync(10);
    expect(result.reason).toMatchObject({
      code: "SLOT_EXPIRED",
      message: 'A slot of limiter "api" expired after 10 ms and was taken back',
    });
  });
});

describe("refusals", () => {
  test("a timeout rejects with AcquireTimeoutError, in a sentence", async () => {
    const limiter = world().limiter({ name: "api", slots: 1, acquireTimeoutMs: 50 });
    const held = await limiter.acquire();
    const waiter = world().ask(limiter, "waiter");
    await world().clock.advanceAsync(50);
    expect(waiter.reason).toMatchObject({
      code: "ACQUIRE_TIMEOUT",
      waitedMs: 50,
      retryable: true,
      capacity: 1,
      inUse: 1,
    });
    expect(String(waiter.reason)).toContain('Waited 50 ms for a slot of limiter "api" (1 of 1 in use, none waiting)');
    expect(limiter.stats().timedOut).toBe(1);
    held.release();
  });

  test("timeoutMs: 0 does not wait, for budgets too", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 1, perMs: 100 } } });
    (await limiter.acquire({ timeoutMs: 0 })).release();
    await expect(limiter.acquire({ timeoutMs: 0 })).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 0 });
    expect(limiter.tryAcquire()).toBeUndefined();
    world().clock.advance(100);
    expect(limiter.tryAcquire()?.release()).toBe(true);
  });

  test("more than maxWaiters are refused with QueueFullError", async () => {
    const limiter = world().limiter({ slots: 1, maxWaiters: 1 });
    const held = await limiter.acquire();
    const waiter = world().ask(limiter, "waiter");
    const refused = await limiter.acquire().catch((error: unknown) => error);
    expect(isSlotkeeperError(refused) && refused.code).toBe("QUEUE_FULL");
    held.release();
    await settled();
    waiter.value.release();
  });

  test("an abort rejects with the signal's own reason; an aborted signal rejects even if a slot is free", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { requests: { limit: 5, perMs: 100 } } });
    const controller = new AbortController();
    const held = await limiter.acquire();
    const waiter = world().ask(limiter, "waiter", { signal: controller.signal });
    controller.abort("stop");
    await settled();
    held.release();
    expect([waiter.reason, limiter.waiting]).toEqual(["stop", 0]);
    await expect(limiter.acquire({ signal: controller.signal })).rejects.toBe("stop");
    expect(limiter.stats()).toMatchObject({ aborted: 2, budgets: { requests: { available: 4 } } });
  });

  test("closing rejects waiters and later acquires with ClosedError; holders may still release", async () => {
    const limiter = world().limiter({ slots: 1, name: "api" });
    const held = await limiter.acquire();
    const waiter = world().ask(limiter, "waiter");
    limiter.close("shutting down");
    limiter.close();
    await settled();
    expect(waiter.reason).toMatchObject({ code: "CLOSED", message: "shutting down" });
    await expect(limiter.acquire()).rejects.toMatchObject({ code: "CLOSED" });
    expect([limiter.closed, limiter.tryAcquire(), held.release()]).toEqual([true, undefined, true]);
  });

  test.each([true, false])(
    "traceTimeouts %s: the stack of a timeout shows the caller, or nothing",
    async (traceTimeouts) => {
      const limiter = world().limiter({ slots: 1, name: "api", traceTimeouts });
      const held = await limiter.acquire();
      const whoAsks = () => limiter.acquire({ timeoutMs: 10 });
      const failure = whoAsks().then(String, (error: Error) => error.stack);
      await world().clock.advanceAsync(10);
      const stack = await failure;
      expect(stack).toContain('AcquireTimeoutError: Waited 10 ms for a slot of limiter "api"');
      expect(stack?.includes("whoAsks")).toBe(traceTimeouts);
      held.release();
    },
  );

  test("misuse is a TypeError or RangeError at once, with field, expectation and value", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { requests: perMinute(1) } });
    const reject = (options: object) => expect(limiter.acquire(options)).rejects;
    await reject({ cots: 1 }).toThrow(/Unknown option `cots`/);
    await reject({ cost: { token: 1 } }).toThrow(/Unknown option `cost.token`/);
    await reject({ cost: 3 }).toThrow(/`cost` to be an object, got 3/);
    await reject({ cost: { requests: -1 } }).toThrow(RangeError);
    await reject({ cost: { requests: "1" } }).toThrow(/`cost.requests` to be a number.*got "1"/);
    await reject({ level: 1 }).toThrow(/`level`.*from 0 to 0, got 1/);
    await reject({ timeoutMs: -1 }).toThrow(/`timeoutMs`/);
    const noKey = "Expected `key` to be left out, because the limiter has no `perKey`, got";
    await reject({ key: "ann" }).toThrow(new TypeError(`${noKey} "ann"`));
    await expect(limiter.run(() => 1, { key: 0 })).rejects.toThrow(`${noKey} 0`);
    expect(() => limiter.tryAcquire({ key: "ann" })).toThrow(noKey);
    expect(() => limiter.tryAcquire({ timeoutMs: 1 } as never)).toThrow(/Unknown option `timeoutMs`/);
    await reject({ signal: {} }).toThrow(/`signal` to be an AbortSignal/);
    await expect(limiter.acquire(5 as never)).rejects.toThrow(TypeError);
    await expect(limiter.run("work" as never)).rejects.toThrow(/`work` to be a function, got "work"/);
    await expect(limiter.run(() => 1, { isOverload: true as never })).rejects.toThrow(/`isOverload`/);
    expect(() => limiter.learn("token" as never, { remaining: 1 })).toThrow(
      /`budget` to be one of requests, got "token"/,
    );
    expect(limiter.stats()).toMatchObject({ acquired: 0, rejected: 0, inUse: 0 });
  });

  test.each([
    [{ slots: 0 }, /`slots`.*got 0/],
    [{ defaultLevel: 1 }, /`defaultLevel`.*from 0 to 0, got 1/],
    [{ levels: 3, defaultLevel: 3 }, /`defaultLevel`.*from 0 to 2, got 3/],
    [{ levels: 3, defaultLevel: -1 }, /`defaultLevel`.*got -1/],
    [{ slots: 1.5 }, /`slots`/],
    [{ slotz: 1 }, /Unknown option `slotz`/],
    [{ name: 5 }, /`name` to be a string, got 5/],
    [{ levels: 0, ttlMs: 0 }, /`levels`.*; .*`ttlMs`/],
    [{ levels: 101 }, /from 1 to 100, got 101/],
    [{ ageAfterMs: 0 }, /`ageAfterMs`/],
    [{ budgets: 5 }, /`budgets` to be an object/],
    [{ budgets: { a: { limit: 0, perMs: 1 } } }, /`budgets.a.limit`.*above 0, got 0/],
    [{ budgets: { a: { limit: 1 } } }, /`budgets.a.perMs`.*got undefined/],
    [{ budgets: { a: { limit: 1, perMs: 1, brust: 2 } } }, /Unknown option `budgets.a.brust`/],
    [{ budgets: { a: { limit: 1, perMs: 1, strict: true, burst: 2 } } }, /`budgets.a.burst` to be left out/],
    [{ budgets: { a: { limit: 5, perMs: 1, default: 6 } } }, /`budgets.a.default`.*from 0 to 5, got 6/],
    [{ perKey: { budgets: { a: { limit: Infinity, perMs: 1 } } } }, /`perKey.budgets.a.limit`/],
    [{ perKey: { slots: 0 } }, /`perKey.slots`/],
    [{ adaptive: {} }, /`slots` to be finite if `adaptive` is given, got Infinity/],
    [{ slots: 5, adaptive: { min: 6 } }, /`adaptive.min`.*from 1 to 5, got 6/],
    [{ slots: 5, adaptive: { min: 2, start: 1 } }, /`adaptive.start`.*from 2 to 5, got 1/],
    [5, /`options` to be an object, got 5/],
  ])("the constructor refuses %j", (options, message) => {
    expect(() => new Limiter(options as never)).toThrow(message);
  });
});

describe("events and statistics", () => {
  test("events are those of a semaphore, and a throwing onEvent changes nothing", async () => {
    const events: string[] = [];
    const limiter = world().limiter({
      name: "api",
      slots: 1,
      perKey: {},
      onEvent: ({ type, name, key, waitedMs, number, capacity }) => {
        events.push([type, name, key, waitedMs, number, capacity].join());
        throw new Error("ignored");
      },
    });
    const held = await limiter.acquire({ key: "k" });
    const waiters = [world().ask(limiter, "x", { timeoutMs: 5 }), world().ask(limiter, "y")];
    await world().clock.advanceAsync(5);
    held.release();
    await settled();
    waiters[1]?.value.release();
    limiter.update({ slots: 2 });
    limiter.close();
    expect(events).toEqual([
      "acquired,api,k,0,1,1",
      "timed-out,api,,5,,1",
      "released,api,k,,1,1",
      "acquired,api,,5,1,1",
      "released,api,,,1,1",
      "resized,api,,,,2",
      "closed,api,,,,2",
    ]);
  });

  test("onEvent may call back in", async () => {
    const order: string[] = [];
    let isFirst = true;
    const limiter = world().limiter({
      slots: 1,
      onEvent: ({ type }) => {
        if (type === "released" && isFirst) {
          isFirst = false;
          void limiter.run(() => order.push("from onEvent"));
        }
      },
    });
    const held = await limiter.acquire();
    void limiter.run(() => order.push("waiter"));
    held.release();
    await settled();
    expect([order, limiter.inUse]).toEqual([["waiter", "from onEvent"], 0]);
  });

  test("idle resolves when nothing is held and no caller waits", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { requests: { limit: 1, perMs: 100 } } });
    const order: string[] = [];
    await limiter.idle();
    void limiter.run(() => order.push("first"));
    void limiter.run(() => order.push("second"));
    void limiter.idle().then(() => order.push("idle"));
    await world().clock.advanceAsync(100);
    expect(order).toEqual(["first", "second", "idle"]);
  });
});
