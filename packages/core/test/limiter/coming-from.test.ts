/** The guides for those who come from bottleneck and p-queue: no option is left out, and both do the same side by side. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Bottleneck from "bottleneck";
import PQueue from "p-queue";
import { Limiter, type LimiterOptions } from "slotkeeper/limiter";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const guide = (name: string): string => readFileSync(join(root, "docs/guides", name), "utf8");
const resolve = createRequire(import.meta.url).resolve;

// Both libraries and our real clock, in virtual time.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
const advance = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** A way to hand in work: what is compared. */
type Run = (work: () => Promise<unknown>) => PromiseLike<unknown>;

/** Runs a number of tasks of that length; returns when each started, and how many ran at most. */
async function observe(run: Run, count: number, takesMs: number, forMs: number) {
  const startedAt = Date.now();
  const starts: number[] = [];
  let [running, most] = [0, 0];
  const all = Array.from({ length: count }, () =>
    run(async () => {
      starts.push(Date.now() - startedAt);
      most = Math.max(most, ++running);
      await sleep(takesMs);
      running--;
    }),
  );
  await advance(forMs);
  await Promise.all(all);
  return { starts, most };
}

/** Bottleneck starts a job a few turns of its timers late. */
const roughly = (starts: readonly number[]): number[] => starts.map((at) => Math.floor(at / 50) * 50);

const ours = (options: LimiterOptions): Run => {
  const limiter = new Limiter(options);
  return (work) => limiter.run(work);
};

describe("the guides name every option", () => {
  test("of bottleneck: those of its README's tables of constructor, jobs, stop and clustering", () => {
    const readme = readFileSync(join(dirname(resolve("bottleneck/package.json")), "README.md"), "utf8");
    const options = [...readme.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name as string);
    expect(options.length).toBeGreaterThan(20);
    const text = guide("from-bottleneck.md");
    expect(options.filter((name) => !text.includes(name))).toEqual([]);
    const methods = [...readme.matchAll(/^#{3,4} (\w+)\(/gm)].map(([, name]) => name as string);
    const clustering = new Set(["deleteKey", "keys", "clusterKeys", "limiters", "key"]);
    expect(methods.filter((name) => !text.includes(name) && !clustering.has(name))).toEqual([]);
  });

  test("of p-queue: those of its types", () => {
    const folder = dirname(fileURLToPath(import.meta.resolve("p-queue")));
    const types = readFileSync(join(folder, "options.d.ts"), "utf8");
    const options = [...types.matchAll(/^ {4}(?:readonly )?(\w+)\?:/gm)].map(([, name]) => name as string);
    expect(options.length).toBeGreaterThan(10);
    const members = [...readFileSync(join(folder, "index.d.ts"), "utf8").matchAll(/^ {4}(?:get )?(\w+)(?:<\w+>)?\(/gm)];
    const names = [...options, ...members.map(([, name]) => name as string)].filter(
      (name) => !["constructor", "setInterval"].includes(name),
    );
    const text = guide("from-p-queue.md");
    expect(names.filter((name) => !text.includes(name))).toEqual([]);
  });
});

describe("beside bottleneck", () => {
  const theirs = (options: Bottleneck.ConstructorOptions): Run => {
    const limiter = new Bottleneck(options);
    return (work) => limiter.schedule(work);
  };

  test("maxConcurrent is slots", async () => {
    const [a, b] = [
      await observe(theirs({ maxConcurrent: 3 }), 9, 100, 1_000),
      await observe(ours({ slots: 3 }), 9, 100, 1_000),
    ];
    expect(b).toEqual({ starts: [0, 0, 0, 100, 100, 100, 200, 200, 200], most: 3 });
    expect({ ...a, starts: roughly(a.starts) }).toEqual(b);
  });

  test("minTime is a budget of one per that time", async () => {
    const [a, b] = [
      await observe(theirs({ minTime: 200 }), 4, 10, 1_000),
      await observe(ours({ budgets: { starts: { limit: 1, perMs: 200 } } }), 4, 10, 1_000),
    ];
    expect(b.starts).toEqual([0, 200, 400, 600]);
    expect(roughly(a.starts)).toEqual(b.starts);
  });

  test("a refreshed reservoir is a budget of that amount per interval", async () => {
    const reservoir = { reservoir: 4, reservoirRefreshAmount: 4, reservoirRefreshInterval: 1_000 };
    const [a, b] = [
      await observe(theirs(reservoir), 12, 10, 5_000),
      await observe(ours({ budgets: { jobs: { limit: 4, perMs: 1_000, strict: true } } }), 12, 10, 5_000),
    ];
    expect(b.starts).toEqual([0, 0, 0, 0, 1_000, 1_000, 1_000, 1_000, 2_000, 2_000, 2_000, 2_000]);
    expect(a.starts.map((at) => Math.floor(at / 1_000))).toEqual(b.starts.map((at) => at / 1_000));
  });

  test("weight is a cost, priority a level", async () => {
    const bottleneck = new Bottleneck({ maxConcurrent: 3, reservoir: 13 });
    const jobsBudget = { jobs: { limit: 13, perMs: 3_600_000 } };
    const limiter = new Limiter({ slots: 1, levels: 10, defaultLevel: 5, budgets: jobsBudget });
    const orders: [string[], string[]] = [[], []];
    const jobs = [
      ["first", 5, 3],
      ["a", 9, 1],
      ["b", 5, 2],
      ["c", 0, 3],
      ["d", undefined, 1],
    ] as const;
    for (const [label, level, cost] of jobs) {
      const work = (side: 0 | 1) => async () => {
        orders[side].push(label);
        await sleep(50);
      };
      void bottleneck.schedule({ ...(level !== undefined && { priority: level }), weight: cost }, work(0));
      void limiter.run(work(1), { level, cost: { jobs: cost } });
      await advance(5);
    }
    await advance(1_000);
    expect(orders[1]).toEqual(["first", "c", "b", "d", "a"]);
    expect(orders[0]).toEqual(orders[1]);
    const reservoir = bottleneck.currentReservoir();
    await advance(10);
    expect([await reservoir, Math.floor(limiter.stats().budgets.jobs?.available ?? 0)]).toEqual([3, 3]);
  });

  test("OVERFLOW refuses the newcomer above the high water mark, as maxWaiters does", async () => {
    const bottleneck = new Bottleneck({ maxConcurrent: 1, highWater: 2, strategy: Bottleneck.strategy.OVERFLOW });
    const limiter = new Limiter({ slots: 1, maxWaiters: 2 });
    const ends: [string[], string[]] = [[], []];
    const note = (side: 0 | 1, run: Run, i: number) =>
      void run(() => sleep(10)).then(
        () => ends[side].push(`${i} ran`),
        () => ends[side].push(`${i} refused`),
      );
    for (let i = 0; i < 5; i++) {
      note(0, (work) => bottleneck.schedule(work), i);
      note(1, (work) => limiter.run(work), i);
      await advance(1);
    }
    await advance(1_000);
    expect(ends[0].toSorted()).toEqual(ends[1].toSorted());
  });

  test("stop drops who waits, as close does, and wrap wraps", async () => {
    const bottleneck = new Bottleneck({ maxConcurrent: 1 });
    const limiter = new Limiter({ slots: 1 });
    const add = async (a: number, b: number) => {
      await sleep(50);
      return a + b;
    };
    const calls = [bottleneck.wrap(add), limiter.wrap(add)].map((call) => [call(1, 2), call(3, 4)]);
    const ends = calls.map((pair) => Promise.allSettled(pair));
    await advance(10);
    expect([bottleneck.counts().QUEUED, limiter.waiting]).toEqual([1, 1]);
    void bottleneck.stop({ dropErrorMessage: "over" });
    limiter.close("over");
    await advance(100);
    const [a, b] = await Promise.all(ends);
    expect(a?.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(b?.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect([a?.[1], b?.[1]].map((end) => (end as PromiseRejectedResult).reason.message)).toEqual(["over", "over"]);
  });

  test("expiration bounds the work, as ttlMs with abortOnExpiry does", async () => {
    const bottleneck = new Bottleneck({ maxConcurrent: 1 });
    const limiter = new Limiter({ slots: 1, ttlMs: 50, abortOnExpiry: true });
    const ends = [
      bottleneck.schedule({ expiration: 50 }, () => sleep(1_000)),
      limiter.run(() => sleep(1_000)),
      bottleneck.schedule(async () => "next"),
      limiter.run(() => "next"),
    ].map((end) => Promise.resolve(end).catch(() => "expired"));
    await advance(100);
    expect(await Promise.all(ends)).toEqual(["expired", "expired", "next", "next"]);
  });

  test("a group's keys are perKey, updateSettings is update, and idle comes when all is done", async () => {
    const group = new Bottleneck.Group({ maxConcurrent: 1 });
    const limiter = new Limiter({ perKey: { slots: 1 } });
    const starts: [string[], string[]] = [[], []];
    let isIdle = false;
    for (const key of ["a", "a", "b"]) {
      void group.key(key).schedule(async () => {
        starts[0].push(key);
        await sleep(10);
      });
      void limiter.run(
        async () => {
          starts[1].push(key);
          await sleep(10);
        },
        { key },
      );
    }
    void limiter.idle().then(() => (isIdle = true));
    await advance(100);
    expect(starts[1]).toEqual(["a", "b", "a"]);
    expect(starts[0]).toEqual(starts[1]);
    expect(isIdle).toBe(true);
    const single = new Bottleneck({ maxConcurrent: 1 });
    const slots = new Limiter({ slots: 1 });
    const [a, b] = [observe((work) => single.schedule(work), 4, 100, 0), observe((work) => slots.run(work), 4, 100, 0)];
    await advance(50);
    single.updateSettings({ maxConcurrent: 3 });
    slots.update({ slots: 3 });
    await advance(1_000);
    expect((await b).most).toBe((await a).most);
  });
});

describe("beside p-queue", () => {
  const theirs = (options: ConstructorParameters<typeof PQueue>[0]): Run => {
    const queue = new PQueue(options);
    return (work) => queue.add(work);
  };

  test("concurrency is slots", async () => {
    const [a, b] = [
      await observe(theirs({ concurrency: 2 }), 6, 100, 1_000),
      await observe(ours({ slots: 2 }), 6, 100, 1_000),
    ];
    expect(b).toEqual({ starts: [0, 0, 100, 100, 200, 200], most: 2 });
    expect(a).toEqual(b);
  });

  test.each([true, false])("intervalCap and interval are a strict budget, strict: %s", async (strict) => {
    const [a, b] = [
      await observe(theirs({ intervalCap: 3, interval: 1_000, strict }), 9, 10, 5_000),
      await observe(ours({ budgets: { tasks: { limit: 3, perMs: 1_000, strict: true } } }), 9, 10, 5_000),
    ];
    expect(b.starts).toEqual([0, 0, 0, 1_000, 1_000, 1_000, 2_000, 2_000, 2_000]);
    expect(a.starts).toEqual(b.starts);
  });

  test("autoStart: false is pause, start is resume, priority is a level the other way round", async () => {
    const queue = new PQueue({ concurrency: 1, autoStart: false });
    const limiter = new Limiter({ slots: 1, levels: 3, defaultLevel: 1 });
    limiter.pause();
    const orders: [string[], string[]] = [[], []];
    for (const [label, level] of [
      ["c1", 2],
      ["a1", 0],
      ["b1", 1],
      ["b2", undefined],
      ["a2", 0],
    ] as const) {
      const priority = level === undefined ? {} : { priority: 1 - level };
      void queue.add(async () => void orders[0].push(label), priority);
      void limiter.run(() => void orders[1].push(label), level === undefined ? undefined : { level });
    }
    await advance(100);
    expect([orders, queue.size, limiter.waiting, queue.isPaused, limiter.paused]).toEqual([[[], []], 5, 5, true, true]);
    queue.start();
    limiter.resume();
    await advance(100);
    expect(orders[1]).toEqual(["a1", "a2", "b1", "b2", "c1"]);
    expect(orders[0]).toEqual(orders[1]);
  });

  test("a signal takes a waiter out, a timeout bounds the work, and addAll is map", async () => {
    const queue = new PQueue({ concurrency: 1, timeout: 50 });
    const limiter = new Limiter({ slots: 1, ttlMs: 50, abortOnExpiry: true });
    const controller = new AbortController();
    const { signal } = controller;
    const named = (error: unknown) => (error as Error).name;
    const ends = [
      queue.add(() => sleep(1_000)).catch(() => "too long"),
      limiter.run(() => sleep(1_000)).catch(() => "too long"),
      queue.add(async () => "never", { signal }).catch(named),
      limiter.run(() => "never", { signal }).catch(named),
      queue.addAll([async () => 1, async () => 2]),
      limiter.map([async () => 1, async () => 2], (task) => task()),
    ];
    controller.abort();
    await advance(200);
    const [a, b, c, d, e, f] = await Promise.all(ends);
    expect([a, b, c, d]).toEqual(["too long", "too long", "AbortError", "AbortError"]);
    expect([e, f]).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test("a new concurrency is update, onIdle is idle, pending is inUse", async () => {
    const queue = new PQueue({ concurrency: 1 });
    const limiter = new Limiter({ slots: 1 });
    const runs: Run[] = [(work) => queue.add(work), (work) => limiter.run(work)];
    const observed = runs.map((run) => observe(run, 6, 100, 0));
    await advance(50);
    queue.concurrency = 3;
    limiter.update({ slots: 3 });
    await advance(10);
    expect([queue.pending, limiter.inUse, queue.size, limiter.waiting]).toEqual([3, 3, 3, 3]);
    const idle = Promise.all([queue.onIdle(), limiter.idle()]);
    await advance(1_000);
    const [a, b] = await Promise.all(observed);
    expect(a).toEqual(b);
    await idle;
  });
});
