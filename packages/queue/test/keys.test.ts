import { constraintsOf, ImpossibleRequestError, isConstrained as isConstrainedBy } from "@slotkeeper/queue";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const HOST = { maxSlotPerHost: 10, maxSlotPerIp: -1, maxWaitMs: 600_000, zombieTimeoutSeconds: 300 } as const;
const TENANT = { tenant: { slots: 2 } } as const;

const of = (tenant: string, more: object = {}) => ({ keys: { tenant }, ...more });

describe("slots of a key", () => {
  test("are shared by all requests with the same value, and others are not held back", async () => {
    const bench = new Bench({ ...HOST, keys: TENANT });
    const held = [await bench.take("a", of("acme")), await bench.take("b", of("acme"))];
    const third = await bench.want("c", of("acme"));
    const [other, none] = [await bench.want("c", of("umbrella")), await bench.want("c")];
    expect([third, other, none].map(({ isGranted }) => isGranted)).toEqual([false, true, true]);
    expect(await bench.queue.poll(third.session, { waitMs: 0 })).toMatchObject({
      blockedBy: "key:tenant",
      estimatedWaitMs: undefined,
    });
    await bench.release(held[0] as string);
    expect(third.isGranted).toBe(true);
  });

  test("`for` has other limits for single values", async () => {
    const bench = new Bench({ ...HOST, keys: { tenant: { slots: 1, for: { acme: { slots: 3 } } } } });
    const acme = [
      await bench.want("a", of("acme")),
      await bench.want("a", of("acme")),
      await bench.want("a", of("acme")),
    ];
    const others = [await bench.want("a", of("b")), await bench.want("a", of("b"))];
    expect([...acme, ...others].map(({ isGranted }) => isGranted)).toEqual([true, true, true, true, false]);
  });

  test("narrow requests cannot starve a wide one with the same value", async () => {
    const bench = new Bench({ ...HOST, keys: { tenant: { slots: 3 } } });
    const held = [await bench.take("a", of("acme")), await bench.take("a", of("acme"))];
    const wide = await bench.want("b", of("acme", { width: 3 }));
    const narrow = await bench.want("c", of("acme"));
    expect([wide.isGranted, narrow.isGranted]).toEqual([false, false]);
    await bench.release(held[0] as string);
    expect([wide.isGranted, narrow.isGranted]).toEqual([false, false]);
    await bench.release(held[1] as string);
    expect([wide.isGranted, narrow.isGranted]).toEqual([true, false]);
  });

  test("a waiter passes its keys in their order: a user at its limit does not hold back its tenant", async () => {
    const bench = new Bench({ ...HOST, keys: { user: { slots: 1 }, tenant: { slots: 3 } } });
    const ann = { keys: { user: "ann", tenant: "acme" } };
    await bench.take("a", ann);
    const [again, bob] = [await bench.want("a", ann), await bench.want("a", { keys: { user: "bob", tenant: "acme" } })];
    expect([again.isGranted, bob.isGranted]).toEqual([false, true]);
    expect(await bench.queue.poll(again.session, { waitMs: 0 })).toMatchObject({ blockedBy: "key:user" });
  });

  test("waiters without room have no place in the pool, so they hide none that has room", async () => {
    const bench = new Bench({ ...HOST, maxWaitersPerHost: 2, keys: TENANT });
    for (const bucket of ["a", "b"]) await bench.take(bucket, of("acme"));
    for (let count = 0; count < 5; count++) await bench.want("a", of("acme"));
    expect((await bench.want("a", of("umbrella"))).isGranted).toBe(true);
    expect((await bench.want("a")).isGranted).toBe(true);
  });

  test("the oldest of a key steps aside when its client has been away for collectMs, without another event", async () => {
    const bench = new Bench({ ...HOST, collectMs: 500, pollWindowMs: 1_000, sessionIdleSeconds: 60, keys: TENANT });
    await bench.take("x", of("acme"));
    const wide = await bench.want("a", of("acme", { width: 2 }));
    const narrow = await bench.want("b", of("acme"));
    expect([wide.isGranted, narrow.isGranted]).toEqual([false, false]);
    wide.isStopped = true;
    await bench.clock.run(10_000);
    expect([wide.isGranted, narrow.isGranted]).toEqual([false, true]);
  });

  test("the oldest of a key that reaches its deadline lets the next one go on", async () => {
    const bench = new Bench({ ...HOST, maxWaitMs: 4_000, keys: TENANT });
    await bench.take("x", of("acme"));
    const wide = await bench.want("a", of("acme", { width: 2 }));
    await bench.clock.run(2_000);
    const narrow = await bench.want("b", of("acme"));
    await bench.clock.run(2_100);
    expect([wide.last, narrow.isGranted]).toMatchObject([{ result: "timeout" }, true]);
  });

  test("the place of a session in the queue comes after those in the order, by arrival", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 2, keys: { tenant: { slots: 1 } } });
    await bench.take("a", of("acme"));
    await bench.take("b");
    const held = [await bench.want("a", of("acme")), await bench.want("a", of("acme"))];
    const open = await bench.want("c");
    const place = async ({ session }: { session: never }) =>
      ((await bench.queue.poll(session, { waitMs: 0 })) as { position: number }).position;
    expect(await Promise.all([open, ...held].map((one) => place(one as never)))).toEqual([1, 2, 3]);
  });
});

describe("budgets of a key", () => {
  const TOKENS = { tenant: { budgets: { tokens: { limit: 10, perSeconds: 1 } } } } as const;
  const spend = (tenant: string, tokens: number) => ({ keys: { tenant }, cost: { tokens } });

  test("each value has its own, and a waiter goes on exactly when its value can pay", async () => {
    const bench = new Bench({ ...HOST, keys: TOKENS });
    const first = await bench.want("a", spend("acme", 8));
    expect(first.last).toMatchObject({ result: "granted", charged: { tokens: 8 } });
    const next = await bench.want("b", spend("acme", 5));
    expect((await bench.want("b", spend("umbrella", 10))).isGranted).toBe(true);
    expect(await bench.queue.poll(next.session, { waitMs: 0 })).toMatchObject({
      blockedBy: "key:tenant",
      estimatedWaitMs: 300,
    });
    await bench.clock.run(299);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(2);
    expect(next.isGranted).toBe(true);
  });

  test("suffice at any fraction of a millisecond, whenever the waiter arrived", async () => {
    const bench = new Bench({ ...HOST, keys: TOKENS });
    await bench.take("a", spend("acme", 10));
    await bench.clock.run(0.75);
    const next = await bench.want("b", spend("acme", 1));
    await bench.clock.run(99);
    await bench.want("c", spend("umbrella", 1));
    expect(next.isGranted).toBe(false);
    // The budget suffices 100 ms after its charge. In whole milliseconds from the arrival that would be 100.75.
    await bench.clock.run(0.5);
    await bench.want("c", spend("umbrella", 1));
    expect(next.isGranted).toBe(true);
  });

  test("host and key are charged together, and `used` settles both", async () => {
    const bench = new Bench({ ...HOST, budgets: { tokens: { limit: 20, perSeconds: 100 } }, keys: TOKENS });
    const token = await bench.take("a", spend("acme", 10));
    const [own, other] = [await bench.want("a", spend("acme", 5)), await bench.want("b", spend("umbrella", 10))];
    expect([own.isGranted, other.isGranted]).toEqual([false, true]);
    await bench.release(token, { used: { tokens: 1 } });
    expect(own.isGranted).toBe(true);
    expect((await bench.want("b", spend("other", 5))).isGranted).toBe(false);
  });

  test("`keys.bucket` limits each bucket, and spares the shared one", async () => {
    const bench = new Bench({ ...HOST, keys: { bucket: { budgets: { calls: { limit: 1, perSeconds: 10 } } } } });
    const waiting = [await bench.want("a"), await bench.want("a"), await bench.want("b"), await bench.want("")];
    expect([...waiting, await bench.want("")].map(({ isGranted }) => isGranted)).toEqual([
      true,
      false,
      true,
      true,
      true,
    ]);
  });

  test("are kept until they are full again, and the host as long", async () => {
    const bench = new Bench({ ...HOST, keys: TOKENS });
    await bench.release(await bench.take("a", spend("acme", 10)));
    const spent = async () =>
      (await bench.memory.peek(["h"]))
        .get("h")
        ?.records.filter(({ kind }) => kind === "budget")
        .map(({ key }) => key);
    expect(await spent()).toEqual(["tokens tenant acme"]);
    await bench.clock.run(900);
    await bench.release(await bench.take("a"));
    expect(await spent()).toEqual(["tokens tenant acme"]);
    await bench.clock.run(200);
    await bench.release(await bench.take("a"));
    expect(await spent()).toEqual([]);
  });

  test("changed limits keep what was spent", async () => {
    const bench = new Bench({ ...HOST, keys: TOKENS });
    await bench.take("a", spend("acme", 10));
    bench.queue.reconfigure({ ...HOST, keys: { tenant: { budgets: { tokens: { limit: 20, perSeconds: 1 } } } } });
    expect((await bench.want("a", spend("acme", 11))).isGranted).toBe(false);
    expect((await bench.want("a", spend("umbrella", 20))).isGranted).toBe(true);
  });
});

describe("keys that the limits can never allow", () => {
  test.each([
    [of("acme", { width: 3 }), "Expected `width` to be at most 2, the slots of `keys.tenant`, got 3"],
    [
      { keys: { tenant: "acme", color: "red" } },
      "Expected `keys.color` to be absent, because the host has no such key (it has `tenant`), got red",
    ],
    [
      { keys: { bucket: "b" } },
      "Expected `keys.bucket` to be absent, because the host has no such key (it has `tenant`), got b",
    ],
    [
      of("acme", { cost: { tokens: 11 } }),
      "Expected `cost.tokens` to be at most 10, the burst of the budget of `keys.tenant`, got 11",
    ],
    [
      of("acme", { cost: { coins: 1 } }),
      "Expected `cost.coins` to be absent, because the host has no such budget (it has `tokens`), got 1",
    ],
    [{}, "Expected `keys.tenant` to be present, because the host requires it, got none"],
    [of(""), "Expected `keys.tenant` to be present, because the host requires it, got none"],
  ])("are refused at once: %j", async (asked, message) => {
    const tenant = { slots: 2, required: true, budgets: { tokens: { limit: 10, perSeconds: 1 } } };
    const bench = new Bench({ ...HOST, keys: { tenant } });
    const refused = bench.ask("a", { ...asked, waitMs: 1 });
    await expect(refused).rejects.toThrow(ImpossibleRequestError);
    await expect(refused).rejects.toMatchObject({ message });
  });

  test("end when the limits change, and others go on", async () => {
    const bench = new Bench({ ...HOST, keys: { tenant: { slots: 3 } } });
    await bench.take("a", of("acme"));
    const [wide, narrow] = [await bench.want("a", of("acme", { width: 3 })), await bench.want("b", of("acme"))];
    bench.queue.reconfigure({ ...HOST, keys: TENANT });
    await drained();
    expect([wide.last, narrow.isGranted]).toMatchObject([{ result: "timeout", reason: "impossible" }, true]);
  });
});

test("above 10,000 values with spent budgets, further ones share one state", async () => {
  const bench = new Bench({
    ...HOST,
    maxSlotPerHost: 1_000,
    keys: { tenant: { budgets: { calls: { limit: 2, perSeconds: 3_600 } } } },
  });
  for (let value = 0; value < 10_000; value++) await bench.release(await bench.take("a", of(`t${value}`)));
  const fresh = [await bench.want("a", of("x")), await bench.want("a", of("y")), await bench.want("a", of("z"))];
  expect(fresh.map(({ isGranted }) => isGranted)).toEqual([true, true, false]);
  expect((await bench.want("a", of("t7"))).isGranted).toBe(true);
  expect(bench.ofType("shared-state").map(({ key }) => key)).toEqual(["tenant", "tenant"]);
});

test("a request without a required key gets no slot, also if its first call does not wait", async () => {
  const bench = new Bench({ ...HOST, keys: { tenant: { slots: 2, required: true } } });
  await bench.take("a", of("acme"));
  await expect(bench.ask("b")).rejects.toThrow(ImpossibleRequestError);
  await expect(bench.ask("b", { waitMs: 10 })).rejects.toThrow(ImpossibleRequestError);
});

describe("a key in shadow mode", () => {
  const TRIED = { tenant: { slots: 1, shadow: true } } as const;

  test("is counted, and no request waits for its slots or is refused", async () => {
    const bench = new Bench({ ...HOST, keys: { tenant: { ...TRIED.tenant, required: true } } });
    await bench.take("a", of("acme"));
    expect(bench.ofType("shadow-short")).toEqual([]);
    await bench.take("b", of("acme"));
    await bench.take("c", of("acme", { width: 3 }));
    await bench.take("d", of("umbrella"));
    await bench.take("e");
    expect(bench.ofType("shadow-short").map(({ bucket, limit }) => `${bucket} ${limit}`)).toEqual([
      "b key:tenant",
      "c key:tenant",
      "e key:tenant",
    ]);
  });

  test("has no line: a request of a full bucket does not hold back others with its value", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerIp: 1, keys: TRIED });
    await bench.take("a", of("acme"));
    const [behind, other] = [await bench.want("a", of("acme")), await bench.want("b", of("acme"))];
    expect([behind.isGranted, other.isGranted]).toEqual([false, true]);
    expect(await bench.queue.poll(behind.session, { waitMs: 0 })).toMatchObject({ blockedBy: "ip-limit" });
  });

  test("so has a key whose budgets are all in shadow mode", async () => {
    const budgets = { calls: { limit: 1, perSeconds: 60, shadow: true } };
    const bench = new Bench({ ...HOST, maxSlotPerIp: 1, keys: { tenant: { budgets } } });
    await bench.take("a", of("acme"));
    const [behind, other] = [await bench.want("a", of("acme")), await bench.want("b", of("acme"))];
    expect([behind.isGranted, other.isGranted]).toEqual([false, true]);
    expect(bench.ofType("shadow-short")).toMatchObject([{ bucket: "b", limit: "key:tenant" }]);
  });

  test("covers its budgets, also those of `for`, unless they say otherwise, and counts a grant once", async () => {
    const calls = { limit: 1, perSeconds: 60 };
    const own = { acme: { slots: 2 }, strict: { budgets: { calls: { ...calls, shadow: false } } } };
    const bench = new Bench({ ...HOST, keys: { tenant: { ...TRIED.tenant, budgets: { calls }, for: own } } });
    for (const value of ["x", "x", "acme", "acme", "strict"]) await bench.take(value, of(value));
    expect(bench.ofType("shadow-short").map(({ bucket }) => bucket)).toEqual(["x", "acme"]);
    const held = await bench.want("strict", of("strict"));
    expect(await bench.queue.poll(held.session, { waitMs: 0 })).toMatchObject({ blockedBy: "key:tenant" });
  });

  test("counts what is held when it is enforced", async () => {
    const bench = new Bench({ ...HOST, keys: TRIED });
    const held = [await bench.take("a", of("acme")), await bench.take("b", of("acme"))];
    bench.queue.reconfigure({ ...HOST, keys: { tenant: { slots: 1 } } });
    const next = await bench.want("c", of("acme"));
    await bench.release(held[0] as string);
    expect(next.isGranted).toBe(false);
    await bench.release(held[1] as string);
    expect(next.isGranted).toBe(true);
  });

  test("leaves the weighted scheduler on", async () => {
    const isConstrained = (keys: object) => isConstrainedBy(constraintsOf({ keys } as never));
    expect(isConstrained(TRIED)).toBe(false);
    expect(isConstrained({ tenant: { budgets: { calls: { limit: 1, perSeconds: 1, shadow: true } } } })).toBe(false);
    expect(isConstrained(TENANT)).toBe(true);
    expect(isConstrained({ tenant: { required: true } })).toBe(true);
    expect(isConstrained({ tenant: { ...TRIED.tenant, required: true } })).toBe(false);
    const budgets = { calls: { limit: 1, perSeconds: 1, shadow: false } };
    expect(isConstrained({ tenant: { ...TRIED.tenant, for: { acme: { budgets } } } })).toBe(true);
  });
});
