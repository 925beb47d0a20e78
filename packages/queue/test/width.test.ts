import { DemandMismatchError, type FairQueue, ImpossibleRequestError } from "@slotkeeper/queue";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";
import { SlowWorld } from "./slow-world.ts";

const NO_LIMIT = { maxSlotPerHost: 4, maxSlotPerIp: -1, maxWaitMs: 600_000, zombieTimeoutSeconds: 300 } as const;

async function firstOf(bench: Bench): Promise<string | undefined> {
  return (await bench.memory.peek(["h"])).get("h")?.head.first;
}

describe("a request for several slots", () => {
  test("gets all of them in one grant, or none", async () => {
    const bench = new Bench(NO_LIMIT);
    const one = await bench.take("a");
    const wide = await bench.want("b", { width: 4 });
    expect([wide.isGranted, await bench.held()]).toEqual([false, 1]);
    await bench.release(one);
    expect(wide.last).toMatchObject({ result: "granted", width: 4 });
    expect(await bench.held()).toBe(4);
    await bench.release(wide.slotToken);
    expect(await bench.held()).toBe(0);
  });

  test("counts as its width at the host and at its bucket, with its minimum hold", async () => {
    const bench = new Bench({ ...NO_LIMIT, maxSlotPerIp: 2, minSlotHoldMs: 100, smoothReleaseIntervalMs: 0 });
    const token = await bench.take("a", { width: 2 });
    const own = await bench.want("a");
    const others = [await bench.want("b"), await bench.want("c"), await bench.want("d")];
    expect([own.isGranted, ...others.map(({ isGranted }) => isGranted)]).toEqual([false, true, true, false]);
    await bench.release(token, { hitUpstreamAtMs: bench.clock.now() });
    expect([own.isGranted, await bench.held()]).toEqual([false, 4]);
    await bench.clock.run(101);
    expect([own.isGranted, others[2]?.isGranted, await bench.held()]).toEqual([true, true, 4]);
  });

  test("is charged its width times its hold", async () => {
    const bench = new Bench(NO_LIMIT);
    const [wide, narrow] = [await bench.take("a", { width: 3 }), await bench.take("b")];
    await bench.clock.run(1_000);
    const used = Object.fromEntries((await bench.snapshot())?.buckets.map((one) => [one.bucket, one.usedMs]) ?? []);
    expect(used["a"]).toBeCloseTo(3_000);
    expect(used["b"]).toBeCloseTo(1_000);
    await bench.release(wide);
    await bench.release(narrow);
  });

  test("has one token, one fence and one probe", async () => {
    const bench = new Bench({ ...NO_LIMIT, breaker: { consecutiveErrors: 1, openSeconds: 1, halfOpenProbes: 2 } });
    await bench.queue.report({ host: "h", status: 503 });
    await bench.clock.run(1_100);
    const one = await bench.want("a", { width: 2 });
    const two = await bench.want("b", { width: 2 });
    expect([one.isGranted, two.isGranted]).toEqual([true, true]);
    const { leases = [] } = (await bench.snapshot()) ?? {};
    expect(leases.map(({ isProbe, width }) => ({ isProbe, width }))).toEqual([
      { isProbe: true, width: 2 },
      { isProbe: true, width: 2 },
    ]);
  });
});

describe("the first of a host", () => {
  test("waits while no other is granted, and narrow requests cannot starve it", async () => {
    const bench = new Bench(NO_LIMIT);
    const held = [await bench.take("x"), await bench.take("x"), await bench.take("x"), await bench.take("x")];
    const wide = await bench.want("a", { width: 3 });
    const narrow = await bench.want("b");
    await bench.release(held[0] as string);
    expect([wide.isGranted, narrow.isGranted, await firstOf(bench)]).toEqual([false, false, wide.session.id]);
    expect(await bench.queue.poll(narrow.session, { waitMs: 0 })).toMatchObject({
      blockedBy: "behind-first",
      position: 2,
    });
    expect(await bench.queue.poll(wide.session, { waitMs: 0 })).toMatchObject({ blockedBy: "width", position: 1 });
    await bench.release(held[1] as string);
    await bench.release(held[2] as string);
    expect([wide.isGranted, narrow.isGranted, await firstOf(bench)]).toEqual([true, false, undefined]);
    await bench.release(held[3] as string);
    expect(narrow.isGranted).toBe(true);
  });

  test("is not one whose bucket has more than its share: then the best of those that fit is granted", async () => {
    const bench = new Bench({ ...NO_LIMIT, maxSlotPerHost: 8, order: "fifo" });
    for (const width of [3, 3]) await bench.take("a", { width });
    const token = await bench.take("b", { width: 2 });
    const [older, younger] = [await bench.want("a", { width: 3 }), await bench.want("b")];
    await bench.release(token);
    expect([older.isGranted, younger.isGranted]).toEqual([false, true]);
  });

  test.each([
    ["is canceled", async (bench: Bench, first: { session: never }) => void bench.queue.cancel(first.session)],
    ["reaches its deadline", async (bench: Bench) => bench.clock.run(5_000)],
  ])("is forgotten when it %s, and the next is granted", async (_, end) => {
    const bench = new Bench({ ...NO_LIMIT, maxWaitMs: 4_000 });
    const held = [await bench.take("x", { width: 2 }), await bench.take("x"), await bench.take("x")];
    const wide = await bench.want("a", { width: 3 });
    await bench.clock.run(2_000);
    const narrow = await bench.want("b");
    await bench.release(held[1] as string);
    expect([await firstOf(bench), narrow.isGranted]).toEqual([wide.session.id, false]);
    await end(bench, wide as never);
    await drained();
    expect([await firstOf(bench), narrow.isGranted]).toEqual([undefined, true]);
  });

  test("steps aside when its client has been away for collectMs, without another event", async () => {
    const bench = new Bench({ ...NO_LIMIT, collectMs: 500, pollWindowMs: 1_000, sessionIdleSeconds: 60 });
    const held = [await bench.take("x", { width: 2 }), await bench.take("x"), await bench.take("x")];
    const wide = await bench.want("a", { width: 3 });
    const narrow = await bench.want("b");
    await bench.release(held[1] as string);
    expect(await firstOf(bench)).toBe(wide.session.id);
    wide.isStopped = true;
    await bench.clock.run(3_000);
    expect([await firstOf(bench), narrow.isGranted]).toEqual([undefined, true]);
  });

  test("does not exist while a half-open breaker lets no session through", async () => {
    const bench = new Bench({ ...NO_LIMIT, breaker: { consecutiveErrors: 1, openSeconds: 1, halfOpenProbes: 1 } });
    await bench.take("x");
    await bench.queue.report({ host: "h", status: 503 });
    await bench.clock.run(1_100);
    const probe = await bench.want("b");
    const wide = await bench.want("a", { width: 4 });
    expect([probe.isGranted, wide.isGranted, await firstOf(bench)]).toEqual([true, false, undefined]);
  });

  test("exists only where requests are wide: the head of other hosts never names one", async () => {
    const bench = new Bench({ ...NO_LIMIT, maxSlotPerHost: 2 });
    const tokens = [await bench.take("a"), await bench.take("b")];
    for (let round = 0; round < 20; round++) {
      const waiting = [await bench.want("a"), await bench.want("b")];
      for (const token of tokens.splice(0)) await bench.release(token);
      for (const { slotToken } of waiting) tokens.push(slotToken);
    }
    expect(bench.commits.filter(({ changes }) => changes.head?.first !== undefined)).toEqual([]);
  });
});

describe("a width that the limits can never allow", () => {
  test.each([
    [{}, 5, "Expected `width` to be at most 4, the number of slots of the host, got 5"],
    [{ maxSlotPerIp: 2 }, 3, "Expected `width` to be at most 2, the most slots of one bucket, got 3"],
  ])("is refused at once: %j", async (limits, width, message) => {
    const bench = new Bench({ ...NO_LIMIT, ...limits });
    const refused = bench.ask("a", { width, waitMs: 1 });
    await expect(refused).rejects.toThrow(ImpossibleRequestError);
    await expect(refused).rejects.toMatchObject({ message, code: "IMPOSSIBLE", field: "width", retryable: false });
    expect(bench.queue.dump().sessions.total).toBe(0);
  });

  test("ends a session that waits when an operator lowers the limit, and a repeated poll finds the end", async () => {
    const bench = new Bench(NO_LIMIT);
    await bench.take("x");
    const [wide, narrow] = [await bench.want("a", { width: 4 }), await bench.want("b", { width: 2 })];
    await bench.queue.operate({ host: "h", kind: "limits", limits: { slots: 3 } });
    await drained();
    expect(wide.last).toEqual({ result: "timeout", reason: "impossible" });
    expect(await bench.queue.poll(wide.session)).toEqual({ result: "timeout", reason: "impossible" });
    expect([narrow.isGranted, await firstOf(bench)]).toEqual([true, undefined]);
  });

  test("depends on the capacity of a semaphore: its first user chooses it", async () => {
    const bench = new Bench(NO_LIMIT);
    const named = { host: "sem:s", hostname: "sem:s" };
    await expect(bench.ask("", { ...named, limit: 2, width: 3, waitMs: 1 })).rejects.toThrow(ImpossibleRequestError);
    await bench.take("", { ...named, limit: 10, width: 8 });
    await expect(bench.ask("", { ...named, width: 11, waitMs: 1 })).rejects.toThrow("at most 10");
    const waiting = bench.ask("", { ...named, width: 3, waitMs: 1 });
    await bench.clock.run(2);
    expect(await waiting).toMatchObject({ result: "pending", blockedBy: "width" });
  });
});

test("a repeated first call with another width is refused, whether the session waits or has its slots", async () => {
  const bench = new Bench(NO_LIMIT);
  const token = await bench.take("a", { requestId: "r", width: 2 });
  await expect(bench.ask("a", { requestId: "r", width: 3, waitMs: 1 })).rejects.toThrow(DemandMismatchError);
  await expect(bench.ask("a", { requestId: "r" })).rejects.toThrow(DemandMismatchError);
  expect(await bench.ask("a", { requestId: "r", width: 2, waitMs: 1 })).toMatchObject({ slotToken: token, width: 2 });
  await bench.begin("b", { requestId: "w", width: 4 });
  await expect(bench.ask("b", { requestId: "w" })).rejects.toMatchObject({ code: "DEMAND_MISMATCH" });
});

test.each([
  [{ width: 3 }, "width", "Expected `width` to be 2, as in the session of this `requestId`, got 3"],
  [{ class: "batch" }, "class", "Expected `class` to be chat, as in the session of this `requestId`, got batch"],
  [
    { cost: { tokens: 5 } },
    "cost.tokens",
    "Expected `cost.tokens` to be 4, as in the session of this `requestId`, got 5",
  ],
  [{ cost: {} }, "cost.tokens", "Expected `cost.tokens` to be 4, as in the session of this `requestId`, got none"],
  [
    { keys: { tenant: "acme", user: "ann" } },
    "keys.user",
    "Expected `keys.user` to be absent, as in the session of this `requestId`, got ann",
  ],
])("a refused repetition names what differs: %j", async (changed, field, message) => {
  const bench = new Bench({
    ...NO_LIMIT,
    budgets: { tokens: { limit: 10, perSeconds: 1 } },
    keys: { user: { slots: 5 }, tenant: { slots: 5 } },
    classes: { chat: {}, batch: {} },
  });
  const same = { requestId: "r", width: 2, class: "chat", cost: { tokens: 4 }, keys: { tenant: "acme" } };
  await bench.take("a", same);
  await expect(bench.ask("a", { ...same, ...changed })).rejects.toMatchObject({ field, message });
  // The session is no longer in memory: the book names it.
  await bench.clock.run(6_000);
  await expect(bench.ask("a", { ...same, ...changed })).rejects.toMatchObject({ field, message });
  expect(await bench.ask("a", { ...same, waitMs: 1 })).toMatchObject({ result: "granted" });
});

test("a refusal names a limited number of the budgets of a host", async () => {
  const values = Array.from({ length: 25 }, (_, at) => [
    `v${at}`,
    { budgets: { [`b${at + 10}`]: { limit: 1, perSeconds: 1 } } },
  ]);
  const bench = new Bench({ ...NO_LIMIT, keys: { tenant: { slots: 5, for: Object.fromEntries(values) } } });
  await expect(bench.ask("a", { cost: { coins: 1 }, waitMs: 1 })).rejects.toThrow(
    /\(it has `b10`, `b11`, .*`b29`, 5 more\)/,
  );
});

test("a first call with another width that is on its way does not fail a poll of the session", async () => {
  const world = new SlowWorld({ ...NO_LIMIT, pollWindowMs: 5_000 }, 2);
  const [one, two] = world.queues as [FairQueue, FairQueue];
  const request = { host: "h", bucket: "a", sessionId: "s" };
  const held = await world.settled(one.begin({ host: "h", bucket: "b", width: 4, waitMs: 10 }));
  const waiting = await world.settled(one.begin({ ...request, width: 2 }));
  if (waiting.result !== "pending" || held.result !== "granted") throw new Error("Expected one to wait for the other");
  world.delays = () => ({ beforeMs: 200 });
  const wrong = two.begin({ ...request, width: 3, waitMs: 4_000 });
  const right = two.poll(waiting.session, { waitMs: 4_000 });
  await expect(Promise.all([wrong, world.run(1_000)])).rejects.toThrow(DemandMismatchError);
  one.release({ slotToken: held.slotToken });
  await world.run(1_000);
  expect(await right).toMatchObject({ result: "granted", width: 2, session: { demand: { width: 2 } } });
});
