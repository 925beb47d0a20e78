import { expect, test } from "vitest";
import { Script } from "./script.ts";

const CLASSES = { chat: { weight: 3 }, batch: { ceiling: 2 } };

test("HIST1: a class above its ceiling is found, by slots and by widths", () => {
  const script = new Script({ fairQueue: { maxSlotPerHost: 9, classes: CLASSES } });
  for (const at of [10, 11]) script.session({ class: "batch" }).granted(0, at, { limit: 9 }).release(100);
  for (const at of [12, 13, 14]) script.session({ class: "chat" }).granted(0, at, { limit: 9 }).release(100);
  expect(script.broken()).toEqual([]);
  script.session({ class: "batch" }).granted(0, 15, { limit: 9 }).release(100);
  expect(script.broken()).toEqual(["HIST1"]);
});

test("HIST1: the ceiling of `default` counts requests that name no class", () => {
  const script = new Script({ fairQueue: { maxSlotPerHost: 9, classes: { default: { ceiling: 1 } } } });
  script.session().granted(0, 10, { limit: 9 }).release(100);
  script.session({ class: "default" }).granted(0, 11, { limit: 9 }).release(100);
  expect(script.broken()).toEqual(["HIST1"]);
});

test("HIST6: a client waits beside a free slot, unless its class is at its ceiling", () => {
  const waiting = (named: string) => {
    const script = new Script({ promptMs: 100, fairQueue: { maxSlotPerHost: 9, classes: CLASSES } });
    for (const at of [10, 11]) script.session({ class: "batch" }).granted(0, at, { limit: 9 }).release(9_000);
    script.session({ class: named }).pending(20, 4_000).pending(4_001, 8_000);
    return script.broken();
  };
  expect(waiting("batch")).toEqual([]);
  expect(waiting("chat")).toEqual(["HIST6"]);
});

/** One slot, 2 sessions of one bucket: the one that began later is granted first. */
function overtaking(older: string, younger: string): Script {
  const script = new Script({ fairQueue: { maxSlotPerHost: 1, classes: { chat: {}, batch: {} } } });
  script.session({ bucket: "x" }).granted(0, 1, { fence: 1, limit: 1 }).release(9_000);
  const waiter = script.session({ bucket: "b", class: older });
  waiter.pending(10, 6_000).granted(6_001, 17_100, { fence: 9, limit: 1 }).release(17_200);
  const second = script.session({ bucket: "b", class: younger });
  second.pending(2_000, 8_000).granted(8_001, 9_010, { fence: 2, limit: 1 }).release(17_000);
  return script;
}

test("HIST7: waiters of one bucket have an order inside their class only", () => {
  expect(overtaking("chat", "chat").broken()).toEqual(["HIST7"]);
  expect(overtaking("chat", "batch").broken()).toEqual([]);
});

/** Lines that always have two waiters share one slot; `turns` says which line gets it, each time for 100 ms. */
function shared(turns: string, lines: { readonly [turn: string]: object }, classes: object): Script {
  const script = new Script({ fairQueue: { maxSlotPerHost: 1, classes: { ...classes } } });
  const queues = new Map(Object.keys(lines).map((turn) => [turn, [] as ReturnType<Script["session"]>[]]));
  const waiting = new Map<object, number>();
  const arrive = (turn: string, at: number) => {
    const session = script.session(lines[turn]);
    waiting.set(session, at);
    queues.get(turn)?.push(session);
  };
  for (const turn of Object.keys(lines)) for (let count = 0; count < 2; count++) arrive(turn, 0);
  let at = 100;
  for (const turn of turns) {
    const session = queues.get(turn)?.shift();
    session?.granted(waiting.get(session) ?? 0, at, { limit: 1 }).release(at + 98);
    arrive(turn, at + 1);
    at += 100;
  }
  for (const queue of queues.values()) for (const session of queue) session.pending(waiting.get(session) ?? 0, at);
  return script;
}

test("HIST8: classes get slot time by their weights, however many buckets they have", () => {
  const lines = {
    a: { class: "chat", bucket: "x" },
    b: { class: "batch", bucket: "x" },
    c: { class: "batch", bucket: "y" },
  };
  expect(shared("abac".repeat(40), lines, { chat: {}, batch: {} }).broken()).toEqual([]);
  expect(shared("abc".repeat(60), lines, { chat: {}, batch: {} }).broken()).toEqual(["HIST8"]);
  expect(shared("abc".repeat(60), lines, { chat: {}, batch: { weight: 2 } }).broken()).toEqual([]);
});

test("HIST8: the buckets of one class get equal shares of what the class has", () => {
  const lines = { a: { class: "chat" }, b: { class: "batch", bucket: "x" }, c: { class: "batch", bucket: "y" } };
  expect(shared("abababac".repeat(20), lines, { chat: {}, batch: {} }).broken()).toEqual(["HIST8"]);
});

test("HIST8: a class with a floor or a ceiling is not compared with others", () => {
  const lines = { a: { class: "chat" }, b: { class: "batch" } };
  expect(shared("aaab".repeat(40), lines, { chat: {}, batch: {} }).broken()).toEqual(["HIST8"]);
  expect(shared("aaab".repeat(40), lines, { chat: { floor: 1 }, batch: {} }).broken()).toEqual([]);
});
