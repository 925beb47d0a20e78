import { getEventListeners } from "node:events";
import type { Semaphore } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { Deferred } from "./deferred.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

/** An async source that records how many items were read and whether it was closed. */
function counted(length: number) {
  const seen = { read: 0, closed: false };
  async function* items() {
    try {
      for (let item = 0; item < length; item++) {
        seen.read++;
        yield item;
      }
    } finally {
      seen.closed = true;
    }
  }
  return { seen, items: items() };
}

/** `Semaphore` and `Limiter` have the same `map`. */
const kinds: [string, (slots: number) => Semaphore | Limiter][] = [
  ["Semaphore", (slots) => world().semaphore(slots)],
  ["Limiter", (slots) => world().guard.track(new Limiter({ slots, clock: world().clock }))],
];

describe.each(kinds)("map of %s", (_, make) => {
  test("takes async iterables, keeps the order, and reads at most one item ahead", async () => {
    const sem = make(2);
    const { seen, items } = counted(6);
    let started = 0;
    const results = await sem.map(items, async (item, index) => {
      expect(seen.read - ++started).toBeLessThanOrEqual(1);
      await settled(6 - index);
      return item * 10;
    });
    expect(results).toEqual([0, 10, 20, 30, 40, 50]);
    expect(sem.inUse).toBe(0);
  });

  test("after a failure starts no new item, and closes the source", async () => {
    const sem = make(1);
    const { seen, items } = counted(100);
    const started: number[] = [];
    const error = new Error("item 2");
    const mapped = outcome(
      sem.map(items, async (item) => {
        started.push(item);
        if (item === 2) throw error;
      }),
    );
    await settled(200);
    expect(mapped.reason).toBe(error);
    expect([started, seen.closed, sem.inUse, sem.waiting]).toEqual([[0, 1, 2], true, 0, 0]);
  });

  test("after a failure starts no item that waits for a slot, because the failure counts before the slot is free", async () => {
    for (const slots of [1, 2, 3]) {
      const gate = make(slots);
      const others = [];
      for (let other = 1; other < slots; other++) others.push(await gate.acquire());
      const started: number[] = [];
      const failing = new Deferred();
      const mapped = outcome(
        gate.map([0, 1, 2], (item) => {
          started.push(item);
          return failing.promise;
        }),
      );
      await settled(20);
      // Item 1 waits for the slot of item 0.
      expect([started, gate.waiting]).toEqual([[0], 1]);
      failing.reject(new Error("item 0"));
      await settled(20);
      expect(mapped.reason).toEqual(new Error("item 0"));
      for (const slot of others) slot.release();
      await settled(20);
      expect([started, gate.inUse, gate.waiting]).toEqual([[0], 0, 0]);
    }
  });

  test("reads at most one item that has not started, and has one waiter", async () => {
    const gate = make(2);
    const held = await gate.acquire();
    const { seen, items } = counted(5);
    const work = new Deferred();
    const mapped = gate.map(items, () => work.promise);
    await settled(20);
    expect([seen.read, gate.waiting]).toEqual([2, 1]);
    work.resolve();
    held.release();
    await mapped;
  });

  test("ends if a slot is refused, with stopOnError false too", async () => {
    for (const stopOnError of [true, false]) {
      const gate = make(1);
      const held = await gate.acquire();
      const mapped = outcome(gate.map([1, 2], () => 1, { stopOnError }));
      await settled();
      gate.close("closed");
      await settled(20);
      expect([mapped.reason, gate.waiting]).toMatchObject([{ code: "CLOSED" }, 0]);
      held.release();
    }
  });

  test("with stopOnError false tries every item and rejects with all failures", async () => {
    const sem = make(2);
    const started: number[] = [];
    const mapped = outcome(
      sem.map(
        [0, 1, 2, 3],
        (item) => {
          started.push(item);
          if (item % 2 === 1) throw new Error(`item ${item}`);
        },
        { stopOnError: false },
      ),
    );
    await settled(100);
    expect(started).toEqual([0, 1, 2, 3]);
    expect(mapped.reason).toBeInstanceOf(AggregateError);
    expect((mapped.reason as AggregateError).errors.map(String)).toEqual(["Error: item 1", "Error: item 3"]);
  });

  test("an abort ends it with the signal's reason, and its waiter leaves the queue", async () => {
    const sem = make(1);
    const held = await sem.acquire();
    const controller = new AbortController();
    const mapped = outcome(sem.map([1, 2, 3], () => 1, { signal: controller.signal }));
    await settled();
    expect(sem.waiting).toBe(1);
    controller.abort("stop");
    await settled();
    expect([mapped.reason, sem.waiting]).toEqual(["stop", 0]);
    held.release();
  });

  test.each([
    [null, "null"],
    [undefined, "undefined"],
    [5, "5"],
    [{}, "[object Object]"],
  ])("items of %s are refused by name, expectation and value", async (items, shown) => {
    const error = new TypeError(`Expected \`items\` to be an iterable, got ${shown}`);
    await expect(make(1).map(items as never, () => 1)).rejects.toEqual(error);
  });

  test("a string is an iterable of its characters", async () => {
    const characters = await make(1).map("abc", (character) => character.toUpperCase());
    expect(characters).toEqual(["A", "B", "C"]);
  });

  test("the listener on the caller's signal is removed when the call ends", async () => {
    const { signal } = new AbortController();
    const sem = make(1);
    await sem.map([1, 2], (item) => item, { signal });
    await expect(sem.map([1], () => Promise.reject(new Error("item")), { signal })).rejects.toThrow("item");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("an error of the source rejects the call", async () => {
    const error = new Error("source");
    const failing = {
      *[Symbol.iterator]() {
        yield 1;
        throw error;
      },
    };
    await expect(make(1).map(failing, () => 1)).rejects.toBe(error);
  });
});

describe("map with slots that expire", () => {
  test("an expiry is the failure of its item, and a later error of that item does not count", async () => {
    const options = { ttlMs: 10, abortOnExpiry: true, clock: world().clock };
    for (const gate of [world().semaphore(1, options), new Limiter({ slots: 1, ...options })]) {
      const late = new Deferred();
      const started: number[] = [];
      const work = (item: number) => {
        started.push(item);
        return item === 0 ? late.promise : undefined;
      };
      const mapped = outcome(gate.map([0, 1], work, { stopOnError: false }));
      await world().clock.advanceAsync(10);
      late.reject(new Error("late"));
      await settled(20);
      const { errors, message } = mapped.reason as AggregateError;
      expect([message, errors]).toMatchObject(["1 of 2 items failed", [{ code: "SLOT_EXPIRED" }]]);
      expect(started).toEqual([0, 1]);
    }
  });
});

describe("clear", () => {
  test("rejects every waiter with the reason, serves none in between, and leaves the semaphore usable", async () => {
    const types: string[] = [];
    const sem = world().semaphore(2, { onEvent: ({ type }) => types.push(type) });
    const plain = world().semaphore(2);
    for (const one of [sem, plain]) {
      const held = await one.acquire();
      const waiters = [
        outcome(one.acquire({ width: 2 })),
        outcome(one.acquire()),
        outcome(one.acquire({ timeoutMs: 1_000 })),
        outcome(one.acquire({ signal: new AbortController().signal })),
      ];
      const reason = new Error("the user left");
      one.clear(reason);
      await settled();
      expect(waiters.map((waiter) => waiter.reason)).toEqual([reason, reason, reason, reason]);
      expect([one.waiting, one.inUse, one.closed, one.stats().aborted]).toEqual([0, 1, false, 4]);
      held.release();
      (await one.acquire({ width: 2 })).release();
    }
    expect(types.filter((type) => type === "aborted")).toHaveLength(4);
  });

  test("without a reason, waiters reject with an AbortError, as after an abort without a reason", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    sem.clear();
    await settled();
    expect(waiter.reason).toMatchObject({ name: "AbortError" });
    held.release();
  });
});
