import { DemandMismatchError, ImpossibleRequestError } from "@slotkeeper/queue";
import { Book, budgetsOf } from "@slotkeeper/queue/internals";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";
import { arrive, Decider, release } from "./decider.ts";

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

  test("a budget may have the name of a method of every object", async () => {
    const budgets = { ...TOKENS, constructor: { limit: 5, perSeconds: 1 } };
    for (const order of ["slot-seconds", "budget:constructor"] as const) {
      const bench = new Bench({ ...HOST, budgets, order });
      const { last, slotToken } = await bench.want("a", spend(1));
      expect(last).toMatchObject({ result: "granted" });
      expect((last as { readonly charged?: object }).charged).toEqual({ tokens: 1, constructor: 1 });
      await bench.release(slotToken, { used: { tokens: 2 } });
      expect((await bench.want("a", spend(1))).isGranted).toBe(true);
    }
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
    [
      { cost: { coins: 1 } },
      "Expected `cost.coins` to be absent, because the host has no such budget (it has `tokens`), got 1",
    ],
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

  test("hosts without budgets write no budget, no charge and no `fullAt`, and their grants name none", async () => {
    const bench = new Bench(HOST);
    const { last, slotToken } = await bench.want("a");
    expect((last as { readonly charged?: object }).charged).toBeUndefined();
    const [lease] = bench.commits.flatMap(({ changes }) => changes.puts.filter(({ kind }) => kind === "lease"));
    expect(lease).toMatchObject({ bucket: "a", charge: undefined });
    await bench.release(slotToken);
    const records = bench.commits.flatMap(({ changes }) => changes.puts.map(({ kind }) => kind));
    expect(records).not.toContain("budget");
    expect(bench.commits.some(({ changes }) => changes.head?.fullAt !== undefined)).toBe(false);
  });
});

describe("what operators see of a budget", () => {
  const SHOWN = { name: "tokens", limit: 10, perMs: 2_000, burst: 40, default: 3, isShadow: false } as const;
  const budgets = { tokens: { limit: 10, perSeconds: 2, burst: 40, default: 3 } } as const;
  const shown = async (bench: Bench) => {
    const quotas = bench.queue.quotas("h");
    const stored = (await bench.snapshot())?.budgets;
    expect(quotas?.budgets ?? []).toEqual(stored);
    return { ...quotas, budgets: stored };
  };

  test("is what can be charged now, and when it is full again", async () => {
    const bench = new Bench({ ...HOST, budgets });
    await bench.take("a", spend(0));
    expect(await shown(bench)).toEqual({ slots: 10, free: 9, budgets: [{ ...SHOWN, available: 40, fullInMs: 0 }] });
    await bench.take("a", spend(30));
    expect((await shown(bench)).budgets).toEqual([{ ...SHOWN, available: 10, fullInMs: 6_000 }]);
    await bench.clock.run(1_000);
    expect((await shown(bench)).budgets).toEqual([{ ...SHOWN, available: 15, fullInMs: 5_000 }]);
    await bench.clock.run(10_000);
    expect((await shown(bench)).budgets).toEqual([{ ...SHOWN, available: 40, fullInMs: 0 }]);
  });

  test("is below 0 while it is in debt", async () => {
    const bench = new Bench({ ...HOST, budgets });
    await bench.release(await bench.take("a", spend(40)), { used: { tokens: 45 } });
    expect((await shown(bench)).budgets).toEqual([{ ...SHOWN, available: -5, fullInMs: 9_000 }]);
  });

  test("says whether it is only tried, and each budget has its own line", async () => {
    const tried = { limit: 1, perSeconds: 60, shadow: true };
    const bench = new Bench({ ...HOST, budgets: { ...budgets, tried } });
    await bench.take("a", { cost: { tried: 1, tokens: 0 } });
    expect((await shown(bench)).budgets).toEqual([
      { ...SHOWN, available: 40, fullInMs: 0 },
      { name: "tried", limit: 1, perMs: 60_000, burst: 1, default: 1, isShadow: true, available: 0, fullInMs: 60_000 },
    ]);
  });

  test("is nothing at a host without budgets, and at one that has no limits yet", async () => {
    const bench = new Bench(HOST);
    await bench.take("a");
    expect(await shown(bench)).toEqual({ budgets: [] });
    expect(bench.queue.quotas("unknown")).toBeUndefined();
    expect(budgetsOf(new Book("h", 0), 0)).toEqual([]);
  });
});

describe("limits of a budget that change while it is partly spent", () => {
  const BEFORE = { limit: 10, perSeconds: 1, burst: 10 } as const;

  // 10 of 10 are spent, and 4 have flowed in when the limits change.
  test.each([
    ["the limit", { limit: 20 }, 4, 6],
    ["the period", { perSeconds: 4 }, 4, 4.25],
    ["the burst", { burst: 30 }, 24, 25],
    ["all of them", { limit: 40, perSeconds: 2, burst: 50 }, 44, 46],
    ["none of them", { default: 2 }, 4, 5],
  ] as const)(
    "%s: what was spent stays spent, and refills by the new limits from then on",
    async (_, change, then, soon) => {
      const bench = new Bench({ ...HOST, budgets: { tokens: BEFORE } });
      const slotToken = await bench.take("a", spend(10));
      await bench.clock.run(400);
      const changed = { ...BEFORE, ...change };
      bench.queue.reconfigure({ ...HOST, budgets: { tokens: changed } });
      await bench.queue.renew(slotToken);
      const available = async () => (await bench.snapshot())?.budgets[0]?.available;
      expect(await available()).toBeCloseTo(then, 9);
      await bench.clock.run(100);
      expect(await available()).toBeCloseTo(soon, 9);
      const records = (await bench.memory.peek(["h"])).get("h")?.records.filter(({ kind }) => kind === "budget");
      const { limit, perSeconds, burst } = changed;
      expect(records).toMatchObject([{ key: "tokens", limit, perMs: perSeconds * 1_000, burst }]);
    },
  );

  test("a `used` for a budget that the host has lost since is named, and the slot is released", async () => {
    const bench = new Bench({ ...HOST, budgets: { ...TOKENS, coins: { limit: 5, perSeconds: 1 } } });
    const slotToken = await bench.take("a", spend(10));
    bench.queue.reconfigure({ ...HOST, budgets: TOKENS });
    const accepted: unknown[] = [];
    bench.queue.release({ slotToken, used: { coins: 0, tokens: 4 } }, (one) => accepted.push(one));
    await drained();
    expect(accepted).toEqual([{ isHeld: true, ignored: ["coins"] }]);
    expect((await bench.snapshot())?.budgets).toMatchObject([{ name: "tokens", available: 6 }]);
  });
});

describe("records of budgets", () => {
  const puts = (bench: Bench, kind: string) =>
    bench.commits.at(-1)?.changes.puts.filter((record) => record.kind === kind) ?? [];

  test("do not change when exactly the estimate was used", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const slotToken = await bench.take("a", spend(8));
    await bench.clock.run(100);
    await bench.release(slotToken, { used: { tokens: 8 } });
    expect(puts(bench, "budget")).toEqual([]);
    expect((await bench.snapshot())?.budgets).toMatchObject([{ available: 3 }]);
  });

  test("are deleted at the instant at which the budget is full", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    await bench.take("a", spend(10));
    expect(bench.commits.at(-1)?.changes.head?.fullAt).toBe(bench.clock.now() + 1_000);
    await bench.clock.run(1_000);
    await bench.take("a", spend(0));
    expect(bench.commits.at(-1)?.changes.dels).toContainEqual(["budget", "tokens"]);
    expect(bench.commits.at(-1)?.changes.head?.fullAt).toBeUndefined();
  });

  test("with another order than by a budget, grants count nothing for it", async () => {
    const bench = new Bench({ ...HOST, budgets: TOKENS });
    const { session } = await bench.want("a", spend(4));
    expect(puts(bench, "lease")).toMatchObject([{ charge: { costs: { tokens: 4 }, counted: undefined } }]);
    await bench.want("a", spend(4));
    bench.queue.cancel(session);
    await drained();
    const accounts = bench.commits.flatMap(({ changes }) => changes.puts.filter(({ kind }) => kind === "account"));
    expect(accounts.length).toBeGreaterThan(0);
    for (const account of accounts) expect((account as { readonly charged?: number }).charged).toBeUndefined();
  });

  test("a grant that found no limit in shadow mode short names none", async () => {
    const bench = new Bench({ ...HOST, budgets: { ...TOKENS, tried: { limit: 1, perSeconds: 60, shadow: true } } });
    await bench.take("a", spend(1));
    expect(puts(bench, "lease")).toMatchObject([{ charge: { short: undefined } }]);
    await bench.take("a", spend(1));
    expect(puts(bench, "lease")).toMatchObject([{ charge: { short: ["budget:tried"] } }]);
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

describe("the order by a budget", () => {
  const ORDERED = {
    ...HOST,
    maxSlotPerHost: 1,
    order: "budget:tokens",
    budgets: { tokens: { limit: 1e6, perSeconds: 1 } },
  } as const;

  /** Serves all waiters one after the other. Returns the order of their names. */
  async function served(bench: Bench, waiting: { readonly [name: string]: Awaited<ReturnType<Bench["want"]>> }) {
    const order: string[] = [];
    for (let left = Object.entries(waiting); left.length > 0; ) {
      const [name, next] = left.find(([, { isGranted }]) => isGranted) ?? [];
      if (name === undefined || next === undefined) throw new Error(`Granted so far: ${order.join(" ")}`);
      order.push(name);
      left = left.filter(([other]) => other !== name);
      await bench.release(next.slotToken);
    }
    return order;
  }

  test("the bucket with the smallest charge per weight is next, then the oldest", async () => {
    const bench = new Bench({ ...ORDERED, hosts: { "*": { weights: { b: 4 } } } });
    const held = await bench.take("x", spend(1));
    const waiting = {
      a1: await bench.want("a", spend(100)),
      a2: await bench.want("a", spend(1)),
      b1: await bench.want("b", spend(100)),
      b2: await bench.want("b", spend(400)),
      c1: await bench.want("c", spend(60)),
      c2: await bench.want("c", spend(1)),
    };
    await bench.release(held);
    // Charges per weight after each grant: a 100, b 25, c 60, b 125, c 61, a 101.
    expect(await served(bench, waiting)).toEqual(["a1", "b1", "c1", "b2", "c2", "a2"]);
  });

  test.each([
    ["a settlement below the estimate", 100, 5, "a"],
    ["no settlement", 100, undefined, "b"],
    ["a settlement above the estimate", 10, 80, "b"],
    ["a cancellation in time", 100, "cancel", "a"],
  ] as const)("%s corrects the charge before the next grant", async (_, estimate, used, next) => {
    const bench = new Bench({ ...ORDERED, maxSlotPerHost: 2 });
    const held = await bench.want("a", spend(estimate));
    await bench.take("b", spend(50));
    const waiting = { b: await bench.want("b"), a: await bench.want("a") };
    if (used === "cancel") bench.queue.cancel(held.session);
    else await bench.release(held.slotToken, used === undefined ? {} : { used: { tokens: used } });
    await drained();
    expect(Object.keys(waiting).filter((name) => waiting[name as "a" | "b"].isGranted)).toEqual([next]);
  });

  test("a session that returns starts level with the best that waits, in its charge and in its use of slots", () => {
    const budgets = { tokens: { ...ORDERED.budgets.tokens, default: 10 } };
    const host = new Decider({ ...ORDERED, budgets });
    for (const ms of [0, 500]) {
      host.at(ms, [arrive(`s${ms}`, "a", ms, 9_000)], [`s${ms}`]);
      if (ms === 0) host.at(400, [release(host.book, "s0")], []);
    }
    host.at(600, [arrive("s1", "b", 600, 9_000)], ["s1"]);
    const { usedMs } = host.book.get("account", "b") as { readonly usedMs: number };
    host.at(5_000, [{ ...arrive("s2", "c", 550, 9_000), isReturning: true }], ["s1", "s2"]);
    expect(host.book.get("account", "b")).toMatchObject({ usedMs, charged: 10 });
    expect(host.book.get("account", "c")).toMatchObject({ usedMs, charged: 10 });
    expect(host.book.head.progress).toBeGreaterThan(usedMs);
  });

  test("a settlement of another budget corrects no charge", async () => {
    const budgets = { ...ORDERED.budgets, calls: { limit: 1e6, perSeconds: 1 } };
    const bench = new Bench({ ...ORDERED, budgets, maxSlotPerHost: 2 });
    const held = await bench.want("a", spend(100));
    await bench.take("b", spend(50));
    const [b, a] = [await bench.want("b", spend(1)), await bench.want("a", spend(1))];
    await bench.release(held.slotToken, { used: { calls: 5_000 } });
    // `a` was charged 100 and `b` 50.
    expect([a.isGranted, b.isGranted]).toEqual([false, true]);
    const charges = (await bench.memory.peek(["h"]))
      .get("h")
      ?.records.flatMap((record) => (record.kind === "account" ? [[record.key, record.charged]] : []));
    expect(Object.fromEntries(charges ?? [])).toEqual({ a: 100, b: 51 });
  });

  test("a grant counts at least 1, also if it costs nothing", async () => {
    const bench = new Bench(ORDERED);
    const held = await bench.take("x");
    const [a1, a2] = [await bench.want("a", spend(0)), await bench.want("a", spend(0))];
    const waiting = { a1, a2, b1: await bench.want("b", spend(0)) };
    await bench.release(held);
    expect(await served(bench, waiting)).toEqual(["a1", "b1", "a2"]);
  });

  test("a bucket that returns starts at the smallest charge of those that wait, not below", async () => {
    const bench = new Bench(ORDERED);
    let held = await bench.take("a", spend(1_000));
    const busy = [];
    for (let turn = 0; turn < 3; turn++) busy.push(await bench.want("a", spend(1_000)));
    for (const next of busy.slice(0, 2)) {
      await bench.release(held);
      held = next.slotToken;
    }
    // `a` was charged 3,000 and waits. Without the rule, `b` would get three thousand grants first.
    const waiting = {
      a: busy[2] as (typeof busy)[number],
      b1: await bench.want("b", spend(10)),
      b2: await bench.want("b", spend(10)),
    };
    await bench.release(held);
    expect(await served(bench, waiting)).toEqual(["a", "b1", "b2"]);
  });

  test("a bucket that comes when none waits starts where the last grant was made", async () => {
    const bench = new Bench(ORDERED);
    for (let turn = 0; turn < 5; turn++) await bench.release(await bench.take("a", spend(1_000)));
    const held = await bench.take("a", spend(1_000));
    const waiting = {
      b1: await bench.want("b", spend(1_000)),
      a1: await bench.want("a", spend(1)),
      b2: await bench.want("b", spend(1)),
    };
    await bench.release(held);
    // `b` starts at 5,000, the charge of `a` before its last grant: it gets one grant before `a`, not five.
    expect(await served(bench, waiting)).toEqual(["b1", "a1", "b2"]);
  });

  test("another order starts all accounts at zero", async () => {
    const bench = new Bench(ORDERED);
    const held = await bench.take("a", spend(1_000));
    const waiting = { a: await bench.want("a", spend(1)), b: await bench.want("b", spend(1)) };
    bench.queue.reconfigure({ ...ORDERED, order: "fifo" });
    await bench.clock.run(2_000);
    bench.queue.reconfigure(ORDERED);
    await bench.clock.run(2_000);
    await bench.release(held, { used: { tokens: 2_000 } });
    expect(await served(bench, waiting)).toEqual(["a", "b"]);
  });

  test("positions follow the order", async () => {
    const bench = new Bench(ORDERED);
    const held = await bench.take("x", spend(1));
    const dear = await bench.want("a", spend(100));
    const second = await bench.want("a", spend(100));
    const cheap = await bench.want("b", spend(30));
    const places = await Promise.all(
      [dear, second, cheap].map(async ({ session }) => await bench.queue.poll(session, { waitMs: 0 })),
    );
    expect(places).toMatchObject([{ position: 1 }, { position: 3 }, { position: 2 }]);
    await bench.release(held);
  });

  test.each([
    [
      { order: "budget:coins", budgets: TOKENS },
      /Expected `fairQueue.order` to name a budget of the host, got "budget:coins"/,
    ],
    [
      { order: "budget:Tokens" },
      /Expected `fairQueue.order` to be "slot-seconds" or "fifo", or "budget:" and the name/,
    ],
    [
      { order: "budget:tokens", budgets: TOKENS, hosts: { h: { budgets: { coins: TOKENS.tokens } } } },
      /Expected `fairQueue.hosts\["h"\].order` to name a budget of the host, got "budget:tokens"/,
    ],
  ])("is refused without its budget: %j", (config, message) => {
    expect(() => new Bench(config as never)).toThrow(message);
  });
});
