import { KeyedSemaphore, Semaphore, SlotPool } from "slotkeeper";
import { createSemaphore, delay, run, simulate, spawn } from "slotkeeper/effects";
import { Limiter, stream } from "slotkeeper/limiter";
import { SharedSemaphore } from "slotkeeper/threads";
import { MediaSlots, TransferSlots } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
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

  test("constructors name the option that is missing", () => {
    expect(() => new SlotPool(any(undefined))).toThrow("Expected `options` to be an object, got undefined");
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
