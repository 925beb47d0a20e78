import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const MANY = {
  globalMaxWaiters: 0,
  maxWaitersPerHost: 0,
  maxWaitMs: 20_000,
  sessionIdleSeconds: 5,
  maxSlotPerHost: 1,
  maxSlotPerIp: 0,
} as const;

function heapBytes(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

describe("memory does not grow (the maps of the original service were never pruned)", () => {
  test("hosts, buckets, sessions and leases of callers that came once are removed, regardless of their number", async () => {
    const bench = new Bench(MANY);
    const round = async (name: number) => {
      for (let index = 0; index < 800; index++) {
        const token = await bench.take(`bucket-${index}`, { host: `${name}-${index}`, hostname: `${name}-${index}` });
        if (index % 3 !== 0) bench.queue.release({ slotToken: token });
        if (index % 5 === 0) await bench.begin("ghost", { host: `${name}-${index}` });
      }
      await bench.clock.run(200_000);
      await bench.queue.sweep();
      bench.events.length = 0;
      bench.calls.length = 0;
      bench.commits.length = 0;
      return heapBytes();
    };
    await round(0);
    const first = await round(1);
    const last = await round(3);
    expect(bench.queue.dump()).toMatchObject({ hosts: [], sessions: { total: 0 }, unsent: 0 });
    expect(await bench.memory.hostKeys()).toEqual([]);
    expect(bench.clock.pending).toBe(0);
    // 800 forgotten hosts of 4 KB each would be 3 MB a round.
    expect(last - first).toBeLessThan(1_500_000);
  });

  test("a new bucket for every request leaves no bucket behind", async () => {
    const bench = new Bench({ ...MANY, weightedScheduler: { enabled: true } });
    for (let index = 0; index < 500; index++) await bench.release(await bench.take(`fresh-${index}`));
    expect(bench.queue.dump().hosts[0]?.buckets).toEqual([]);
    expect((await bench.snapshot())?.buckets.length).toBeLessThanOrEqual(1);
  });
});

/** Calls to the store, and changed records, when one slot is released and goes to the next waiter. */
async function handOverCalls(waiters: number, otherHosts: number) {
  const bench = new Bench(MANY);
  for (let index = 0; index < otherHosts; index++) {
    await bench.take("z", { host: `other-${index}` });
    await bench.begin("a", { host: `other-${index}` });
  }
  const token = await bench.take("z");
  const first = await bench.want("first");
  for (let index = 0; index < waiters; index++) await bench.ask(`bucket-${index}`);
  await drained();
  bench.calls.length = 0;
  bench.commits.length = 0;
  await bench.release(token);
  expect(first.isGranted).toBe(true);
  const changed = bench.commits.reduce((sum, { changes }) => sum + changes.puts.length + changes.dels.length, 0);
  return { calls: bench.calls.length, changed };
}

describe("the number of store calls of a hand-over", () => {
  test("is the same for ten and a thousand waiters, and for zero and five hundred other hosts", async () => {
    const small = await handOverCalls(10, 0);
    expect(await handOverCalls(1_000, 0)).toEqual(small);
    expect(await handOverCalls(10, 500)).toEqual(small);
    expect(small.calls).toBe(1);
  });
});
