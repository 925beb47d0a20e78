import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

/** How many store calls a cycle makes. Over a network each call is a round trip, and the largest cost of a grant. */

const ONE_SLOT = { maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitersPerHost: 0, globalMaxWaiters: 0 } as const;

function counted(calls: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const call of calls) counts[call] = (counts[call] ?? 0) + 1;
  return counts;
}

describe("an uncontended acquire and release", () => {
  test("cost one commit each, starting with the first", async () => {
    const bench = new Bench();
    for (let cycle = 0; cycle < 3; cycle++) {
      await bench.release(await bench.take("a"));
      await bench.clock.run(10_000);
    }
    expect(counted(bench.calls)).toEqual({ commit: 6 });
  });

  test("without waitMs cost one more: the slot is offered until the next poll", async () => {
    const bench = new Bench();
    const followed = await bench.want("a");
    await bench.release(followed.slotToken);
    expect(counted(bench.calls)).toEqual({ commit: 3 });
  });

  test("cost the same for a named semaphore", async () => {
    const bench = new Bench();
    const sem = { host: "s", hostname: "sem:s", limit: 2 };
    await bench.release(await bench.take("a", sem));
    expect(counted(bench.calls)).toEqual({ commit: 2 });
  });
});

describe("a release at a host that no session waits for", () => {
  const alone = () => new Bench(ONE_SLOT, undefined, true);

  test("and the next grant are one commit, if the client asks again at once", async () => {
    const bench = alone();
    let token = await bench.take("a");
    for (let cycle = 0; cycle < 3; cycle++) {
      await bench.release(token);
      token = await bench.take("a");
    }
    expect(counted(bench.calls)).toEqual({ commit: 4 });
    expect(await bench.held()).toBe(1);
    expect(bench.ofType("released")).toHaveLength(3);
  });

  test("is committed after 2 ms if nothing else happens", async () => {
    const bench = alone();
    await bench.release(await bench.take("a"));
    await bench.clock.run(1);
    expect([await bench.held(), bench.queue.overview().unsent]).toEqual([1, 1]);
    await bench.clock.run(1);
    expect([await bench.held(), bench.queue.overview().unsent]).toEqual([0, 0]);
  });

  test("does not wait while a session waits, here or at another instance", async () => {
    const one = alone();
    const token = await one.take("z");
    const next = await one.want("a");
    await one.release(token);
    expect(next.isGranted).toBe(true);
    const two = new Bench(ONE_SLOT, one);
    const other = await two.want("b");
    // The first instance knows of the other one from its next beat on.
    await one.clock.run(12_000);
    one.calls.length = 0;
    await one.release(next.slotToken);
    expect(one.calls).toContain("commit");
    await one.clock.run(1);
    expect(other.isGranted).toBe(true);
  });

  test("does not wait with a store of the same process, where a commit costs nothing", async () => {
    const bench = new Bench(ONE_SLOT);
    await bench.release(await bench.take("a"));
    expect(await bench.held()).toBe(0);
  });
});

describe("a first call that is throttled", () => {
  test("reads once, joins no queue, and leaves nothing in the store", async () => {
    const one = new Bench();
    const two = new Bench({}, one);
    await one.queue.operate({ kind: "breaker", host: "h", isOpen: true });
    expect(await two.ask("a")).toMatchObject({ result: "throttled" });
    await drained();
    expect(two.calls.length).toBeLessThanOrEqual(2);
    expect(await one.snapshot()).toMatchObject({ waiting: 0, inFlight: 0 });
    expect(two.queue.counts).toMatchObject({ session_created: 1, throttled: 1 });
  });

  test("makes no call while the cached state is fresh", async () => {
    const bench = new Bench();
    await bench.queue.operate({ kind: "breaker", host: "h", isOpen: true });
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

  test("costs one beat a second for all hosts together, however many sessions wait and poll", async () => {
    const bench = new Bench(ONE_SLOT);
    await bench.take("z");
    for (let waiter = 0; waiter < 40; waiter++) await bench.want(`b${waiter}`);
    await bench.clock.run(1_000);
    bench.calls.length = 0;
    await bench.clock.run(5_000);
    expect(counted(bench.calls)).toEqual({ beat: 5 });
  });
});

describe("in a fleet, a client that is away for a while between polls", () => {
  /** One slot is held. The first session in the queue was last polled at least 1.5 s ago. */
  async function away(): Promise<{ one: Bench; two: Bench; held: string; left: Followed; next: Followed }> {
    const one = new Bench(ONE_SLOT, undefined, true);
    const two = new Bench(ONE_SLOT, one, true);
    await Promise.all([one.queue.start(), two.queue.start()]);
    const held = await one.take("z");
    const left = await one.want("a");
    left.isStopped = true;
    await one.clock.run(100);
    const asked = two.want("b");
    await one.clock.run(7_500);
    const next = await asked;
    expect(left.last).toMatchObject({ result: "pending" });
    one.calls.length = 0;
    two.calls.length = 0;
    return { one, two, held, left, next };
  }

  test("costs no commit if it returns within seconds", async () => {
    const { one, two, left } = await away();
    const back = one.follow(left.session);
    await one.clock.run(3_000);
    expect(back.isGranted).toBe(false);
    expect([counted(one.calls), counted(two.calls)]).toEqual([{ beat: 3 }, { beat: 3 }]);
  });

  test("is skipped immediately by its own instance", async () => {
    const { one, held, next } = await away();
    await one.release(held);
    expect(next.isGranted).toBe(true);
  });

  test("is skipped immediately if another instance frees the slot and offers it", async () => {
    const { one, two, held, left, next } = await away();
    two.queue.release({ slotToken: held });
    await drained();
    expect(next.isGranted).toBe(true);
    expect(one.ofType("uncollected").concat(two.ofType("uncollected"))).toHaveLength(1);
    const back = one.follow(left.session);
    await drained();
    await two.release(next.slotToken);
    await one.clock.run(60);
    expect(back.isGranted, "it kept its place").toBe(true);
  });

  test("is recorded as away in the book after a few more seconds", async () => {
    const { one } = await away();
    await one.clock.run(5_000);
    const book = (await one.memory.peek(["h"])).get("h");
    const records = book?.records.flatMap((record) => (record.kind === "waiter" ? [record.awayAt !== undefined] : []));
    expect(records?.sort()).toEqual([false, true]);
  });
});

describe("a contended grant", () => {
  test.each([
    ["4", 4, false],
    ["200", 200, false],
    ["4, weighted", 4, true],
    ["200, weighted", 200, true],
  ])(
    "costs two commits: the arrival, and the release together with the grant (%s waiters)",
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
      expect((counted(bench.calls)["commit"] ?? 0) / 40).toBeLessThanOrEqual(enabled ? 2.3 : 2);
      expect(await bench.held()).toBe(1);
    },
  );
});

describe("two instances that wait at one host", () => {
  test("know each other's commits, so that the next commit of either is not refused", async () => {
    const one = new Bench(ONE_SLOT);
    const two = new Bench(ONE_SLOT, one);
    await one.take("z");
    await two.want("a");
    await one.want("b");
    await one.want("c");
    two.calls.length = 0;
    await two.want("d");
    expect(counted(two.calls)).toEqual({ commit: 1 });
  });

  test("commit arrivals together if no slot is free, at most 20 ms after the first", async () => {
    const one = new Bench(ONE_SLOT, undefined, true);
    const two = new Bench(ONE_SLOT, one);
    await one.take("z");
    await two.want("a");
    await one.want("b");
    one.calls.length = 0;
    const asked = [one.ask("c", { waitMs: 100 }), one.ask("d", { waitMs: 100 })];
    await one.clock.run(19);
    expect(one.calls).toEqual([]);
    await one.clock.run(1);
    expect(counted(one.calls)).toEqual({ commit: 1 });
    await one.clock.run(100);
    expect(await Promise.all(asked)).toMatchObject([{ result: "pending" }, { result: "pending" }]);
  });

  test("commit an arrival immediately together with a release, which hands the slot over", async () => {
    const one = new Bench(ONE_SLOT, undefined, true);
    const two = new Bench(ONE_SLOT, one);
    const token = await one.take("z");
    await two.want("a");
    await one.want("b");
    one.calls.length = 0;
    void one.ask("c", { waitMs: 100 });
    await one.release(token);
    expect(counted(one.calls)).toEqual({ commit: 1 });
  });
});

test("a commit that the store has reserved for another instance is retried as soon as that instance has committed", async () => {
  const bench = new Bench(ONE_SLOT, undefined, true);
  const token = await bench.take("z");
  const next = await bench.want("a");
  const { tag, now, tail } = await bench.memory.read("h", undefined);
  if (tail.kind !== "book" || tail.book === undefined) throw new Error("Expected the whole host");
  const changes = { head: tail.book.head, puts: [], dels: [] };
  const other = { host: "h", instance: "other", tag: "9.other", now, changes, hasOthers: true, wake: ["one"] };
  await bench.memory.commit({ ...other, base: "1.stale", conflicts: 2 });
  await bench.release(token);
  expect(next.isGranted).toBe(false);
  expect(await bench.memory.commit({ ...other, base: tag, conflicts: 3 })).toMatchObject({ isOk: true });
  await drained();
  expect(next.isGranted).toBe(true);
});

describe("an arrival while sessions of its own bucket wait", () => {
  test("is committed together with the next release", async () => {
    const bench = new Bench(ONE_SLOT, undefined, true);
    const token = await bench.take("z");
    const first = await bench.want("a");
    bench.calls.length = 0;
    const second = bench.ask("a", { waitMs: 10_000 });
    await bench.clock.run(60);
    expect(bench.calls).toEqual([]);
    await bench.release(token);
    expect(counted(bench.calls)).toEqual({ commit: 1 });
    await bench.release(first.slotToken);
    expect(await second).toMatchObject({ result: "granted" });
  });

  test("is committed alone after at most 100 ms", async () => {
    const bench = new Bench(ONE_SLOT, undefined, true);
    await bench.take("z");
    await bench.want("a");
    bench.calls.length = 0;
    void bench.ask("a", { waitMs: 10_000 });
    await bench.clock.run(99);
    expect(bench.calls).toEqual([]);
    await bench.clock.run(1);
    expect(counted(bench.calls)).toEqual({ commit: 1 });
    expect((await bench.snapshot())?.waiting).toBe(2);
  });
});

test("an answer to a read that is older than a received notice does not set the book back", async () => {
  const one = new Bench({ maxSlotPerHost: 1 }, undefined, true);
  const two = new Bench({ maxSlotPerHost: 1 }, one);
  await two.take("z");
  await one.want("a");
  const late: (() => void)[] = [];
  one.lateReads = late;
  const renewed = one.queue.renew("slot_h.none").catch(() => "lost");
  await drained();
  expect(late).toHaveLength(1);
  await two.begin("b");
  one.lateReads = undefined;
  for (const answered of late) answered();
  await renewed;
  await drained();
  expect(one.queue.bookOf("h")?.tag).toBe(two.queue.bookOf("h")?.tag);
});
