import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

/** What a cycle costs at the store: over a network each call is a round trip, and the dearest thing a grant does. */

const POLICY = resolveHost(resolveOptions(), "h").policy;
const ONE_SLOT = { maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitersPerHost: 0, globalMaxWaiters: 0 } as const;

function counted(calls: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const call of calls) counts[call] = (counts[call] ?? 0) + 1;
  return counts;
}

describe("an uncontended acquire and release", () => {
  test("cost one try and one release, from the very first on", async () => {
    const bench = new Bench();
    for (let cycle = 0; cycle < 3; cycle++) {
      await bench.release(await bench.take("a"));
      await bench.clock.run(10_000);
    }
    expect(counted(bench.calls)).toEqual({ tryAcquire: 3, release: 3 });
  });

  test("cost the same in two calls, without waitMs", async () => {
    const bench = new Bench();
    const followed = await bench.want("a");
    await bench.release(followed.slotToken);
    expect(counted(bench.calls)).toEqual({ tryAcquire: 1, release: 1 });
  });

  test("cost the same for a named semaphore", async () => {
    const bench = new Bench();
    const sem = { host: "s", hostname: "sem:s", limit: 2 };
    await bench.release(await bench.take("a", sem));
    expect(counted(bench.calls)).toEqual({ tryAcquire: 1, release: 1 });
  });
});

describe("a first call that is throttled", () => {
  test("asks once, queues nothing, and leaves nothing to be told to the store", async () => {
    const bench = new Bench();
    await bench.memory.operate({ kind: "breaker", host: "h", policy: POLICY, isOpen: true });
    expect(await bench.ask("a")).toMatchObject({ result: "throttled" });
    await drained();
    expect(counted(bench.calls)).toEqual({ tryAcquire: 1 });
    expect((await bench.snapshot()).hosts).toMatchObject([{ waiting: 0, inFlight: 0 }]);
    expect(bench.queue.counts).toMatchObject({ session_created: 1, throttled: 1 });
  });

  test("asks nothing while the store's word is fresh", async () => {
    const bench = new Bench();
    await bench.memory.operate({ kind: "breaker", host: "h", policy: POLICY, isOpen: true });
    await bench.ask("a");
    bench.calls.length = 0;
    expect(await bench.ask("b", { waitMs: 100 })).toMatchObject({ result: "throttled" });
    expect(bench.calls).toEqual([]);
  });
});

describe("waiting", () => {
  test("costs no call per poll", async () => {
    const bench = new Bench(ONE_SLOT);
    await bench.take("z");
    const session = await bench.begin("a");
    bench.calls.length = 0;
    for (let poll = 0; poll < 50; poll++) await bench.queue.poll(session, { waitMs: 0 });
    await drained();
    expect(bench.calls).toEqual([]);
  });

  test("costs one call per interval and host as the backstop, however many wait and poll", async () => {
    const bench = new Bench(ONE_SLOT);
    await bench.take("z");
    for (let waiter = 0; waiter < 40; waiter++) await bench.want(`b${waiter}`);
    bench.calls.length = 0;
    await bench.clock.run(5_000);
    expect(bench.calls.length).toBeLessThanOrEqual(10);
  });
});

describe("a contended grant", () => {
  test.each([
    ["4", 4, false],
    ["200", 200, false],
    ["4, weighted", 4, true],
    ["200, weighted", 200, true],
  ])(
    "costs three calls at most: registering, one try that grants, the release (%s waiters)",
    async (_, waiters, enabled) => {
      const weightedScheduler = { enabled, hotPendingMin: 1, hotPendingFactor: 0.5, coldAvgWaitMs: 0, hotAvgWaitMs: 1 };
      const bench = new Bench({ ...ONE_SLOT, maxSlotPerIp: 1, maxWaitMs: 600_000, weightedScheduler });
      let token = await bench.take("b0");
      const queue: Followed[] = [];
      for (let waiter = 0; waiter < waiters; waiter++) queue.push(await bench.want(`b${waiter % 50}`));
      const handOver = async (at: number) => {
        await bench.clock.run(100);
        await bench.release(token);
        const granted = queue.findIndex((one) => one.isGranted);
        token = queue[granted]?.slotToken ?? "";
        queue[granted] = await bench.want(`b${at % 50}`);
      };
      for (let cycle = 0; cycle < 10; cycle++) await handOver(cycle);
      bench.calls.length = 0;
      for (let cycle = 0; cycle < 40; cycle++) await handOver(cycle);
      expect(bench.calls.length / 40).toBeLessThanOrEqual(3);
      expect(bench.tries.at(-1)?.reply.free).toBe(0);
    },
  );
});
