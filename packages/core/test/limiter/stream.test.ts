import { getEventListeners } from "node:events";
import { Readable } from "node:stream";
import { runInNewContext } from "node:vm";
import { Semaphore } from "slotkeeper";
import { Limiter, stream } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { Deferred } from "../deferred.ts";
import { outcome } from "../outcome.ts";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();

/** Counts what is read of it, and whether it was closed. */
class Counted {
  read = 0;
  closed = 0;
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  *[Symbol.iterator](): Generator<number> {
    try {
      while (this.read < this.#count) yield this.read++;
    } finally {
      this.closed++;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    yield* this[Symbol.iterator]();
  }
}

async function all<T>(results: AsyncIterable<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const one of results) taken.push(one);
  return taken;
}

describe("stream", () => {
  test.each([
    ["a semaphore", () => new Semaphore(3)],
    ["a limiter", () => new Limiter({ slots: 3, budgets: { requests: { limit: 1e6, perMs: 1 } } })],
  ])(
    "gives the results of %s's work in the order of the items, from iterables and async iterables",
    async (_, make) => {
      const later = async (item: number) => {
        for (let turn = 0; turn < 10 - item; turn++) await Promise.resolve();
        return item * 2;
      };
      expect(await all(stream(make(), [0, 1, 2, 3, 4], later))).toEqual([0, 2, 4, 6, 8]);
      expect(await all(stream(make(), new Counted(4)[Symbol.asyncIterator](), later))).toEqual([0, 2, 4, 6]);
      expect(await all(stream(make(), "ab", (item, index) => item + index))).toEqual(["a0", "b1"]);
      expect(await all(stream(make(), [], later))).toEqual([]);
    },
  );

  test.each([
    ["a promise of another realm", runInNewContext("(value) => Promise.resolve(value)")],
    // oxlint-disable-next-line unicorn/no-thenable -- the case needs such an object
    ["an object with `then`", (value: unknown) => ({ then: (done: (value: unknown) => void) => done(value) })],
  ])("reads a source whose `next` returns %s", async (_, promiseOf) => {
    const source = () => {
      let read = 0;
      const next = () => promiseOf({ done: read === 3, value: read++ });
      return { [Symbol.asyncIterator]: () => ({ next }) } as AsyncIterable<number>;
    };
    expect(await all(stream(new Semaphore(2), source(), (item) => item))).toEqual([0, 1, 2]);
    expect(await new Limiter({ slots: 2 }).map(source(), (item) => item)).toEqual([0, 1, 2]);
  });

  test.each([5, "x", true, null, undefined])("refuses a source whose `next` returns %s", async (result) => {
    const source = (next: () => unknown) => ({ [Symbol.asyncIterator]: () => ({ next }) }) as AsyncIterable<unknown>;
    const message = `Expected \`source.next()\` to be an object, got ${typeof result === "string" ? `"${result}"` : result}`;
    for (const next of [() => result, async () => result]) {
      await expect(all(stream(new Semaphore(2), source(next), (item) => item))).rejects.toThrow(new TypeError(message));
      await expect(new Limiter({ slots: 2 }).map(source(next), (item) => item)).rejects.toThrow(new TypeError(message));
    }
  });

  test("without order gives results as they come", async () => {
    const gates = [new Deferred<string>(), new Deferred<string>(), new Deferred<string>()];
    const results = stream(new Semaphore(3), gates, (gate) => gate.promise, { ordered: false });
    const first = results.next();
    await settled();
    gates[2]?.resolve("c");
    expect(await first).toEqual({ done: false, value: "c" });
    gates[0]?.resolve("a");
    gates[1]?.resolve("b");
    expect(await all(results)).toEqual(["a", "b"]);
  });

  test.each([
    [2, 0],
    [2, 3],
    [1, 0],
  ])(
    "with %i slots and readAhead %i never has more read than that and not taken (STREAM1)",
    async (slots, readAhead) => {
      const source = new Counted(20);
      const results = stream(new Semaphore(slots), source, (item) => item, { readAhead });
      await settled();
      expect(source.read).toBe(0);
      for (let taken = 0; taken < 20; taken++) {
        expect((await results.next()).value).toBe(taken);
        await settled();
        expect(source.read).toBe(Math.min(20, taken + 1 + slots + readAhead));
      }
      expect((await results.next()).done).toBe(true);
      expect(source.closed).toBe(1);
    },
  );

  test("runs no more at a time than the gate allows, shared with others", async () => {
    const sem = new Semaphore(2);
    const held = await sem.acquire();
    let [running, most] = [0, 0];
    const work = async () => {
      most = Math.max(most, ++running);
      await settled(3);
      running--;
    };
    const done = all(stream(sem, new Counted(6), work, { readAhead: 4 }));
    await settled(100);
    held.release();
    await done;
    expect([most, sem.inUse]).toEqual([1, 0]);
  });

  test("closes the source and aborts the work in flight when the consumer stops", async () => {
    const source = new Counted(100);
    const sem = new Semaphore(3);
    const aborted: number[] = [];
    const work = (item: number, _: number, { signal }: { signal: AbortSignal }) =>
      item === 0
        ? "first"
        : new Promise((_, reject) => {
            signal.addEventListener("abort", () => {
              aborted.push(item);
              reject(signal.reason);
            });
          });
    for await (const value of stream(sem, source, work)) {
      expect(value).toBe("first");
      await settled();
      break;
    }
    await settled();
    expect([source.closed, aborted, sem.inUse, sem.waiting]).toEqual([1, [1, 2, 3], 0, 0]);
    expect(source.read).toBe(4);
  });

  test("an item that fails ends it at once: the source is closed, the rest aborted, nothing new starts", async () => {
    const source = new Counted(100);
    const sem = new Semaphore(2);
    const started: number[] = [];
    const signals: AbortSignal[] = [];
    const results = stream(sem, source, async (item, _, { signal }) => {
      started.push(item);
      signals.push(signal);
      if (item === 1) throw new Error("item 1");
      return new Promise(() => {});
    });
    await expect(results.next()).rejects.toThrow("item 1");
    expect(await results.next()).toEqual({ done: true, value: undefined });
    await settled();
    expect([started, source.closed, signals[0]?.aborted]).toEqual([[0, 1], 1, true]);
    expect(sem.inUse).toBe(1);
  });

  test("a source that fails ends it, and is not closed again", async () => {
    let closed = 0;
    const source = {
      [Symbol.iterator]: () => ({
        next: () => {
          throw new Error("source");
        },
        return: () => {
          closed++;
          return { done: true as const, value: undefined };
        },
      }),
    };
    await expect(all(stream(new Semaphore(1), source, (item) => item))).rejects.toThrow("source");
    expect(closed).toBe(0);
  });

  test("a signal ends it with its reason, before and during", async () => {
    const source = new Counted(10);
    const controller = new AbortController();
    const results = stream(new Semaphore(1), source, () => new Promise(() => {}), { signal: controller.signal });
    const next = outcome(results.next());
    await settled();
    controller.abort("stop");
    await settled();
    expect([next.reason, source.closed]).toEqual(["stop", 1]);
    const late = new Counted(10);
    const never = stream(new Semaphore(1), late, (item) => item, { signal: controller.signal });
    await expect(never.next()).rejects.toBe("stop");
    expect(late.read).toBe(0);
    const unused = new AbortController();
    stream(new Semaphore(1), [1], (item) => item, { signal: unused.signal });
    expect(await all(stream(new Semaphore(1), [1], (item) => item, { signal: unused.signal }))).toEqual([1]);
    expect(getEventListeners(unused.signal, "abort").length).toBe(0);
  });

  test("asks a limiter for what each item costs, and gives the slot to settle it", async () => {
    const limiter = world().limiter({ slots: 9, budgets: { tokens: { limit: 10, perMs: 1_000 } } });
    const startedAt: number[] = [];
    const results = stream(
      limiter,
      [6, 4, 5],
      (cost, _, { slot }) => {
        startedAt.push(world().clock.now() - 1_000_000);
        slot.settle({ tokens: cost - 1 });
        return cost;
      },
      { acquire: (cost) => ({ cost: { tokens: cost } }) },
    );
    const taken = all(results);
    await world().clock.advanceAsync(1_000);
    expect([await taken, startedAt]).toEqual([
      [6, 4, 5],
      [0, 0, 300],
    ]);
  });

  test("an acquire option that throws, or a cost that is too high, fails the item", async () => {
    const limiter = world().limiter({ budgets: { tokens: { limit: 10, perMs: 1_000 } } });
    const source = new Counted(5);
    const tooDear = stream(limiter, source, (item) => item, { acquire: () => ({ cost: { tokens: 11 } }) });
    await expect(all(tooDear)).rejects.toThrow(RangeError);
    expect(source.closed).toBe(1);
  });

  test.each<[unknown, unknown, unknown, unknown, RegExp]>([
    [5, [1], () => 1, {}, /`gate`/],
    [new Semaphore(1), 5, () => 1, {}, /`source` to be an iterable, got 5/],
    [new Semaphore(1), undefined, () => 1, {}, /`source`/],
    [new Semaphore(1), [1], "fn", {}, /`fn` to be a function/],
    [new Semaphore(1), [1], () => 1, { readAhead: -1 }, /`readAhead`/],
    [new Semaphore(1), [1], () => 1, { order: true }, /Unknown option `order`/],
  ])("refuses %s, %s, %s, %j", (gate, source, fn, options, message) => {
    expect(() => stream(gate as never, source as never, fn as never, options as never)).toThrow(message);
  });
});

describe("back-pressure of real streams", () => {
  test("a Node stream is read no faster than its results are taken, and destroyed when the consumer stops", async () => {
    let made = 0;
    const source = new Readable({
      objectMode: true,
      highWaterMark: 1,
      read() {
        this.push({ item: made++ });
      },
    });
    const results = stream(new Semaphore(2), source as AsyncIterable<{ item: number }>, ({ item }) => item);
    expect((await results.next()).value).toBe(0);
    await new Promise((resolve) => setImmediate(resolve));
    const madeBefore = made;
    await new Promise((resolve) => setImmediate(resolve));
    // Three were asked for; the stream itself buffers one or two.
    expect(made).toBe(madeBefore);
    expect(made).toBeLessThanOrEqual(6);
    await results.return?.();
    expect(source.destroyed).toBe(true);
  });

  test("a Node stream that waits for data is destroyed at once, too", async () => {
    const source = new Readable({ objectMode: true, read() {} });
    const results = stream(new Semaphore(1), source as AsyncIterable<unknown>, (item) => item);
    const next = outcome(results.next());
    await settled();
    await results.return?.();
    await settled();
    expect([source.destroyed, next.value.done]).toEqual([true, true]);
  });

  test("a web stream is read no faster than its results are taken, and cancelled when an item fails", async () => {
    let pulled = 0;
    let cancelledWith: unknown;
    const source = new ReadableStream<number>(
      {
        pull: (controller) => controller.enqueue(pulled++),
        cancel: (reason) => void (cancelledWith = reason ?? "cancelled"),
      },
      { highWaterMark: 0 },
    );
    const results = stream(new Semaphore(2), source, (item) => {
      if (item === 3) throw new Error("item 3");
      return item;
    });
    expect((await results.next()).value).toBe(0);
    await settled();
    expect(pulled).toBe(3);
    expect((await results.next()).value).toBe(1);
    await expect(all(results)).rejects.toThrow("item 3");
    await settled();
    expect(cancelledWith).toBe("cancelled");
  });

  test("a web stream that waits for data is cancelled by a signal", async () => {
    let isCancelled = false;
    const source = new ReadableStream<number>({ cancel: () => void (isCancelled = true) });
    const controller = new AbortController();
    const next = outcome(stream(new Semaphore(1), source, (item) => item, { signal: controller.signal }).next());
    await settled();
    controller.abort("stop");
    await settled();
    expect([next.reason, isCancelled]).toEqual(["stop", true]);
  });
});

describe("map of a limiter", () => {
  test("gives all results in the order of the items, from iterables and async iterables", async () => {
    const limiter = world().limiter({ slots: 2 });
    expect(await limiter.map([3, 2, 1], async (item, index) => item * 10 + index)).toEqual([30, 21, 12]);
    expect(await limiter.map(new Counted(4)[Symbol.asyncIterator](), (item) => item)).toEqual([0, 1, 2, 3]);
    expect(await limiter.map([], (item) => item)).toEqual([]);
  });

  test("a slow item keeps no later item from starting", async () => {
    const limiter = world().limiter({ slots: 2 });
    const slow = new Deferred();
    const started: number[] = [];
    const done = limiter.map([0, 1, 2, 3], async (item) => {
      started.push(item);
      if (item === 0) await slow.promise;
    });
    await settled();
    expect(started).toEqual([0, 1, 2, 3]);
    slow.resolve();
    await done;
  });

  test("after a failure no new item starts, and the source is closed (STREAM1)", async () => {
    const limiter = world().limiter({ slots: 2 });
    const source = new Counted(100);
    const started: number[] = [];
    const failed = limiter.map(source, async (item) => {
      started.push(item);
      await settled(2);
      if (item === 1) throw new Error("item 1");
    });
    await expect(failed).rejects.toThrow("item 1");
    await settled();
    expect(started.length).toBeLessThanOrEqual(4);
    expect([source.closed, limiter.inUse, limiter.waiting]).toEqual([1, 0, 0]);
  });

  test("without stopOnError every item runs, and all failures are thrown together (STREAM2)", async () => {
    const limiter = world().limiter({ slots: 3 });
    const started: number[] = [];
    const failed = limiter.map(
      [0, 1, 2, 3, 4],
      async (item) => {
        started.push(item);
        if (item === 3) throw new Error("item 3");
        await settled(4);
        if (item === 1) throw new Error("item 1");
      },
      { stopOnError: false },
    );
    const error = (await failed.catch((reason: unknown) => reason)) as AggregateError;
    expect(error).toBeInstanceOf(AggregateError);
    expect([error.message, error.errors.map(String).toSorted()]).toEqual([
      "2 of 5 items failed",
      ["Error: item 1", "Error: item 3"],
    ]);
    expect(started).toEqual([0, 1, 2, 3, 4]);
  });

  test("a signal ends it", async () => {
    const limiter = world().limiter({ slots: 1 });
    const controller = new AbortController();
    const gate = new Deferred();
    const started: number[] = [];
    const mapped = limiter.map(
      [0, 1, 2],
      async (item) => {
        started.push(item);
        await gate.promise;
      },
      { signal: controller.signal },
    );
    await settled();
    controller.abort("stop");
    await expect(mapped).rejects.toBe("stop");
    gate.resolve();
    await settled();
    expect([started, limiter.inUse]).toEqual([[0], 0]);
  });
});
