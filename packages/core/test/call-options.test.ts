import { KeyedSemaphore, Semaphore, SlotPool } from "slotkeeper";
import { createSemaphore, delay, run, simulate, spawn } from "slotkeeper/effects";
import { Limiter, stream } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { SharedSemaphore } from "slotkeeper/threads";
import { MediaSlots, TransferSlots } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
/** What a caller without types may pass. */
const any = (value: unknown) => value as never;

const bad: [string, unknown, string][] = [
  ["an unknown key", { timeout: 5 }, "Unknown option `timeout`"],
  ["a number", 5, "Expected `options` to be an object, got 5"],
  ["zero", 0, "Expected `options` to be an object, got 0"],
  ["a signal itself", new AbortController().signal, "Unknown option `aborted`"],
  ["an inherited name", { constructor: 1 }, "Unknown option `constructor`"],
];

describe("options of calls are checked like those of constructors", () => {
  test.each(bad)("%s is refused at once, and nothing is taken", async (_, options, message) => {
    const sem = world().semaphore(1);
    const keyed = world().keyed(1);
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    for (const call of [
      () => sem.acquire(any(options)),
      () => sem.run(() => 1, any(options)),
      () => keyed.acquire("a", any(options)),
      () => keyed.run("a", () => 1, any(options)),
      () => pool.acquire("a", any(options)),
      () => pool.run("a", () => 1, any(options)),
      () => sem.map([1], () => 1, any(options)),
    ]) {
      await expect(call()).rejects.toThrow(TypeError);
      await expect(call()).rejects.toThrow(message);
    }
    for (const kind of [sem, keyed, pool]) expect([kind.inUse, kind.waiting]).toEqual([0, 0]);
    keyed.close();
    pool.close();
  });

  test("they are also refused while no slot is free, instead of waiting for ever", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    await expect(sem.acquire(any({ timeout: 5 }))).rejects.toThrow(TypeError);
    await expect(sem.run(any(Promise.resolve()))).rejects.toThrow(
      "Expected `work` to be a function, got [object Promise]",
    );
    expect(sem.waiting).toBe(0);
    held.release();
  });

  test("tryAcquire throws for options that it does not have", () => {
    const sem = world().semaphore(1);
    expect(() => sem.tryAcquire(any({ timeoutMs: 5 }))).toThrow("Unknown option `timeoutMs`");
    expect(() => sem.tryAcquire({ width: 2 })).toThrow(RangeError);
    const keyed = world().keyed(1);
    expect(() => keyed.tryAcquire("a", any(5))).toThrow(TypeError);
    expect([sem.inUse, keyed.inUse]).toEqual([0, 0]);
    keyed.close();
  });

  test("every class refuses work that is not a function", async () => {
    const message = "Expected `work` to be a function, got 5";
    await expect(world().semaphore(1).run(any(5))).rejects.toThrow(message);
    const pool = world().pool({ max: 1 });
    await expect(pool.run("a", any(5))).rejects.toThrow(message);
    await expect(SharedSemaphore.create(1).run(any(5))).rejects.toThrow(message);
    await expect(world().semaphore(1).map([], any(5))).rejects.toThrow("Expected `fn` to be a function, got 5");
    expect(() => world().semaphore(1).wrap(any(5))).toThrow("Expected `fn` to be a function, got 5");
  });

  test("limiters, threads, transfers and effects also refuse invalid options", async () => {
    const limiter = new Limiter({ slots: 1 });
    const shared = SharedSemaphore.create(1);
    const transfers = new TransferSlots();
    const media = new MediaSlots({ availableGb: 8 });
    const options = any({ timeout: 5 });
    for (const call of [
      () => limiter.acquire(options),
      () => limiter.run(() => 1, options),
      async () => limiter.tryAcquire(options),
      async () => limiter.wrap(() => 1, options),
      () => limiter.map([1], () => 1, options),
      async () => stream(limiter, [1], () => 1, options),
      () => shared.acquire(options),
      () => shared.run(() => 1, options),
      () => transfers.acquireDownload(options),
      () => transfers.runUpload("ann", () => 1, options),
      () => media.acquireChunk("ann", options),
      () => media.runUpload("ann", () => 1, options),
      () => run(delay(1), options),
      async () => simulate(spawn(delay(1), options)),
      async () => simulate(createSemaphore(1, options)),
    ]) {
      await expect(call()).rejects.toThrow("Unknown option `timeout`");
    }
    for (const call of [
      () => limiter.run(any(5)),
      () => transfers.runDownload(any(5)),
      () => media.runChunk("a", any(5)),
    ]) {
      await expect(call()).rejects.toThrow("Expected `work` to be a function, got 5");
    }
    await expect(run(any(5))).rejects.toThrow("Expected `program` to be");
    expect([limiter.inUse, shared.inUse, transfers.stats().uploadsActive]).toEqual([0, 0, 0]);
    transfers.close();
    media.close();
  });

  test.each([
    ["timeoutMs", () => new Semaphore(1, any({ timeoutMs: 5 })), "acquireTimeoutMs"],
    ["perKey", () => new SlotPool(any({ max: 1, perKey: 5 })), "maxPerKey"],
    [
      "timeout",
      () =>
        world()
          .semaphore(1)
          .tryAcquire(any({ timeout: 5 })),
      "width",
    ],
    ["ttl", () => new KeyedSemaphore(1, any({ ttl: 5 })), "ttlMs"],
    ["perKey.slot", () => new Limiter(any({ perKey: { slot: 5 } })), "slots"],
    ["budgets.a.per", () => new Limiter({ budgets: { a: any({ limit: 1, per: 5 }) } }), "perMs"],
  ])("an unknown option names the known ones, the nearest first: %s", (unknown, call, nearest) => {
    expect(call).toThrow(`Unknown option \`${unknown}\` (known: ${nearest}`);
  });

  test("all known options are named, for every unknown one, and a key without a value is unknown, too", async () => {
    const message =
      "Unknown option `timeout` (known: timeoutMs, width, signal); " +
      "Unknown option `sgnal` (known: signal, width, timeoutMs)";
    await expect(
      world()
        .semaphore(1)
        .acquire(any({ timeout: 5, sgnal: undefined })),
    ).rejects.toThrow(message);
  });

  /** Passes the check at the first read, and is another value after that. */
  const changing = (key: string, first: unknown, next: unknown, others: object = {}) => {
    let reads = 0;
    return any(Object.defineProperty(others, key, { enumerable: true, get: () => (reads++ === 0 ? first : next) }));
  };

  test("options are read once: a getter passes no width that was not checked", async () => {
    const sem = world().semaphore(2);
    const width = () => changing("width", 1, -6);
    const slots = [await sem.acquire(width()), sem.tryAcquire(width())];
    expect([sem.inUse, sem.tryAcquire(), slots.map((slot) => slot?.width)]).toEqual([2, undefined, [1, 1]]);
    const waiter = outcome(sem.acquire(width()));
    const run = outcome(sem.run((slot) => slot.width, width()));
    for (const slot of slots) slot?.release();
    await settled();
    expect([waiter.value.width, run.value]).toEqual([1, 1]);
    waiter.value.release();
    expect(sem.inUse).toBe(0);
  });

  test("constructors and other classes read options once as well", async () => {
    const { clock } = world();
    const ttl = new Semaphore(1, changing("ttlMs", 10, -1, { clock }));
    const named = new Semaphore(1, changing("clock", clock, {}, { name: "once", registry: world().registry }));
    expect([(await ttl.acquire()).expiresAt, named.tryAcquire()?.renew(5)]).toEqual([clock.now() + 10, true]);
    clock.advance(10);
    const pool = new SlotPool(changing("maxPerKey", 1, -1, { max: 1, clock }));
    expect(pool.stats().maxPerKey).toBe(1);
    const limiter = new Limiter({ budgets: { a: { limit: 2, perMs: 100 } }, clock });
    const cost = { cost: changing("a", 1, -1) };
    const held = [await limiter.acquire(cost), await limiter.acquire({ cost: changing("a", 1, -1) })];
    expect([limiter.tryAcquire(), limiter.stats().budgets.a?.available]).toEqual([undefined, 0]);
    held[0]?.settle(changing("a", 1, -10));
    expect(limiter.stats().budgets.a?.available).toBe(0);
    for (const slot of held) slot.release(changing("outcome", "ok", "overload"));
    expect(limiter.stats().overloads).toBe(0);
    pool.close();
  });

  test("constructors name the option that is missing", () => {
    expect(() => new SlotPool(any(undefined))).toThrow("Expected `max`");
    expect(() => new SlotPool(any(null))).toThrow("Expected `options` to be an object, got null");
    expect(() => new SlotPool(any({}))).toThrow("Expected `max`");
    expect(() => new Semaphore(1, any(5))).toThrow("Expected `options` to be an object, got 5");
    expect(() => new Semaphore(1, any(null))).toThrow("Expected `options` to be an object, got null");
    expect(() => new (SharedSemaphore as unknown as new (slots: number) => unknown)(2)).toThrow(
      "`SharedSemaphore.create`",
    );
  });

  test("a keyed semaphore refuses a limit that it does not have", async () => {
    const keyed = new KeyedSemaphore(1);
    expect(() => keyed.resize(any({ max: 5 }))).toThrow("Unknown option `max`");
    keyed.resize({ maxPerKey: 2 });
    const slots = [await keyed.acquire("a"), await keyed.acquire("a")];
    for (const slot of slots) slot.release();
    keyed.close();
  });
});
