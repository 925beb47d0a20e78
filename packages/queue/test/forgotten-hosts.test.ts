import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const IDLE_MS = 90_000;

describe.each([false, true])("a host that is no longer used, in a shared store: %s", (isShared) => {
  const used = async () => {
    const bench = new Bench({ maxSlotPerHost: 2 }, undefined, isShared);
    await bench.release(await bench.take("a"));
    return bench;
  };

  test("is forgotten although sweeps come more often than its idle time", async () => {
    const bench = await used();
    for (let sweeps = 0; sweeps < 20; sweeps++) {
      await bench.clock.run(10_000);
      await bench.queue.sweep();
      await drained();
    }
    expect(bench.queue.hostCount).toBe(0);
    expect((await bench.memory.peek(["h"])).size).toBe(0);
    bench.queue.close();
  });

  test("is forgotten although new settings come more often than its idle time", async () => {
    const bench = await used();
    for (let refreshes = 0; refreshes < 20; refreshes++) {
      await bench.clock.run(10_000);
      bench.queue.reconfigure({ maxSlotPerHost: 2 });
      await drained();
    }
    expect(bench.queue.hostCount).toBe(0);
    bench.queue.close();
  });

  test("is kept while it is used", async () => {
    const bench = await used();
    for (let uses = 0; uses < 5; uses++) {
      await bench.clock.run(IDLE_MS - 5_000);
      await bench.release(await bench.take("a"));
    }
    expect(bench.queue.hostCount).toBe(1);
    bench.queue.close();
  });
});

test("a session whose host a cleanup checks just after its deadline begins once, although its instance ends it late", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, maxWaitMs: 3_000, sessionIdleSeconds: 60 }, undefined, true);
  await bench.begin("a");
  bench.isStoreDown = true;
  await bench.clock.run(3_100);
  await bench.memory.cleanup({ idleMs: 1_000 });
  // Another session creates the host again, if it was forgotten, in the decision that ends the first one.
  const other = bench.ask("b");
  bench.isStoreDown = false;
  await bench.clock.run(1_000);
  await other;
  expect(bench.queue.counts).toMatchObject({ session_created: 2, timeout: 1 });
  bench.queue.close();
});

test("a report with a status that does not count creates no host", async () => {
  const bench = new Bench();
  await bench.queue.report({ host: "h", hostname: "h", status: 404 });
  expect([bench.queue.hostCount, bench.commits]).toEqual([0, []]);
  await bench.queue.report({ host: "h", hostname: "h", status: 503 });
  expect(bench.queue.hostCount).toBe(1);
  // At a known host it changes nothing.
  await bench.queue.report({ host: "h", hostname: "h", status: 404 });
  expect(bench.commits).toHaveLength(1);
});
