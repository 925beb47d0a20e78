import { expect, test } from "vitest";
import { Script } from "./script.ts";

/** The slot is used until 9 s. The older session of a bucket waits from 0 on, and a younger one from 2 s on. */
function overtaking({ instances = 1, olderPolls = true, twice = false, tenants = ["", ""] } = {}): Script {
  const keys = tenants[0] === "" ? {} : { keys: { tenant: { slots: 1 } } };
  const script = new Script({ instances, fairQueue: { maxSlotPerHost: 1, ...keys } });
  const [olderKeys, youngerKeys] = tenants.map((tenant) => (tenant === "" ? {} : { keys: { tenant } }));
  script.session({ bucket: "x" }).granted(0, 1, { fence: 1, limit: 1 }).release(9_000);
  const older = script.session({ bucket: "b", ...olderKeys });
  const at = twice ? 24_100 : 17_100;
  older
    .pending(10, 6_000)
    .granted(olderPolls ? 6_001 : at - 100, at, { fence: 9, limit: 1 })
    .release(at + 100);
  const younger = script.session({ bucket: "b", ...youngerKeys });
  younger.pending(2_000, 8_000).granted(8_001, 9_010, { fence: 2, limit: 1 }).release(17_000);
  if (!twice) return script;
  const third = script.session({ bucket: "b" });
  third.pending(3_000, 9_000).pending(9_001, 15_001).granted(15_002, 17_010, { fence: 3, limit: 1 }).release(24_000);
  return script;
}

test("HIST7: a younger session of the bucket that is granted before an older one with an open poll is found", () => {
  expect(overtaking().broken()).toEqual(["HIST7"]);
  expect(overtaking({ olderPolls: false }).broken()).toEqual([]);
  expect(overtaking().fault("delay", 8_500, 8_600).broken()).toEqual([]);
});

test("HIST7: at a host with keys, only requests with the same keys have an order", () => {
  expect(overtaking({ tenants: ["acme", "acme"] }).broken()).toEqual(["HIST7"]);
  expect(overtaking({ tenants: ["acme", "other"] }).broken()).toEqual([]);
});

test("HIST7: in a fleet one offer may lapse, but a session is not overtaken again and again", () => {
  expect(overtaking({ instances: 3 }).broken()).toEqual([]);
  expect(overtaking({ instances: 3, twice: true }).broken()).toEqual(["HIST7"]);
});

test("HIST7: sessions of different buckets, and sessions that began at the same time, have no order", () => {
  const script = new Script({ fairQueue: { maxSlotPerHost: 1 } });
  script.session({ bucket: "x" }).granted(0, 1, { fence: 1, limit: 1 }).release(5_000);
  script.session({ bucket: "b" }).granted(10, 5_030, { fence: 3, limit: 1 }).release(5_040);
  script.session({ bucket: "b" }).granted(500, 5_010, { fence: 2, limit: 1 }).release(5_020);
  script.session({ bucket: "c" }).granted(3_000, 5_050, { fence: 4, limit: 1 }).release(5_060);
  expect(script.broken()).toEqual([]);
});

/** Two buckets that always have two waiters share one slot; `turns` says which bucket gets it, each time for 100 ms. */
function shared(turns: string, more: object = {}): Script {
  const script = new Script({ fairQueue: { maxSlotPerHost: 1, ...more } });
  const queues = new Map(["a", "b"].map((bucket) => [bucket, [] as ReturnType<Script["session"]>[]]));
  const waiting = new Map<object, number>();
  const arrive = (bucket: string, at: number) => {
    const session = script.session({ bucket });
    waiting.set(session, at);
    queues.get(bucket)?.push(session);
  };
  for (const bucket of ["a", "a", "b", "b"]) arrive(bucket, 0);
  let at = 100;
  for (const bucket of turns) {
    const session = queues.get(bucket)?.shift();
    if (session === undefined) throw new Error(`Expected turns of a and b, got ${bucket}`);
    session.granted(waiting.get(session) ?? 0, at, { limit: 1 }).release(at + 98);
    arrive(bucket, at + 1);
    at += 100;
  }
  for (const queue of queues.values()) for (const session of queue) session.pending(waiting.get(session) ?? 0, at);
  return script;
}

test("HIST8: two buckets in turns are within the bound; one that gets every slot is not", () => {
  expect(shared("ab".repeat(50)).broken()).toEqual([]);
  expect(shared("aabb".repeat(25)).broken()).toEqual([]);
  expect(shared("aaab".repeat(25)).broken()).toEqual(["HIST8"]);
});

test("HIST8: weights change the bound, and an order that promises no shares is not judged", () => {
  const weights = { weights: { a: 3 } };
  expect(shared("aaab".repeat(25), weights).broken()).toEqual([]);
  expect(shared("ab".repeat(60), { weights: { a: 9 } }).broken()).toEqual(["HIST8"]);
  expect(shared("aaab".repeat(25), { order: "fifo" }).broken()).toEqual([]);
  expect(shared("aaab".repeat(25), { weightedScheduler: { enabled: true } }).broken()).toEqual([]);
});

/**
 * Two slots, and two buckets that always wait. "b" has one slot for 1 s at a time. `turns` says which bucket gets the other one,
 * each time for 100 ms; "c" asks only before its turn.
 */
function besideLong(turns: string): Script {
  const script = new Script();
  const newWaiter = (bucket: string, since: number) => ({ session: script.session({ bucket }), since });
  const waiting = new Map(["a", "b"].map((bucket) => [bucket, newWaiter(bucket, 0)]));
  const take = (bucket: string, at: number, holdMs: number) => {
    const { session, since } = waiting.get(bucket) ?? newWaiter(bucket, at - 10);
    session.granted(since, at).release(at + holdMs - 2);
    if (waiting.has(bucket)) waiting.set(bucket, newWaiter(bucket, at - 20));
  };
  turns.split("").forEach((bucket, turn) => {
    if (turn % 10 === 0) take("b", 50 + turn * 100, 1_000);
    take(bucket, 100 + turn * 100, 100);
  });
  for (const { session, since } of waiting.values()) session.pending(since, 100 + turns.length * 100);
  return script;
}

test("HIST8: the slot time of a bucket that does not always wait may have come from one of two others", () => {
  expect(besideLong("ac".repeat(50)).broken()).toEqual([]);
  expect(besideLong("aaaac".repeat(20)).broken()).toEqual([]);
  expect(besideLong("ab".repeat(50)).broken()).toEqual(["HIST8"]);
  expect(besideLong("cb".repeat(50)).broken()).toEqual(["HIST8"]);
});
