import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

const NO_POOL = { maxWaitersPerHost: 0, globalMaxWaiters: 0, maxWaitMs: 600_000 } as const;

/** Buckets b0…bn−1, each with one session that polls. */
function crowd(bench: Bench, count: number): Promise<Followed[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => bench.want(`b${index}`)));
}

const isHot = (bench: Bench) => bench.queue.glance("h")?.isHot;

/** How often buckets were tried in vain since that number of commits. */
function triesSince(bench: Bench, commits: number): number {
  const puts = bench.commits
    .slice(commits)
    .flatMap(({ now, changes }) => changes.puts.map((record) => ({ now, record })));
  return puts.filter(({ now, record }) => record.kind === "account" && record.weighted?.waitCountedAt === now).length;
}

/** Places in the pool by bucket, without buckets that have none. */
function placesOf(bench: Bench): Record<string, number> {
  const buckets = bench.queue.dump().hosts[0]?.buckets ?? [];
  return Object.fromEntries(buckets.filter(({ places }) => places > 0).map(({ bucket, places }) => [bucket, places]));
}

/** Makes a host hot by the defaults: many sessions, and an average wait above 3 × pollInterval. */
async function hotHost(config: object = {}): Promise<{ bench: Bench; waiting: Followed[]; held: string[] }> {
  const bench = new Bench({
    ...NO_POOL,
    maxSlotPerHost: 4,
    maxSlotPerIp: 1,
    weightedScheduler: { enabled: true },
    ...config,
  });
  let held = await Promise.all(["z0", "z1", "z2", "z3"].map((bucket) => bench.take(bucket)));
  const waiting = await crowd(bench, 40);
  await bench.clock.run(12_000);
  for (const token of held) await bench.release(token);
  const granted = waiting.filter(({ isGranted }) => isGranted);
  held = granted.map(({ slotToken }) => slotToken);
  return { bench, waiting: waiting.filter(({ isGranted }) => !isGranted), held };
}

describe.each([{ enabled: false }, { enabled: true }])(
  "with the weighted scheduler enabled: $enabled",
  (weightedScheduler) => {
    test("layer 1: an open breaker throttles a first call from the cache, without a place in the queue", async () => {
      const bench = new Bench({ weightedScheduler });
      for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 503 });
      bench.calls.length = 0;
      expect(await bench.ask("a")).toMatchObject({ result: "throttled", throttleCode: 503, retryAfterMs: 60_000 });
      expect(bench.calls).toEqual([]);
      expect(bench.queue.dump().sessions.total).toBe(0);
      expect(bench.queue.counts).toMatchObject({ throttled: 1, session_created: 0 });
    });

    test("layer 1: the breaker throttles sessions that already wait", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 1 });
      const token = await bench.take("z");
      const waiting = await crowd(bench, 3);
      for (let count = 0; count < 3; count++) await bench.queue.report({ host: "h", status: 429 });
      await bench.release(token, { status: 429 });
      expect(waiting.map(({ last }) => last)).toMatchObject(
        Array.from({ length: 3 }, () => ({ result: "throttled", throttleCode: 429 })),
      );
      expect((await bench.snapshot())?.waiting).toBe(0);
    });

    test("layer 1: while half open, one session probes and the others wait, blocked by the breaker", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 3, breaker: { openSeconds: 2 } });
      for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 503 });
      await bench.clock.run(2_000);
      const [probe, other] = await crowd(bench, 2);
      expect(probe?.isGranted).toBe(true);
      expect(other && (await bench.queue.poll(other.session, { waitMs: 0 }))).toMatchObject({
        result: "pending",
        blockedBy: "breaker",
      });
      await bench.release(probe?.slotToken ?? "", { status: 200 });
      expect(other?.isGranted).toBe(true);
    });

    test("layer 1: a repeated release counts its status once", async () => {
      const bench = new Bench({ weightedScheduler, breaker: { consecutiveErrors: 3 } });
      const slotToken = await bench.take("a");
      for (let time = 0; time < 4; time++) await bench.release(slotToken, { status: 503 });
      expect((await bench.snapshot())?.breaker).toEqual({ phase: "closed" });
    });

    test("layer 1: the success of a probe does not close a breaker that was opened again since", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 3, breaker: { openSeconds: 2 } });
      await bench.queue.operate({ kind: "breaker", host: "h", hostname: "h", isOpen: true });
      await bench.clock.run(2_000);
      const slotToken = await bench.take("a");
      await bench.clock.run(1);
      await bench.queue.operate({ kind: "breaker", host: "h", hostname: "h", isOpen: true });
      await bench.release(slotToken, { status: 200 });
      expect((await bench.snapshot())?.breaker.phase).not.toBe("closed");
    });

    test("layer 1: throttleTimeWindowSeconds sets how long the breaker is open for one session", async () => {
      const bench = new Bench({ weightedScheduler });
      for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 503 });
      await bench.clock.run(6_000);
      expect(await bench.ask("a", { throttleWindowMs: 10_000 })).toMatchObject({
        result: "throttled",
        retryAfterMs: 4_000,
      });
      expect(await bench.ask("a", { throttleWindowMs: 5_000, waitMs: 1 })).toMatchObject({ result: "granted" });
    });

    test("layer 1: the window of a session holds, after any other session has read the breaker and whatever openSeconds is", async () => {
      const bench = new Bench({ weightedScheduler, breaker: { openSeconds: 1 } });
      for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 503 });
      const own = { throttleWindowMs: 30_000, waitMs: 1 };
      // Answered from the cache, so it cannot have changed the book.
      expect(await bench.ask("a", own)).toMatchObject({ result: "throttled", retryAfterMs: 30_000 });
      await bench.clock.run(2_600);
      expect(await bench.ask("a", own)).toMatchObject({ result: "throttled", retryAfterMs: 27_400 });
      await bench.clock.run(27_399);
      expect(await bench.ask("a", own)).toMatchObject({ result: "throttled", retryAfterMs: 1 });
      await bench.clock.run(1);
      expect(await bench.ask("a", own)).toMatchObject({ result: "granted" });
    });

    test("layer 1: within an hour a breaker does not close by itself; one that opened an hour ago is closed", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 3, breaker: { openSeconds: 1 } });
      const take = (bucket: string) => bench.ask(bucket, { waitMs: 1 });
      for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 503 });
      await bench.clock.run(3_590_000);
      expect(await bench.ask("z", { throttleWindowMs: 86_400_000 })).toMatchObject({ retryAfterMs: 10_000 });
      expect((await take("a")).result).toBe("granted");
      const other = take("b");
      await bench.clock.run(1);
      expect(await other).toMatchObject({ result: "pending", blockedBy: "breaker" });
      await bench.clock.run(10_000);
      expect((await take("c")).result).toBe("granted");
      expect((await bench.snapshot())?.breaker).toEqual({ phase: "closed" });
    });

    test("layer 1: a waiter that is blocked by the breaker goes on when the hour is over, without a call", async () => {
      const bench = new Bench({
        weightedScheduler,
        breaker: { openSeconds: 1 },
        maxWaitMs: 60_000,
        zombieTimeoutSeconds: 60,
      });
      for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 503 });
      await bench.clock.run(3_590_000);
      const [probe, other] = await crowd(bench, 2);
      expect([probe?.isGranted, other?.isGranted]).toEqual([true, false]);
      await bench.clock.run(9_999);
      expect(other?.isGranted).toBe(false);
      await bench.clock.run(1);
      expect(other?.isGranted).toBe(true);
    });

    test("layer 2: if the pool is full, sessions wait outside and enter when places become free", async () => {
      const bench = new Bench({
        weightedScheduler,
        maxSlotPerHost: 1,
        maxSlotPerIp: 0,
        maxWaitersPerHost: 2,
        maxWaitMs: 60_000,
      });
      let token = await bench.take("z");
      const waiting = await crowd(bench, 4);
      const outside = waiting[3] as Followed;
      expect(await bench.queue.poll(outside.session, { waitMs: 0 })).toMatchObject({
        position: 4,
        waiters: 4,
        blockedBy: "waiter-pool",
      });
      for (const next of waiting) {
        await bench.release(token);
        token = next.slotToken;
      }
    });

    test("layer 2: maxWaitersPerIp alone limits the places of a bucket", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 1, maxWaitersPerHost: 0, maxWaitersPerIp: 2 });
      await bench.take("z");
      for (let count = 0; count < 5; count++) await bench.want("a");
      await bench.want("b");
      expect(placesOf(bench)).toEqual({ a: 2, b: 1 });
    });

    test("layer 2: callers without a name get a free place although a bucket at its limit of places waits longer", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 1, maxWaitersPerHost: 3, maxWaitersPerIp: 1 });
      await bench.take("z");
      for (const bucket of ["a", "a", ""]) await bench.want(bucket);
      const leaving = await bench.begin("");
      const last = await bench.want("");
      const blockedBy = async () =>
        ((await bench.queue.poll(last.session, { waitMs: 0 })) as { readonly blockedBy?: string }).blockedBy;
      expect([placesOf(bench), await blockedBy()]).toEqual([{ a: 1, "": 2 }, "waiter-pool"]);
      bench.queue.cancel(leaving);
      await drained();
      expect([placesOf(bench), await blockedBy()]).toEqual([{ a: 1, "": 2 }, "host-limit"]);
    });

    test("layer 2: no bucket can fill the pool: a new waiter displaces the youngest of the largest bucket", async () => {
      const bench = new Bench({
        weightedScheduler,
        maxSlotPerHost: 1,
        maxSlotPerIp: 0,
        maxWaitersPerHost: 5,
        globalMaxWaiters: 0,
      });
      const token = await bench.take("z");
      const greedy = [];
      for (let count = 0; count < 30; count++) greedy.push(await bench.want("greedy"));
      const small = await bench.want("small");
      expect(placesOf(bench)).toEqual({ greedy: 4, small: 1 });
      await bench.release(token);
      await bench.clock.run(100);
      const winner = small.isGranted ? small : greedy[0];
      await bench.release(winner?.slotToken ?? "");
      expect(small.isGranted).toBe(true);
    });

    test("layer 2: a free place goes to the bucket with the fewest places, oldest waiter first", async () => {
      const bench = new Bench({
        weightedScheduler,
        maxSlotPerHost: 1,
        maxSlotPerIp: 0,
        maxWaitersPerHost: 4,
        globalMaxWaiters: 0,
      });
      const token = await bench.take("z");
      for (const bucket of ["a", "a", "b", "b", "a", "c"]) await bench.want(bucket);
      // c displaced the youngest waiter of the buckets with two places.
      expect(placesOf(bench)).toEqual({ a: 2, b: 1, c: 1 });
      await bench.release(token);
      const sum = Object.values(placesOf(bench)).reduce((total, count) => total + count, 0);
      expect(sum).toBe(4);
    });

    test("layer 2: buckets in their cooldown that fill the pool do not hide one that could be granted", async () => {
      const bench = new Bench({
        weightedScheduler,
        maxSlotPerHost: 5,
        ipCooldownSeconds: 30,
        maxWaitMs: 60_000,
        zombieTimeoutSeconds: 60,
      });
      for (let count = 0; count < 60; count++) await bench.release(await bench.take(`b${count}`));
      const cooling = await crowd(bench, 60);
      expect(await bench.held()).toBe(0);
      const fresh = await Promise.all(["x", "y"].map((bucket) => bench.want(bucket)));
      expect(fresh.map(({ isGranted }) => isGranted)).toEqual([true, true]);
      const inside = Object.values(placesOf(bench)).reduce((sum, count) => sum + count, 0);
      expect(inside).toBe(50);
      for (const { session } of cooling)
        expect(await bench.queue.poll(session, { waitMs: 0 })).toMatchObject({ result: "pending" });
      await bench.clock.run(40_000);
      expect(cooling.filter(({ isGranted }) => isGranted)).toHaveLength(3);
    });

    test("layer 2: buckets at their limit that fill the pool do not hide one that could be granted", async () => {
      const bench = new Bench({ weightedScheduler, maxSlotPerHost: 3, maxWaitersPerHost: 2, maxWaitMs: 60_000 });
      const held = [await bench.take("a"), await bench.take("b")];
      const full = [await bench.want("a"), await bench.want("b")];
      const fresh = [await bench.want("c"), await bench.want("d")];
      expect(fresh.map(({ isGranted }) => isGranted)).toEqual([true, false]);
      // The waiters that gave their places away keep their order.
      for (const token of held) await bench.release(token);
      const granted = [...full, fresh[1] as Followed].filter(({ isGranted }) => isGranted);
      expect(granted).toHaveLength(2);
      await bench.clock.run(10);
      expect(await bench.held()).toBe(3);
    });

    test("layer 2: a session outside gets a slot when the cooldown of its bucket ends, without a call", async () => {
      const bench = new Bench({
        weightedScheduler,
        maxSlotPerHost: 3,
        maxWaitersPerHost: 2,
        ipCooldownSeconds: 5,
        maxWaitMs: 60_000,
      });
      await bench.release(await bench.take("c"));
      await bench.clock.run(2_000);
      for (const bucket of ["a", "b"]) await bench.release(await bench.take(bucket));
      await bench.want("a");
      await bench.want("b");
      const outside = await bench.want("c");
      await bench.clock.run(2_999);
      expect(outside.isGranted).toBe(false);
      await bench.clock.run(1);
      expect(outside.isGranted).toBe(true);
    });

    test("layer 3: a bucket that is passed over for its limit is logged once between two grants, and at most once in 3 s", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 9, maxSlotPerIp: 1 });
      const first = await bench.take("a");
      const second = await bench.want("a");
      expect(bench.queue.dump().hosts[0]?.buckets[0]).toMatchObject({ obstacle: "ip-limit" });
      const refused = { type: "probe-decision", host: "h", bucket: "a", isAllowed: false, reason: "ip_deny_window" };
      expect(bench.ofType("probe-decision")).toEqual([refused]);
      const others = [await bench.want("a"), await bench.want("a")];
      await bench.clock.run(2_999);
      expect(await bench.queue.poll(second.session, { waitMs: 0 })).toMatchObject({ blockedBy: "ip-limit" });
      await bench.release(first);
      expect(second.isGranted).toBe(true);
      expect(bench.ofType("probe-decision")).toEqual([refused]);
      await bench.clock.run(1);
      await bench.release(second.slotToken);
      expect(others.map(({ isGranted }) => isGranted)).toEqual([true, false]);
      expect(bench.ofType("probe-decision")).toEqual([refused, refused]);
    });

    test("layer 3: a bucket that ranks after the next one is not passed over, and not logged", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 2, maxSlotPerIp: 1 });
      const held = [await bench.take("a"), await bench.take("b")];
      await bench.want("a");
      const next = await bench.want("c");
      await bench.release(held[1] as string);
      expect(next.isGranted).toBe(true);
      expect(bench.ofType("probe-decision")).toEqual([]);
    });

    test("layer 3: a bucket at its limit gets a slot as soon as one of its own is released here", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 3, maxSlotPerIp: 1 });
      const token = await bench.take("a");
      const second = await bench.want("a");
      await bench.release(token);
      expect(second.isGranted).toBe(true);
    });

    test("layer 3: a release during the commit that refused the bucket gives it the slot", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 3, maxSlotPerIp: 1 });
      const token = await bench.take("a");
      const late: (() => void)[] = [];
      bench.late = late;
      const second = await bench.want("a");
      await bench.release(token);
      bench.late = undefined;
      for (const answer of late) answer();
      await drained();
      expect(second.isGranted).toBe(true);
    });

    test("layer 3: a bucket in its cooldown gets a slot when it ends, and is logged once per cooldown", async () => {
      const bench = new Bench({
        ...NO_POOL,
        weightedScheduler,
        maxSlotPerHost: 3,
        maxSlotPerIp: 1,
        ipCooldownSeconds: 9,
      });
      await bench.release(await bench.take("a"));
      const second = await bench.want("a");
      expect(bench.queue.dump().hosts[0]?.buckets[0]).toMatchObject({ obstacle: "cooldown" });
      expect(await bench.queue.poll(second.session, { waitMs: 0 })).toMatchObject({ blockedBy: "cooldown" });
      await bench.clock.run(4_000);
      await bench.take("b");
      await bench.clock.run(4_999);
      expect(second.isGranted).toBe(false);
      expect(bench.ofType("probe-decision")).toHaveLength(1);
      await bench.clock.run(1);
      expect(second.isGranted).toBe(true);
    });

    test("layer 7: a slot that is released during a commit goes to a waiting session, not to a new one", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 2, maxSlotPerIp: 0 });
      const held = [await bench.take("x"), await bench.take("y")];
      const waiting = [await bench.want("a"), await bench.want("b")];
      const late: (() => void)[] = [];
      bench.late = late;
      void bench.queue.report({ host: "h", status: 200 });
      await drained();
      for (const token of held) await bench.release(token);
      const newcomers = ["x", "y"].map((bucket) => bench.ask(bucket, { waitMs: 1_000 }));
      await drained();
      bench.late = undefined;
      for (const answer of late) answer();
      await drained();
      expect(waiting.map(({ isGranted }) => isGranted)).toEqual([true, true]);
      await bench.clock.run(1_000);
      expect(await Promise.all(newcomers)).toMatchObject([{ result: "pending" }, { result: "pending" }]);
    });

    test("layer 7: inputs that arrive together are decided and committed once", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 4 });
      await bench.want("warm-up");
      bench.calls.length = 0;
      await Promise.all(["a", "b", "c"].map((bucket) => bench.ask(bucket)));
      await drained();
      expect(bench.calls).toEqual(["commit"]);
      expect(await bench.held()).toBe(4);
    });

    test("layer 7: a release and the grant that it allows are one commit", async () => {
      const bench = new Bench({ ...NO_POOL, weightedScheduler, maxSlotPerHost: 1 });
      const token = await bench.take("a");
      const next = await bench.want("b");
      bench.calls.length = 0;
      await bench.release(token);
      expect(next.isGranted).toBe(true);
      expect(bench.calls).toEqual(["commit"]);
    });
  },
);

describe("layer 4: heat, with the seed's defaults (factor 4, at least 16, cold ≤ 500 ms, hot ≥ 1,500 ms + hold)", () => {
  test("many sessions with short waits are cold: the order applies to every session", async () => {
    const bench = new Bench({ ...NO_POOL, maxSlotPerHost: 4, weightedScheduler: { enabled: true } });
    await Promise.all(["z0", "z1", "z2", "z3"].map((bucket) => bench.take(bucket)));
    await crowd(bench, 40);
    await bench.clock.run(1_000);
    expect(isHot(bench)).toBe(false);
  });

  test("a few sessions with long waits are not hot either", async () => {
    const bench = new Bench({ ...NO_POOL, maxSlotPerHost: 1, weightedScheduler: { enabled: true } });
    const token = await bench.take("z");
    await crowd(bench, 15);
    await bench.clock.run(20_000);
    await bench.release(token);
    expect(bench.queue.dump().hosts[0]?.avgWaitMs).toBeGreaterThan(1_500);
    await bench.clock.run(1_000);
    expect(isHot(bench)).toBe(false);
  });

  test("many sessions with long waits are hot", async () => {
    const { bench } = await hotHost();
    await bench.clock.run(1_000);
    expect(bench.queue.dump().hosts[0]).toMatchObject({ pending: 36 });
    expect(bench.queue.dump().hosts[0]?.avgWaitMs).toBeGreaterThan(1_500);
    expect(isHot(bench)).toBe(true);
  });

  test("between the thresholds a host keeps its state", async () => {
    const { bench, waiting } = await hotHost();
    await bench.clock.run(600);
    for (const { session } of waiting.slice(0, 30)) bench.queue.cancel(session);
    await bench.clock.run(600);
    expect(bench.queue.dump().hosts[0]?.pending).toBe(6);
    expect(isHot(bench)).toBe(true);
  });

  test("with the scheduler off no host is hot", async () => {
    const { bench } = await hotHost({ weightedScheduler: { enabled: false } });
    await bench.clock.run(1_000);
    expect(isHot(bench)).toBe(false);
  });

  test("the average is an EWMA of 0.8, and decays while no session waits", async () => {
    const bench = new Bench({ ...NO_POOL, maxSlotPerHost: 1 });
    const token = await bench.take("z");
    const next = await bench.want("a");
    await bench.clock.run(10_000);
    await bench.release(token);
    expect(bench.queue.dump().hosts[0]?.avgWaitMs).toBeCloseTo(2_000, 0);
    await bench.clock.run(5_000);
    await bench.release(next.slotToken);
    await bench.want("b");
    expect(bench.queue.dump().hosts[0]?.avgWaitMs).toBeLessThan(200);
  });
});

describe("layer 5: the quota of a hot host", () => {
  test("allows at most maxProbesPerCycle failed attempts per poll interval", async () => {
    const { bench } = await hotHost({ weightedScheduler: { enabled: true, maxProbesPerCycle: 3 } });
    await bench.clock.run(600);
    const commits = bench.commits.length;
    await bench.clock.run(5_000);
    expect(triesSince(bench, commits)).toBeGreaterThanOrEqual(27);
    expect(triesSince(bench, commits)).toBeLessThanOrEqual(33);
  });

  test("is the number of slots by default", async () => {
    const { bench } = await hotHost();
    await bench.clock.run(600);
    const commits = bench.commits.length;
    await bench.clock.run(500);
    expect(triesSince(bench, commits)).toBe(4);
  });

  test("never leaves a freed slot idle", async () => {
    const { bench, held } = await hotHost({ weightedScheduler: { enabled: true, maxProbesPerCycle: 1 } });
    await bench.clock.run(700);
    for (const token of held) {
      await bench.release(token);
      expect(await bench.held()).toBe(4);
    }
  });

  test("leaves no slot idle that ends by itself after the quota is used up", async () => {
    const { bench, held } = await hotHost({
      minSlotHoldMs: 250,
      smoothReleaseIntervalMs: 0,
      weightedScheduler: { enabled: true, maxProbesPerCycle: 1 },
    });
    await bench.clock.run(700);
    const granted = bench.ofType("granted").length;
    await bench.release(held[0] as string, { hitUpstreamAtMs: bench.clock.now() });
    await bench.clock.run(249);
    expect(bench.ofType("granted")).toHaveLength(granted);
    await bench.clock.run(1);
    expect(bench.ofType("granted")).toHaveLength(granted + 1);
  });

  test("leaves no slot idle after attempts that fail because of the bucket itself", async () => {
    const { bench, waiting, held } = await hotHost({ weightedScheduler: { enabled: true, maxProbesPerCycle: 1 } });
    // The bucket of each holder asks for a second slot, so attempts that must fail come first.
    const holders = bench
      .ofType("granted")
      .slice(-4)
      .map(({ bucket }) => bucket);
    for (const bucket of holders) await bench.want(bucket);
    await bench.clock.run(700);
    await bench.release(held[0] as string);
    expect(await bench.held()).toBe(4);
    expect(waiting.length).toBe(36);
  });
});

describe("layer 6: weighted turns at a hot host", () => {
  test("a bucket that waited for n attempts has weight n + 1, so it is considered more often", async () => {
    const { bench } = await hotHost({ weightedScheduler: { enabled: true, maxProbesPerCycle: 4 } });
    await bench.clock.run(10_000);
    const { buckets } = bench.queue.dump().hosts[0] ?? { buckets: [] };
    const counts = buckets.map(({ waitCount }) => waitCount);
    expect(Math.max(...counts)).toBeGreaterThan(1);
    const times = buckets.filter(({ pending }) => pending > 0).map(({ virtualTime }) => virtualTime);
    expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(1);
  });

  test("while slots change hands, no bucket loses its turn: all of them are served before one is served again", async () => {
    const { bench, waiting, held } = await hotHost();
    await Promise.all(waiting.map(({ session }) => bench.want(session.bucket)));
    const [commits, served] = [bench.commits.length, bench.ofType("granted").length];
    let [next] = held;
    // One release in each 100 ms, five in a poll interval.
    for (let round = 0; round < waiting.length; round++) {
      await bench.clock.run(100);
      await bench.release(next as string);
      next = bench.commits.at(-1)?.changes.puts.find(({ kind }) => kind === "lease")?.key;
    }
    const buckets = bench
      .ofType("granted")
      .slice(served)
      .map(({ bucket }) => bucket);
    expect(buckets).toHaveLength(waiting.length);
    expect(new Set(buckets).size).toBe(waiting.length);
    expect(triesSince(bench, commits)).toBe(0);
  });

  test("WaitCount is halved by a grant and by IP_TOO_MANY", async () => {
    const { bench, held, waiting } = await hotHost();
    await bench.clock.run(15_000);
    const counts = () =>
      new Map(bench.queue.dump().hosts[0]?.buckets.map(({ bucket, waitCount }) => [bucket, waitCount]));
    for (const { session } of waiting) void bench.begin(session.bucket);
    await bench.clock.run(1_000);
    const before = counts();
    await bench.release(held[0] as string);
    const bucket = bench.ofType("granted").at(-1)?.bucket ?? "";
    expect(counts().get(bucket)).toBe(Math.floor((before.get(bucket) ?? 0) / 2));
  });

  test("a silent or denied bucket does not block the others", async () => {
    const { bench, held } = await hotHost();
    const silent = await bench.begin("silent");
    await bench.clock.run(1_500);
    for (const token of held) {
      await bench.release(token);
      expect(await bench.held()).toBe(4);
    }
    expect(silent.bucket).toBe("silent");
  });

  test("positions are those in which the sessions get their slots, and not those of a cold host", async () => {
    // With this base, waits do not change the weights.
    const weightedScheduler = { enabled: true, hotPendingMin: 4, hotPendingFactor: 1, baseWeight: 1e18 };
    const bench = new Bench({ ...NO_POOL, maxSlotPerHost: 1, maxSlotPerIp: -1, weightedScheduler });
    const first = await bench.take("first");
    const sessions: Followed[] = [];
    for (const bucket of ["short", "long", "short", "other", "short", "other", "long", "short", "long", "short"])
      sessions.push(await bench.want(bucket));
    await bench.clock.run(12_000);
    const waiting = () => sessions.filter(({ isGranted }) => !isGranted);
    const pass = async (token: string) => {
      const before = waiting();
      await bench.release(token);
      return before.find(({ isGranted }) => isGranted) as Followed;
    };
    let holder = await pass(first);
    for (const holdMs of [10, 2_000, 10, 10, 10]) {
      await bench.clock.run(holdMs);
      holder = await pass(holder.slotToken);
    }
    expect(holder.session.bucket).toBe("other");
    expect(isHot(bench)).toBe(true);
    const positions = new Map(bench.queue.inspect("h")?.waiting.map(({ session, position }) => [session, position]));
    const expected = waiting().toSorted(
      (a, b) => Number(positions.get(a.session.id)) - Number(positions.get(b.session.id)),
    );
    const granted: Followed[] = [];
    while (waiting().length > 0) granted.push((holder = await pass(holder.slotToken)));
    expect(granted.map(({ session }) => session.id)).toEqual(expected.map(({ session }) => session.id));
    // By slot-seconds, the bucket with short holds would be first. It had more turns.
    expect(granted.map(({ session }) => session.bucket)).toEqual(["long", "short", "long", "short"]);
  });
});
