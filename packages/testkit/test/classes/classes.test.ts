import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type Host, memoryHost, referenceHost } from "@slotkeeper/testkit/reference";
import { describe, expect, test } from "vitest";
import { ClassHost } from "./class-host.ts";

const HOSTS: readonly (readonly [string, () => Host])[] = [
  ["the reference book", referenceHost],
  ["the engine", () => memoryHost()],
];

/** Four slots of a class that then wants no more, so that others wait. */
async function full(host: ClassHost, name: string, count: number): Promise<string[]> {
  return host.arrive({ class: name, bucket: "z" }, count);
}

describe.each(HOSTS)("classes of %s", (_, newHost) => {
  const hostOf = (config: FairQueueConfig) => new ClassHost(newHost(), config);

  test("classes get slots by their weights, whatever the number of their buckets", async () => {
    const host = hostOf({ maxSlotPerHost: 6, classes: { chat: { weight: 2 }, batch: {} } });
    const busy = await full(host, "default", 6);
    for (const bucket of ["a", "b", "c", "d"]) await host.arrive({ class: "batch", bucket }, 3);
    await host.arrive({ class: "chat", bucket: "a" }, 9);
    await host.release(...busy);
    expect(host.held).toEqual({ chat: 4, batch: 2 });
  });

  test("a class alone gets all slots, and no more than its ceiling", async () => {
    const classes = { chat: { weight: 4 }, batch: { ceiling: 2 } };
    const chat = hostOf({ maxSlotPerHost: 5, classes });
    await chat.arrive({ class: "chat" }, 9);
    expect(chat.held).toEqual({ chat: 5 });
    const batch = hostOf({ maxSlotPerHost: 5, classes });
    await batch.arrive({ class: "batch" }, 9);
    expect(batch.held).toEqual({ batch: 2 });
  });

  test("slots that a class may not have go to the others", async () => {
    const host = hostOf({ maxSlotPerHost: 5, classes: { chat: { weight: 9, ceiling: 2 }, batch: {} } });
    await host.arrive({ class: "chat" }, 9);
    await host.arrive({ class: "batch" }, 9);
    expect(host.held).toEqual({ chat: 2, batch: 3 });
  });

  test("a light class gets its floor from a heavy one while slots are short", async () => {
    const host = hostOf({ maxSlotPerHost: 4, classes: { chat: { floor: 2 }, batch: { weight: 9 } } });
    const busy = await host.arrive({ class: "batch" }, 12);
    await host.arrive({ class: "chat" }, 4);
    for (const session of busy.slice(0, 4)) {
      host.now += 10;
      await host.release(session);
    }
    expect(host.held).toEqual({ chat: 2, batch: 2 });
  });

  test("floors do not count while a budget is short and slots are not", async () => {
    const budgets = { tokens: { limit: 1, perSeconds: 1 } };
    const classes = { chat: { floor: 3 }, batch: {} };
    const host = hostOf({ maxSlotPerHost: 8, budgets, classes });
    await host.arrive({ class: "chat" }, 9);
    await host.arrive({ class: "batch" }, 9);
    for (let second = 0; second < 3; second++) {
      host.now += 1_001;
      await host.decide([]);
    }
    expect(host.held).toEqual({ chat: 2, batch: 2 });
  });

  test("inside a class, buckets share what the class has", async () => {
    const host = hostOf({ maxSlotPerHost: 6, classes: { chat: {}, batch: {} } });
    const busy = await full(host, "default", 6);
    await host.arrive({ class: "chat", bucket: "a" }, 9);
    const one = await host.arrive({ class: "chat", bucket: "b" }, 1);
    await host.arrive({ class: "batch", bucket: "a" }, 9);
    await host.release(...busy);
    expect(host.held).toEqual({ chat: 3, batch: 3 });
    expect(host.holding).toEqual(expect.arrayContaining(one));
  });

  test("the limit of a bucket counts its slots of all classes", async () => {
    const host = hostOf({ maxSlotPerHost: 6, maxSlotPerIp: 2, classes: { chat: {}, batch: {} } });
    for (const name of ["chat", "batch", "default"]) await host.arrive({ class: name, bucket: "a" }, 2);
    expect(host.holding).toHaveLength(2);
  });

  test("a class that returns starts at the meter, and does not get every slot", async () => {
    const host = hostOf({ maxSlotPerHost: 1, classes: { chat: {}, batch: {} } });
    let [running] = await host.arrive({ class: "batch" }, 30);
    for (let turn = 0; turn < 20; turn++) {
      host.now += 100;
      await host.release(running as string);
      running = host.granted.at(-1);
    }
    await host.arrive({ class: "chat" }, 30);
    const before = host.granted.length;
    for (let turn = 0; turn < 8; turn++) {
      host.now += 100;
      await host.release(running as string);
      running = host.granted.at(-1);
    }
    const classes = host.granted.slice(before).map((session) => host.classOf(session));
    expect(classes.filter((name) => name === "chat")).toHaveLength(4);
  });

  test("at a key, each class has its own line: a class whose front must wait does not hold back another", async () => {
    const keys = { tenant: { slots: 3 } };
    const host = hostOf({ maxSlotPerHost: 6, keys, classes: { chat: {}, batch: {} } });
    const asking = { keys: { tenant: "t" } };
    await host.arrive({ ...asking, class: "batch" }, 2);
    await host.arrive({ ...asking, class: "batch", width: 2 });
    const [chat] = await host.arrive({ ...asking, class: "chat" });
    await host.arrive({ ...asking, class: "batch" });
    expect(host.granted).toContain(chat);
    expect(host.held).toEqual({ batch: 2, chat: 1 });
  });

  test("a request that waits for the ceiling of its class holds back its class only", async () => {
    const host = hostOf({ maxSlotPerHost: 8, classes: { chat: { ceiling: 3 }, batch: {} } });
    await host.arrive({ class: "chat", bucket: "a" }, 2);
    const [wide] = await host.arrive({ class: "chat", bucket: "b", width: 2 });
    const [narrow] = await host.arrive({ class: "chat", bucket: "a" });
    await host.arrive({ class: "batch" }, 3);
    expect(host.held).toEqual({ chat: 2, batch: 3 });
    expect(host.first).toBeUndefined();
    await host.release(host.granted[0] as string);
    expect(host.granted).toContain(wide);
    expect(host.granted).not.toContain(narrow);
  });

  test("by a budget, classes get equal charges by weight", async () => {
    const budgets = { tokens: { limit: 100, perSeconds: 1_000 } };
    const host = hostOf({
      maxSlotPerHost: 1,
      budgets,
      order: "budget:tokens",
      classes: { chat: { weight: 3 }, batch: {} },
    });
    let [running] = await host.arrive({ class: "default" });
    await host.arrive({ class: "chat", cost: { tokens: 2 } }, 20);
    await host.arrive({ class: "batch", cost: { tokens: 2 } }, 20);
    for (let turn = 0; turn < 16; turn++) {
      host.now += 1;
      await host.release(running as string);
      running = host.granted.at(-1);
    }
    const granted = host.granted.slice(1).map((session) => host.classOf(session));
    expect(granted.filter((name) => name === "chat")).toHaveLength(12);
  });

  test("a request that its class can never have is impossible, also after a change of the ceiling", async () => {
    const host = hostOf({ maxSlotPerHost: 4, classes: { chat: { ceiling: 3 }, batch: {} } });
    expect(await host.ask({ class: "chat", width: 4 })).toMatchObject({ kind: "impossible", field: "width", most: 3 });
    expect(await host.ask({ class: "other" })).toMatchObject({ kind: "impossible", field: "class", value: "other" });
    await full(host, "batch", 4);
    const [session] = await host.arrive({ class: "chat", width: 3 });
    await host.configure({ classes: { chat: { ceiling: 2 } } });
    expect(host.ends).toEqual({ [session as string]: "impossible" });
  });

  test("requests of a class that the limits no longer have go on, as a class of weight 1", async () => {
    const host = hostOf({ maxSlotPerHost: 4, classes: { chat: { weight: 3 }, batch: { ceiling: 1 } } });
    const busy = await full(host, "default", 4);
    await host.arrive({ class: "chat" }, 4);
    await host.arrive({ class: "batch" }, 4);
    await host.configure({ classes: { chat: { weight: 1 } } });
    await host.release(...busy);
    expect(host.held).toEqual({ chat: 2, batch: 2 });
  });

  test("each class has its own pool of waiters", async () => {
    const host = hostOf({ maxSlotPerHost: 1, maxWaitersPerHost: 2, classes: { chat: {}, batch: {} } });
    const [running] = await host.arrive({ class: "batch" });
    await host.arrive({ class: "batch" }, 5);
    const [chat] = await host.arrive({ class: "chat" });
    host.now += 10;
    await host.release(running as string);
    expect(host.granted.at(-1)).toBe(chat);
  });
});

test("a host without classes has one, and refuses the names of others", async () => {
  const host = new ClassHost(referenceHost(), { maxSlotPerHost: 2 });
  expect(await host.ask({ class: "chat" })).toMatchObject({ kind: "impossible", field: "class" });
  await host.arrive({ class: "default" }, 3);
  expect(host.held).toEqual({ default: 2 });
});
