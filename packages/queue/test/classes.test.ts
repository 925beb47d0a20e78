import { ImpossibleRequestError } from "@slotkeeper/queue";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

const HOST = {
  maxSlotPerHost: 10,
  maxSlotPerIp: -1,
  maxWaitersPerIp: -1,
  maxWaitMs: 600_000,
  zombieTimeoutSeconds: 300,
} as const;
const chat = (more: object = {}) => ({ class: "chat", ...more });
const batch = (more: object = {}) => ({ class: "batch", ...more });

function granted(sessions: readonly Followed[]): number {
  return sessions.filter(({ isGranted }) => isGranted).length;
}

async function wants(bench: Bench, count: number, bucket: string, more: object): Promise<Followed[]> {
  const sessions: Followed[] = [];
  for (let one = 0; one < count; one++) sessions.push(await bench.want(bucket, more));
  return sessions;
}

/** Holds every slot for 100 ms, over and over, and returns how often each class was granted. */
async function rounds(bench: Bench, sessions: readonly Followed[]): Promise<void> {
  const done = new Set<Followed>();
  for (let round = 0; round < 400 && done.size < sessions.length; round++) {
    await bench.clock.run(100);
    for (const one of sessions)
      if (one.last?.result === "granted" && !done.has(one)) {
        done.add(one);
        await bench.release(one.last.slotToken);
      }
    await drained();
  }
}

describe("shares of classes", () => {
  test("each class gets slots by its weight, however many buckets it has", async () => {
    const bench = new Bench({ ...HOST, classes: { chat: { weight: 3 }, batch: { weight: 1 } }, maxSlotPerHost: 8 });
    const held = [];
    for (let slot = 0; slot < 8; slot++) held.push(await bench.take("x"));
    const batches = [];
    for (let bucket = 0; bucket < 12; bucket++) batches.push(...(await wants(bench, 2, `b${bucket}`, batch())));
    const chats = await wants(bench, 24, "c", chat());
    for (const token of held) await bench.release(token);
    expect([granted(chats), granted(batches)]).toEqual([6, 2]);
  });

  test("requests without a class have the default class of weight 1", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 4, classes: { chat: { weight: 3 } } });
    const held = [];
    for (let slot = 0; slot < 4; slot++) held.push(await bench.take("x", chat()));
    const [plain, named] = [await wants(bench, 4, "a", {}), await wants(bench, 4, "a", { class: "default" })];
    const chats = await wants(bench, 8, "c", chat());
    for (const token of held) await bench.release(token);
    expect([granted([...plain, ...named]), granted(chats)]).toEqual([1, 3]);
  });

  test("a floor is reached although the weight gives less, as slots are handed over", async () => {
    const bench = new Bench({
      ...HOST,
      classes: { chat: { weight: 0.01, floor: 4 }, batch: { weight: 100 } },
    });
    const held = [];
    for (let slot = 0; slot < 10; slot++) held.push(await bench.take("x", batch()));
    const batches = await wants(bench, 20, "b", batch());
    const chats = await wants(bench, 20, "c", chat());
    for (const token of held) await bench.release(token);
    expect([granted(chats), granted(batches)]).toEqual([4, 6]);
  });

  test("a class never has more than its ceiling, and others get the slots that it may not have", async () => {
    const bench = new Bench({ ...HOST, classes: { chat: {}, batch: { weight: 9, ceiling: 3 } } });
    const batches = await wants(bench, 8, "b", batch());
    expect(granted(batches)).toBe(3);
    const waiting = batches.find(({ isGranted }) => !isGranted) as Followed;
    expect(await bench.queue.poll(waiting.session, { waitMs: 0 })).toMatchObject({
      blockedBy: "class",
      estimatedWaitMs: undefined,
    });
    expect(granted(await wants(bench, 8, "c", chat()))).toBe(7);
  });

  test("a class that returns gets its share, and not what it left unused", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 4, classes: { chat: {}, batch: {} } });
    await rounds(bench, await wants(bench, 80, "b", batch()));
    const held = [];
    for (let slot = 0; slot < 4; slot++) held.push(await bench.take("x", batch()));
    const batches = await wants(bench, 8, "b", batch());
    const chats = await wants(bench, 8, "c", chat());
    for (const token of held) await bench.release(token);
    expect([granted(chats), granted(batches)]).toEqual([2, 2]);
  });
});

describe("inside a class", () => {
  test("buckets share the slots of their class, and not those of the host", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 8, classes: { chat: {}, batch: {} } });
    const held = [];
    for (let slot = 0; slot < 8; slot++) held.push(await bench.take("x"));
    const alone = await wants(bench, 10, "a", chat());
    const shared = [await wants(bench, 10, "b", batch()), await wants(bench, 10, "c", batch())];
    for (const token of held) await bench.release(token);
    expect([granted(alone), ...shared.map(granted)]).toEqual([4, 2, 2]);
  });

  test("the limit of a bucket counts its slots in all classes", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerIp: 2, classes: { chat: {}, batch: {} } });
    const held = [await bench.take("a", chat()), await bench.take("a", batch())];
    const third = await bench.want("a", chat());
    expect(third.isGranted).toBe(false);
    expect(await bench.queue.poll(third.session, { waitMs: 0 })).toMatchObject({ blockedBy: "ip-limit" });
    await bench.release(held[1] as string);
    expect(third.isGranted).toBe(true);
  });

  test("the cooldown of a bucket holds in all classes", async () => {
    const bench = new Bench({ ...HOST, ipCooldownSeconds: 5, classes: { chat: {}, batch: {} } });
    await bench.release(await bench.take("a", chat()));
    const other = await bench.want("a", batch());
    expect(other.isGranted).toBe(false);
    await bench.clock.run(5_100);
    expect(other.isGranted).toBe(true);
  });

  test("each class has a waiter pool of its own", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 1, maxWaitersPerHost: 2, classes: { chat: {}, batch: {} } });
    const token = await bench.take("x");
    await wants(bench, 20, "b", batch());
    const one = await bench.want("c", chat());
    expect(await bench.queue.poll(one.session, { waitMs: 0 })).toMatchObject({ blockedBy: "host-limit" });
    await bench.release(token);
  });
});

describe("the waiter pool of a class", () => {
  const SMALL = { ...HOST, maxSlotPerHost: 4, maxSlotPerIp: 1, maxWaitersPerHost: 1 } as const;
  const placesOf = (bench: Bench, bucket: string) =>
    bench.queue.dump().hosts[0]?.buckets.find((one) => one.bucket === bucket)?.places;

  test("that buckets at their limit fill does not hide one that could be granted, whichever classes come before it", async () => {
    const bench = new Bench({ ...SMALL, classes: { alpha: {}, batch: {} } });
    await bench.take("z", { class: "alpha" });
    await bench.take("a", batch());
    const stuck = await bench.want("a", batch());
    const other = await bench.want("b", batch());
    expect([stuck.isGranted, other.isGranted]).toEqual([false, true]);
  });

  test("keeps its waiters while the class is at its ceiling, because no other could be granted", async () => {
    const bench = new Bench({ ...SMALL, classes: { batch: { ceiling: 1 } } });
    const held = await bench.take("a", batch());
    const stuck = await bench.want("a", batch());
    const other = await bench.want("b", batch());
    expect([placesOf(bench, "a"), placesOf(bench, "b")]).toEqual([1, 0]);
    await bench.release(held);
    expect([stuck.isGranted, other.isGranted]).toEqual([true, false]);
  });

  test("gives the place of a waiter whose key has lost its room to one that could be granted", async () => {
    const bench = new Bench({
      ...SMALL,
      maxSlotPerHost: 2,
      keys: { tenant: { slots: 1 } },
      classes: { batch: {}, chat: {} },
    });
    const held = [await bench.take("x", batch()), await bench.take("y", chat())];
    const acme = { keys: { tenant: "acme" } };
    const [one, two] = [await bench.want("a", batch(acme)), await bench.want("b", chat(acme))];
    await bench.release(held[0] as string);
    // Both were through their key. One has its only slot now, so the other steps back.
    expect([one, two].filter(({ isGranted }) => isGranted)).toHaveLength(1);
    const behind = await bench.want("c", one.isGranted ? chat() : batch());
    await bench.release(held[1] as string);
    expect(behind.isGranted).toBe(true);
  });
});

describe("a wide request of a class with a ceiling", () => {
  test("holds back its class until it fits, and no other class", async () => {
    const bench = new Bench({ ...HOST, classes: { chat: {}, batch: { ceiling: 4 } } });
    const held = [await bench.take("a", batch({ width: 2 })), await bench.take("b", batch())];
    const wide = await bench.want("w", batch({ width: 3 }));
    const narrow = await bench.want("n", batch());
    expect([wide.isGranted, narrow.isGranted]).toEqual([false, false]);
    expect(await bench.queue.poll(narrow.session, { waitMs: 0 })).toMatchObject({ blockedBy: "class" });
    expect((await bench.want("c", chat())).isGranted).toBe(true);
    await bench.release(held[0] as string);
    expect([wide.isGranted, narrow.isGranted]).toEqual([true, false]);
  });

  test("lets its class go on when its client has been away for collectMs, or its deadline has passed", async () => {
    for (const leaves of ["away", "deadline"]) {
      const bench = new Bench({
        ...HOST,
        collectMs: 500,
        pollWindowMs: 1_000,
        maxWaitMs: 8_000,
        classes: { batch: { ceiling: 4 } },
      });
      await bench.take("a", batch({ width: 3 }));
      const wide = await bench.want("w", batch({ width: 2 }));
      await bench.clock.run(3_000);
      const narrow = await bench.want("n", batch());
      expect(narrow.isGranted).toBe(false);
      if (leaves === "away") wide.isStopped = true;
      await bench.clock.run(leaves === "away" ? 2_000 : 5_100);
      expect([wide.isGranted, narrow.isGranted]).toEqual([false, true]);
    }
  });
});

describe("keys and classes", () => {
  test("the oldest of each class waits at a key, and the room goes to the class whose turn it is", async () => {
    const bench = new Bench({ ...HOST, keys: { tenant: { slots: 2 } }, classes: { chat: {}, batch: {} } });
    const acme = { keys: { tenant: "acme" } };
    const held = [await bench.take("a", chat(acme)), await bench.take("a", batch(acme))];
    const wide = await bench.want("w", batch({ ...acme, width: 2 }));
    const narrow = await bench.want("n", chat(acme));
    const behind = await bench.want("m", batch(acme));
    await bench.release(held[0] as string);
    expect([wide, narrow, behind].map(({ isGranted }) => isGranted)).toEqual([false, true, false]);
  });
});

describe("orders with classes", () => {
  test("first come, first served applies inside a class", async () => {
    const bench = new Bench({ ...HOST, order: "fifo", maxSlotPerHost: 2, classes: { chat: {}, batch: {} } });
    const held = [await bench.take("x"), await bench.take("x")];
    const old = await wants(bench, 3, "a", batch());
    const young = await wants(bench, 3, "c", chat());
    const last = await bench.want("b", batch());
    for (const token of held) await bench.release(token);
    expect([granted(old), granted(young), last.isGranted]).toEqual([1, 1, false]);
    expect(old[0]?.isGranted).toBe(true);
  });

  test("by a budget, classes are charged as buckets are", async () => {
    const bench = new Bench({
      ...HOST,
      maxSlotPerHost: 1,
      order: "budget:tokens",
      budgets: { tokens: { limit: 1e9, perSeconds: 1 } },
      classes: { chat: {}, batch: {} },
    });
    const token = await bench.take("x");
    const dear = await wants(bench, 10, "a", batch({ cost: { tokens: 300 } }));
    const cheap = await wants(bench, 30, "c", chat({ cost: { tokens: 100 } }));
    await bench.release(token);
    for (let grant = 0; grant < 20; grant++) {
      const one = [...dear, ...cheap].find(({ last }) => last?.result === "granted" && last.slotToken !== "");
      if (one?.last?.result !== "granted") break;
      await bench.release(one.last.slotToken);
      one.last = { ...one.last, slotToken: "" };
      await drained();
    }
    expect(granted(cheap) / granted(dear)).toBeGreaterThan(2);
  });
});

describe("changes of the limits", () => {
  test("a class whose weight is raised does not wait for what it used at its small weight", async () => {
    const one = { ...HOST, maxSlotPerHost: 1 };
    const bench = new Bench({ ...one, classes: { chat: { weight: 0.001 }, batch: {} } });
    const token = await bench.take("x", chat());
    const [chats, batches] = [await wants(bench, 30, "c", chat()), await wants(bench, 30, "b", batch())];
    await bench.clock.run(1_000);
    await bench.release(token);
    bench.queue.reconfigure({ ...one, classes: { chat: {}, batch: {} } });
    for (let grant = 0; grant < 30; grant++) {
      await bench.clock.run(100);
      const held = [...chats, ...batches].find(({ last }) => last?.result === "granted" && last.slotToken !== "");
      if (held?.last?.result !== "granted") break;
      await bench.release(held.last.slotToken);
      held.last = { ...held.last, slotToken: "" };
      await drained();
    }
    expect(granted(chats)).toBeGreaterThanOrEqual(5);
  });

  test("classes that appear or disappear while requests wait lose no request", async () => {
    const bench = new Bench({ ...HOST, maxSlotPerHost: 2 });
    const held = [await bench.take("x"), await bench.take("x")];
    const plain = await wants(bench, 3, "a", {});
    bench.queue.reconfigure({ ...HOST, maxSlotPerHost: 2, classes: { chat: { weight: 2 } } });
    await drained();
    const chats = await wants(bench, 3, "c", chat());
    for (const token of held) await bench.release(token);
    expect(granted([...plain, ...chats])).toBe(2);
    bench.queue.reconfigure({ ...HOST, maxSlotPerHost: 2 });
    await rounds(bench, [...plain, ...chats]);
    expect(granted([...plain, ...chats])).toBe(6);
    expect(await bench.take("z")).toBeDefined();
  });

  test("a request above a lowered ceiling ends, and one above the ceiling is refused at once", async () => {
    const bench = new Bench({ ...HOST, classes: { batch: { ceiling: 4 } } });
    await bench.take("a", batch({ width: 4 }));
    const wide = await bench.want("w", batch({ width: 4 }));
    await expect(bench.ask("w", batch({ width: 5 }))).rejects.toThrow(ImpossibleRequestError);
    bench.queue.reconfigure({ ...HOST, classes: { batch: { ceiling: 3 } } });
    await bench.clock.run(2_000);
    expect(wide.last).toMatchObject({ result: "timeout", reason: "impossible" });
  });

  test("a class that the host does not have is refused", async () => {
    for (const config of [HOST, { ...HOST, classes: { chat: {} } }])
      await expect(new Bench(config).ask("w", batch())).rejects.toThrow("no such class");
  });
});

test("a class may have the name of a method of every object", async () => {
  const bench = new Bench({ ...HOST, maxSlotPerHost: 1, classes: { constructor: { weight: 2 } } });
  const token = await bench.take("a", { class: "constructor" });
  const next = await bench.want("b", { class: "constructor" });
  await bench.clock.run(100);
  await bench.release(token);
  expect(next.isGranted).toBe(true);
  expect(JSON.stringify(await bench.snapshot())).toContain('"name":"constructor"');
});
