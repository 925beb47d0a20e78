import { KeyedSemaphore, Semaphore, SemaphoreRegistry, SlotPool } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
/** What a caller without types may pass. */
const any = (value: unknown) => value as never;

describe("misuse is a TypeError or RangeError that names field, expectation and value", () => {
  test.each([0, -1, 1.5, Number.NaN, -Infinity, "3", null, undefined, {}, 3n])(
    "slots of %s is a RangeError",
    (slots) => {
      expect(() => new Semaphore(any(slots))).toThrow(RangeError);
      expect(() => new Semaphore(any(slots))).toThrow(/Expected `slots` to be .*, got /);
      expect(() => new KeyedSemaphore(any(slots))).toThrow(RangeError);
    },
  );

  test("the value is in the message", () => {
    expect(() => new Semaphore(1.5)).toThrow("got 1.5");
    expect(() => new Semaphore(any("3"))).toThrow('got "3"');
    expect(() => new Semaphore(Number.NaN)).toThrow("got NaN");
  });

  test.each([
    ["ttlMs", -1],
    ["ttlMs", Number.NaN],
    ["ttlMs", "5"],
    ["acquireTimeoutMs", -1],
    ["maxWaiters", 1.5],
    ["maxWaiters", -1],
  ])("the option %s with the value %s is a RangeError", (field, value) => {
    expect(() => new Semaphore(1, any({ [field]: value }))).toThrow(RangeError);
    expect(() => new Semaphore(1, any({ [field]: value }))).toThrow(new RegExp(`\`${field}\`.*got`));
  });

  test.each([
    ["name", 5],
    ["abortOnExpiry", "yes"],
    ["onEvent", {}],
    ["clock", 5],
    ["registry", "mine"],
  ])("the option %s with the value %s is a TypeError", (field, value) => {
    expect(() => new Semaphore(1, any({ [field]: value }))).toThrow(TypeError);
    expect(() => new Semaphore(1, any({ [field]: value }))).toThrow(new RegExp(`\`${field}\``));
  });

  test.each(["clock", "registry"])("null as %s is a TypeError that names the field", (field) => {
    expect(() => new Semaphore(1, any({ name: "x", [field]: null }))).toThrow(new RegExp(`\`${field}\``));
  });

  test("release without an id is a TypeError that says what to call, because it would leak the slot", async () => {
    const message = "Expected `id` to be a string (or call `slot.release()`), got";
    const sem = world().semaphore(1);
    const limiter = new Limiter({ slots: 1 });
    for (const gate of [sem, limiter]) {
      const slot = await gate.acquire();
      expect(() => gate.release(any(undefined))).toThrow(new TypeError(`${message} undefined`));
      expect(() => gate.release(any(slot))).toThrow(`${message} [object Object]`);
      expect([gate.release("no such id"), gate.inUse]).toEqual([false, 1]);
      expect([gate.release(slot.id), gate.inUse]).toEqual([true, 0]);
    }
  });

  test("an unknown option is refused by name", () => {
    expect(() => new Semaphore(1, any({ timeout: 5 }))).toThrow(TypeError);
    expect(() => new Semaphore(1, any({ timeout: 5 }))).toThrow("`timeout`");
    expect(() => new SlotPool(any({ max: 1, maxPerUser: 5 }))).toThrow("`maxPerUser`");
    expect(() => new SemaphoreRegistry(any({ idle: 5 }))).toThrow("`idle`");
  });

  test.each<[string, () => unknown]>([
    ["idleMs of a Semaphore", () => new Semaphore(1, any({ idleMs: 5 }))],
    ["maxPerKey of a Semaphore", () => new Semaphore(1, any({ maxPerKey: 5 }))],
    ["ttlMs of a registry", () => new SemaphoreRegistry(any({ ttlMs: 5 }))],
    ["registry of a pool", () => new SlotPool(any({ max: 1, registry: new SemaphoreRegistry() }))],
    ["slots of a pool", () => new SlotPool(any({ max: 1, slots: 1 }))],
    ["maxPerKey of a KeyedSemaphore", () => new KeyedSemaphore(1, any({ maxPerKey: 5 }))],
  ])("an option that belongs to another class is unknown: %s", (_, make) => {
    expect(make).toThrow(TypeError);
  });

  test("all problems are reported at once", () => {
    const options = { ttlMs: -1, maxWaiters: 1.5, bogus: 1 };
    expect(() => new Semaphore(1, any(options))).toThrow(/ttlMs.*maxWaiters.*bogus/s);
  });

  test("an option that is undefined has its default", () => {
    const sem = world().semaphore(1, { ttlMs: undefined, name: undefined, onEvent: undefined, maxWaiters: undefined });
    expect(sem.name).toBeUndefined();
  });

  test.each([-1, Number.NaN, "5", null])(
    "an acquire with timeoutMs %s rejects with RangeError, changes no state, and throws nothing",
    async (timeoutMs) => {
      const sem = world().semaphore(1);
      const held = await sem.acquire();
      for (const call of [() => sem.acquire(any({ timeoutMs })), () => sem.run(() => 0, any({ timeoutMs }))]) {
        const result = outcome<unknown>(call());
        await settled();
        expect(result.reason).toBeInstanceOf(RangeError);
        expect((result.reason as Error).message).toMatch(/`timeoutMs`.*got/);
      }
      expect([sem.waiting, sem.stats().rejected]).toEqual([0, 0]);
      held.release();
    },
  );

  test("a bad timeoutMs is refused even if a slot is free", async () => {
    const sem = world().semaphore(1);
    await expect(sem.acquire({ timeoutMs: -1 })).rejects.toThrow(RangeError);
    expect(sem.inUse).toBe(0);
  });

  test.each(["text", {}, 5])(
    "a signal that is not an AbortSignal (%s) rejects with TypeError and leaves nothing behind",
    async (signal) => {
      const sem = world().semaphore(1);
      const held = await sem.acquire();
      let result: ReturnType<typeof outcome<unknown>> | undefined;
      try {
        result = outcome(sem.acquire(any({ signal })));
        await settled();
      } finally {
        held.release();
      }
      expect(result?.reason).toBeInstanceOf(TypeError);
      expect(result?.reason).toMatchObject({ message: expect.stringContaining("`signal`") });
      expect(sem.waiting).toBe(0);
    },
  );

  test("options that are null are ignored", async () => {
    const sem = world().semaphore(1);
    const slot = await sem.acquire(any(null));
    slot.release();
  });

  test("run rejects if the work is not a function, and releases the slot", async () => {
    const sem = world().semaphore(1);
    await expect(sem.run(any(undefined))).rejects.toThrow(TypeError);
    expect(sem.inUse).toBe(0);
  });

  test.each([0, -5, Number.NaN, "5"])("renewing with %s is a RangeError and does not change the ttl", async (ttlMs) => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const slot = await sem.acquire();
    world().clock.advance(10);
    expect(() => slot.renew(any(ttlMs))).toThrow(RangeError);
    expect(slot.expiresAt).toBe(1_000_100);
    slot.release();
  });

  test("a keyed semaphore refuses a bad number of slots", () => {
    expect(() => new KeyedSemaphore(0)).toThrow(/`slotsPerKey`.*got 0/);
  });

  test("a registry refuses a bad idleMs and a bad limit", () => {
    expect(() => new SemaphoreRegistry({ idleMs: -1 })).toThrow(/`idleMs`.*got -1/);
    expect(() => new SemaphoreRegistry().sweep(-1)).toThrow(/`idleMs`.*got -1/);
    expect(() => world().registry.stats({ limit: -1 })).toThrow(/`limit`.*got -1/);
  });
});
