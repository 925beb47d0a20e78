import { DemandMismatchError, ImpossibleRequestError } from "@slotkeeper/queue";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const HOST = { maxSlotPerHost: 10, maxSlotPerIp: -1, maxWaitMs: 600_000, zombieTimeoutSeconds: 60 } as const;
/** 10 tokens per second, at most 10. */
const TOKENS = { tokens: { limit: 10, perSeconds: 1 } } as const;

const spend = (tokens: number) => ({ cost: { tokens } });

describe("budgets of a host", () => {
  test("a grant is charged its cost, and the next waits exactly until the budget has refilled", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const first = await bench.want("a", spend(8));
    expect(first.last).toMatchObject({ result: "granted", charged: { tokens: 8 } });
    const next = await bench.want("b", spend(5));
    expect(next.isGranted).toBe(false);
    expect(await bench.queue.poll(next.session, { waitMs: 0 })).toMatchObject({
      blockedBy: "budget:tokens",
      estimatedWaitMs: 300,
    });
    await bench.clock.run(299);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(2);
    expect(next.isGranted).toBe(true);
  });

  test("a cost that is not sent is the default, and cheap requests cannot starve an expensive one", async () => {
    const bench = new Bench({ ...HOST, budgets: { tokens: { ...TOKENS.tokens, default: 2 } } });
    expect((await bench.want("a")).last).toMatchObject({ charged: { tokens: 2 } });
    const dear = await bench.want("b", spend(10));
    const cheap = await bench.want("c", spend(1));
    expect([dear.isGranted, cheap.isGranted]).toEqual([false, false]);
    expect(await bench.queue.poll(cheap.session, { waitMs: 0 })).toMatchObject({ blockedBy: "behind-first" });
    await bench.clock.run(201);
    expect([dear.isGranted, cheap.isGranted]).toEqual([true, false]);
    await bench.clock.run(101);
    expect(cheap.isGranted).toBe(true);
  });

  test("in any time, no more than the burst and the refill is charged", async () => {
    const bench = new Bench({ ...HOST, maxWaitersPerHost: 0, budgets: TOKENS });
    const waiting = await Promise.all(Array.from({ length: 60 }, (_, at) => bench.want(`b${at % 7}`, spend(1))));
    for (let ms = 0; ms < 3_000; ms += 250) {
      expect(waiting.filter(({ isGranted }) => isGranted).length).toBeLessThanOrEqual(10 + ms / 100);
      for (const one of waiting) if (one.isGranted) await bench.release(one.slotToken);
      await bench.clock.run(250);
    }
    expect(waiting.filter(({ isGranted }) => isGranted).length).toBeGreaterThanOrEqual(38);
  });

  test("`used` of a release gives back what was not used, as of the charge", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const token = await bench.take("a", spend(10));
    const next = await bench.want("b", spend(9));
    await bench.release(token, { used: { tokens: 1, unknown: 5 } });
    expect(next.isGranted).toBe(true);
  });

  test.each([
    ["negative", { tokens: -5 }, ["tokens"]],
    ["not a number", { tokens: Number.NaN }, ["tokens"]],
    ["not finite", { tokens: Number.POSITIVE_INFINITY }, ["tokens"]],
    ["a text", { tokens: "5" }, ["tokens"]],
    ["unknown", { coins: 5, constructor: 1 }, ["coins", "constructor"]],
  ])("a `used` that is %s keeps the charge and is named, and the slot is released", async (_, used, ignored) => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const slotToken = await bench.take("a", spend(10));
    const accepted: unknown[] = [];
    bench.queue.release({ slotToken, used: used as never }, (one) => accepted.push(one));
    await drained();
    expect(accepted).toEqual([{ isHeld: true, ignored }]);
    expect((await bench.want("b", spend(1))).isGranted).toBe(false);
    expect(await bench.held()).toBe(0);
  });

  test("a `used` at a host without budgets is named", async () => {
    const bench = new Bench(HOST);
    const accepted: unknown[] = [];
    bench.queue.release({ slotToken: await bench.take(), used: { tokens: 1 } }, (one) => accepted.push(one));
    await drained();
    expect(accepted).toEqual([{ isHeld: true, ignored: ["tokens"] }]);
  });

  test("what exceeds the debt of one limit is reported, in units", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    await bench.release(await bench.take("a", spend(4)), { used: { tokens: 20 } });
    expect(bench.ofType("budget-excess")).toEqual([]);
    await bench.clock.run(2_000);
    await bench.release(await bench.take("a", spend(4)), { used: { tokens: 25 } });
    expect(bench.ofType("budget-excess")).toMatchObject([{ host: "h", bucket: "a", budget: "tokens", units: 5 }]);
  });

  test("more than the estimate is a debt of at most one limit, and nothing is granted until it is paid", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const token = await bench.take("a", spend(10));
    await bench.release(token, { used: { tokens: 1_000 } });
    const next = await bench.want("b", spend(0));
    await bench.clock.run(999);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(2);
    expect(next.isGranted).toBe(true);
  });

  test("an offer that lapses and a cancellation in time give everything back; an expiry keeps the charge", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS, collectMs: 100, zombieTimeoutSeconds: 0.05 });
    const session = await bench.begin("a", spend(10));
    await bench.clock.run(5_000);
    const held = await bench.want("b", spend(10));
    expect(held.isGranted).toBe(true);
    bench.queue.cancel(held.session);
    await drained();
    const again = await bench.want("c", spend(10));
    expect(again.isGranted).toBe(true);
    await bench.clock.run(60);
    const late = await bench.want("d", spend(10));
    expect(late.isGranted).toBe(false);
    bench.queue.cancel(session);
  });

  test("changed limits keep what was spent, and a new budget starts full", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    await bench.take("a", spend(10));
    bench.queue.reconfigure({
      ...HOST,
      budgets: { tokens: { limit: 100, perSeconds: 1 }, requests: { limit: 1, perSeconds: 60 } },
    });
    const next = await bench.want("b", spend(95));
    expect(next.isGranted).toBe(false);
    await bench.clock.run(51);
    expect(next.last).toMatchObject({ result: "granted", charged: { tokens: 95, requests: 1 } });
  });

  test.each([
    [spend(11), "Expected `cost.tokens` to be at most 10, the burst of the budget, got 11"],
    [{ cost: { coins: 1 } }, "Expected `cost.coins` to be absent, because the host has no such budget, got 1"],
  ])("a request that can never be paid is refused: %j", async (more, message) => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    await expect(bench.ask("a", { waitMs: 1, ...more })).rejects.toThrow(ImpossibleRequestError);
    await expect(bench.ask("a", { waitMs: 1, ...more })).rejects.toThrow(message);
  });

  test("a repeated request with another cost is refused, also when its session has its slot", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const same = { requestId: "r", sessionId: "s", waitMs: 1 };
    await bench.take("a", { ...same, ...spend(4) });
    await bench.clock.run(6_000);
    await expect(bench.ask("a", { ...same, ...spend(5) })).rejects.toThrow(DemandMismatchError);
    await expect(bench.ask("a", same)).rejects.toThrow(DemandMismatchError);
    expect(await bench.ask("a", { ...same, ...spend(4) })).toMatchObject({ result: "granted", charged: { tokens: 4 } });
  });

  test("a request with a cost can be repeated after its host lost the budgets", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 1, budgets: TOKENS });
    const held = await bench.take("a");
    const same = { requestId: "r", sessionId: "s", ...spend(4) };
    const next = await bench.want("b", same);
    expect(next.isGranted).toBe(false);
    bench.queue.reconfigure({ ...HOST, maxSlotPerHost: 1 });
    await bench.release(held);
    expect(next.isGranted).toBe(true);
    await bench.clock.run(6_000);
    expect((await bench.ask("b", { ...same, waitMs: 1 })).result).toBe("granted");
  });

  test("a host is not forgotten before its budgets are full", async () => {
    const bench = new Bench({ ...HOST, sessionIdleSeconds: 1, budgets: { tokens: { limit: 10, perSeconds: 7_200 } } });
    await bench.release(await bench.take("a", spend(5)));
    await bench.clock.run(3_000_000);
    const next = await bench.want("b", spend(10));
    expect(next.isGranted).toBe(false);
    bench.queue.cancel(next.session);
    await bench.clock.run(5_000_000);
    expect(await bench.memory.hostKeys()).toEqual([]);
  });

  test("hosts without budgets write no budget and no `fullAt`", async () => {
    const bench = new Bench(HOST);
    await bench.release(await bench.take("a"));
    const records = bench.commits.flatMap(({ changes }) => changes.puts.map(({ kind }) => kind));
    expect(records).not.toContain("budget");
    expect(bench.commits.some(({ changes }) => changes.head?.fullAt !== undefined)).toBe(false);
  });
});

describe("a budget in shadow mode", () => {
  const SHADOW = { tokens: { ...TOKENS.tokens, shadow: true } } as const;

  test("is charged and counted, and holds back no request", async () => {
    const bench = new Bench({ ...HOST, budgets: SHADOW });
    expect((await bench.want("a", spend(8))).last).toMatchObject({ result: "granted", charged: { tokens: 8 } });
    expect(bench.ofType("shadow-short")).toEqual([]);
    expect((await bench.want("b", spend(5))).last).toMatchObject({ result: "granted", charged: { tokens: 5 } });
    // Above its burst, and above its largest debt.
    expect((await bench.want("c", spend(50))).last).toMatchObject({ result: "granted", charged: { tokens: 7 } });
    expect(bench.ofType("shadow-short")).toMatchObject([
      { host: "h", bucket: "b", limit: "budget:tokens" },
      { host: "h", bucket: "c", limit: "budget:tokens" },
    ]);
  });

  test("that is enforced later has what was spent, as a debt of at most one limit", async () => {
    const bench = new Bench({ ...HOST, budgets: SHADOW });
    for (const bucket of ["a", "b", "c"]) await bench.take(bucket, spend(10));
    bench.queue.reconfigure({ ...HOST, budgets: TOKENS });
    const next = await bench.want("d", spend(1));
    await bench.clock.run(1_099);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(2);
    expect(next.isGranted).toBe(true);
  });

  test("beside an enforced one changes nothing but the count", async () => {
    const budgets = { ...SHADOW, requests: { limit: 1, perSeconds: 1 } };
    const bench = new Bench({ ...HOST, budgets });
    await bench.take("a", spend(10));
    const next = await bench.want("b", spend(10));
    expect(await bench.queue.poll(next.session, { waitMs: 0 })).toMatchObject({ blockedBy: "budget:requests" });
    await bench.clock.run(1_001);
    expect(next.isGranted).toBe(true);
  });

  test("a lapsed offer counts no grant", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 1, budgets: SHADOW, collectMs: 100 });
    const held = await bench.take("a", spend(10));
    const session = await bench.begin("b", spend(10));
    await bench.release(held);
    await bench.clock.run(5_000);
    expect(bench.ofType("uncollected").length).toBeGreaterThan(0);
    expect(bench.ofType("shadow-short")).toEqual([]);
    bench.queue.cancel(session);
  });
});
