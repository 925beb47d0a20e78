import { Random } from "@slotkeeper/testkit/random";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

/** Which waiter is next: what few random histories show. */

const HOST = {
  maxSlotPerHost: 4,
  maxSlotPerIp: -1,
  maxWaitersPerIp: -1,
  maxWaitMs: 600_000,
  zombieTimeoutSeconds: 300,
} as const;

const isGranted = ({ isGranted }: Followed) => isGranted;

describe("first come, first served", () => {
  test("the oldest session is next, however much its bucket holds and has used", async () => {
    const bench = new Bench({ ...HOST, order: "fifo" });
    const held = [await bench.take("a"), await bench.take("a"), await bench.take("a"), await bench.take("b")];
    await bench.clock.run(1_000);
    const sessions = [await bench.want("a"), await bench.want("b"), await bench.want("c")];
    await bench.release(held[3] as string);
    expect(sessions.map(isGranted)).toEqual([true, false, false]);
  });

  test("requests of every width get their slots, whichever width came first", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = new Random(seed);
      const bench = new Bench({ ...HOST, order: "fifo" });
      const held = [await bench.take("x", { width: 4 })];
      const sessions: Followed[] = [];
      for (let one = 0; one < 8; one++) sessions.push(await bench.want(`b${one}`, { width: random.int(1, 4) }));
      while (held.length > 0) {
        const waiting = sessions.filter((one) => !isGranted(one));
        await bench.release(held.splice(random.int(0, held.length - 1), 1)[0] as string);
        held.push(...waiting.filter(isGranted).map(({ slotToken }) => slotToken));
      }
      expect(sessions.every(isGranted)).toBe(true);
    }
  });

  test.each([
    { name: "a host", more: {} },
    { name: "a host with classes", more: { classes: { batch: {} } } },
  ])(
    "at $name, a request that needs exactly the free slots takes the place of one that may not be first",
    async ({ more }) => {
      const bench = new Bench({ ...HOST, maxSlotPerHost: 8, order: "fifo", ...more });
      for (const width of [3, 3]) await bench.take("a", { width });
      const token = await bench.take("b", { width: 2 });
      const [older, younger] = [await bench.want("a", { width: 3 }), await bench.want("b", { width: 2 })];
      await bench.release(token);
      expect([older, younger].map(isGranted)).toEqual([false, true]);
    },
  );
});

test("a wide request is first while its bucket has less than its share, which follows from its weight", async () => {
  const bench = new Bench({ ...HOST, maxSlotPerHost: 8, order: "fifo", hosts: { h: { weights: { a: 3 } } } });
  const token = await bench.take("b", { width: 2 });
  for (const [bucket, width] of [
    ["b", 1],
    ["a", 3],
    ["a", 2],
  ] as const)
    await bench.take(bucket, { width });
  const [wide, narrow] = [await bench.want("a", { width: 3 }), await bench.want("b")];
  await bench.release(token);
  expect([wide, narrow].map(isGranted)).toEqual([false, false]);
});

describe("the best-ranked request of a class whose ceiling has no room for it", () => {
  const TOKENS = { tokens: { limit: 100, perSeconds: 1_000 } };
  const batch = (width: number, tokens = 0) => ({ class: "batch", width, cost: { tokens } });

  /** A bucket that has more than its share of the class asks for too many slots, then another asks for one. */
  async function beside(config: object, tokens: number): Promise<boolean> {
    const bench = new Bench({
      ...HOST,
      maxSlotPerHost: 10,
      budgets: TOKENS,
      classes: { batch: { ceiling: 6 } },
      ...config,
    });
    for (const tokens of [60, 0, 0, 0, 0]) await bench.take("a", batch(1, tokens));
    await bench.want("a", batch(2, tokens));
    const narrow = await bench.want("b", batch(1));
    await drained();
    return narrow.isGranted;
  }

  test("lets others of its class go on if its bucket has more than its share", async () => {
    expect(await beside({ order: "fifo" }, 10)).toBe(true);
  });

  test("holds back its class if a budget cannot pay for it either", async () => {
    expect(await beside({ order: "fifo" }, 90)).toBe(false);
  });

  test("holds back its class in the order by a budget (CORDER3)", async () => {
    expect(await beside({ order: "budget:tokens" }, 10)).toBe(false);
  });
});

test("a host with classes is never hot: the weighted scheduler is off", async () => {
  const bench = new Bench({
    ...HOST,
    maxSlotPerHost: 1,
    classes: { chat: {} },
    weightedScheduler: { enabled: true, hotPendingMin: 1, hotAvgWaitMs: 1 },
  });
  const token = await bench.take("a");
  const next = await bench.want("b", { class: "chat" });
  await bench.want("c");
  await bench.clock.run(2_000);
  await bench.release(token);
  expect(next.isGranted).toBe(true);
  expect(bench.queue.glance("h")).toMatchObject({ isHot: false });
});

test("a host is hot from the average wait that is configured for it until the average is no more than that for cold ones", async () => {
  const config = (coldAvgWaitMs: number, hotAvgWaitMs: number) => ({
    ...HOST,
    maxSlotPerHost: 1,
    weightedScheduler: { enabled: true, hotPendingMin: 2, hotPendingFactor: 0.1, coldAvgWaitMs, hotAvgWaitMs },
  });
  const bench = new Bench(config(1, 1e6));
  const token = await bench.take("a");
  for (const bucket of ["b", "c", "d", "e"]) await bench.want(bucket);
  await bench.clock.run(2_000);
  await bench.release(token);
  const { avgWaitMs = 0 } = bench.queue.glance("h") ?? {};
  expect(avgWaitMs).toBeGreaterThan(100);
  const isHotWith = async (coldMs: number, hotMs: number) => {
    bench.queue.reconfigure(config(coldMs, hotMs));
    await bench.want("f");
    return bench.queue.glance("h")?.isHot;
  };
  expect(await isHotWith(1, avgWaitMs + 1)).toBe(false);
  expect(await isHotWith(1, avgWaitMs)).toBe(true);
  expect(await isHotWith(avgWaitMs - 1, avgWaitMs + 1)).toBe(true);
  expect(await isHotWith(avgWaitMs, avgWaitMs + 1)).toBe(false);
  expect(bench.queue.glance("h")).toMatchObject({ avgWaitMs });
});

describe("a host with the weighted scheduler, all slots taken", () => {
  const scheduled = (more: object = {}) => ({
    ...HOST,
    maxSlotPerHost: 1,
    pollIntervalMs: 500,
    weightedScheduler: {
      enabled: true,
      hotPendingMin: 2,
      hotPendingFactor: 0.1,
      coldAvgWaitMs: 1,
      hotAvgWaitMs: 1,
      ...more,
    },
  });

  /** One slot is taken and four buckets wait. The slot changes hands once, which gives the host its average wait. */
  async function crowded(config: object): Promise<{ bench: Bench; holder: Followed }> {
    const bench = new Bench(config);
    const token = await bench.take("z");
    const sessions: Followed[] = [];
    for (const bucket of ["a", "b", "c", "d"]) sessions.push(await bench.want(bucket));
    await bench.clock.run(2_000);
    await bench.release(token);
    return { bench, holder: sessions.find(isGranted) as Followed };
  }

  const waitCounts = ({ queue }: Bench) =>
    Object.fromEntries(queue.dump().hosts[0]?.buckets.map(({ bucket, waitCount }) => [bucket, waitCount]) ?? []);

  test("counts the waits of the first, which it tries in vain, and a grant halves the number, also after the host became cold", async () => {
    const { bench, holder } = await crowded(scheduled());
    await bench.want("e");
    await bench.clock.run(5_000);
    const { b: before } = waitCounts(bench);
    expect(before).toBeGreaterThan(4);
    bench.queue.reconfigure(scheduled({ coldAvgWaitMs: 1e6 }));
    await bench.release(holder.slotToken);
    expect(bench.queue.glance("h")).toMatchObject({ isHot: false });
    expect(waitCounts(bench)).toMatchObject({ b: Math.floor((before as number) / 2) });
  });

  test("tries no one while it is cold, and writes no numbers of the scheduler", async () => {
    const { bench, holder } = await crowded(scheduled({ hotAvgWaitMs: 1e6 }));
    await bench.want("e");
    await bench.clock.run(5_000);
    await bench.release(holder.slotToken);
    expect(bench.commits.length).toBeGreaterThan(5);
    expect(JSON.stringify(bench.commits)).not.toMatch(/waitCount|isHot/);
  });

  test("is hot without a setting for it when the average wait is three poll intervals and the least hold", async () => {
    const { bench } = await crowded(scheduled({ hotAvgWaitMs: 1e6 }));
    const { avgWaitMs = 0 } = bench.queue.glance("h") ?? {};
    const isHotWith = async (hotMs: number) => {
      const { hotAvgWaitMs: _, ...weightedScheduler } = scheduled().weightedScheduler;
      bench.queue.reconfigure({ ...scheduled(), pollIntervalMs: 10, minSlotHoldMs: hotMs - 30, weightedScheduler });
      await bench.want("e");
      return bench.queue.glance("h")?.isHot;
    };
    expect(await isHotWith(Math.ceil(avgWaitMs) + 1)).toBe(false);
    expect(await isHotWith(Math.floor(avgWaitMs))).toBe(true);
  });
});

test("a bucket whose weight is raised stays as far ahead of the others in slot time as it was", async () => {
  const config = (a: number) => ({ ...HOST, maxSlotPerHost: 1, hosts: { h: { weights: { a } } } });
  const bench = new Bench(config(0.01));
  const token = await bench.take("a");
  const sessions = [await bench.want("b")];
  await bench.clock.run(10_000);
  bench.queue.reconfigure(config(1));
  const raised = await bench.want("a");
  for (let more = 0; more < 40; more++) sessions.push(await bench.want("b"));
  await bench.release(token);
  // It used 10 s at a hundredth of the weight of the other, which is owed 10 s for them, and 10 s more until they are level.
  let others = 0;
  for (let holder = sessions.find(isGranted); holder !== undefined && !raised.isGranted; others++) {
    await bench.clock.run(1_000);
    sessions.splice(sessions.indexOf(holder), 1);
    await bench.release(holder.slotToken);
    holder = sessions.find(isGranted);
  }
  expect(others).toBeGreaterThan(15);
  expect(others).toBeLessThan(25);
});
