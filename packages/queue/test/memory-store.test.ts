import { type BookImage, FairQueue, MemoryStore } from "@slotkeeper/queue";
import { drained, VirtualClock } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

test("the fences of a new host start at the time in microseconds, above those of an earlier host with the same key", async () => {
  const bench = new Bench();
  const answer = await bench.ask("a", { waitMs: 1 });
  expect(answer).toMatchObject({ result: "granted", fence: bench.clock.now() * 1000 + 1 });
});

test("the waiters of a dead instance leave the pool within 5 s, and those of a live instance stay", async () => {
  const one = new Bench({ maxSlotPerHost: 1, maxWaitMs: 60_000, zombieTimeoutSeconds: 60 });
  const two = new Bench({ maxSlotPerHost: 1, maxWaitMs: 60_000, zombieTimeoutSeconds: 60 }, one);
  await one.take("z");
  await one.want("a");
  await two.want("b");
  await one.clock.run(10_000);
  expect(await one.snapshot()).toMatchObject({ waiting: 2 });
  two.isStoreDown = true;
  await one.clock.run(5_000);
  expect(await one.snapshot()).toMatchObject({ waiting: 1 });
});

test("an instance that was considered dead joins again with its arrival times", async () => {
  const config = { maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitMs: 60_000, zombieTimeoutSeconds: 60 };
  const one = new Bench(config);
  const two = new Bench(config, one);
  const token = await one.take("z");
  const first = await two.want("a");
  const second = await one.want("a");
  two.isStoreDown = true;
  await one.clock.run(6_000);
  two.isStoreDown = false;
  await one.clock.run(2_000);
  await one.release(token);
  await one.clock.run(100);
  expect([first.isGranted, second.isGranted]).toEqual([true, false]);
});

test("hosts of an earlier process are restored, and its instances count as alive for the grace period", async () => {
  const clock = new VirtualClock();
  const before = new Bench({ maxSlotPerHost: 1 });
  await before.take("z");
  await before.want("a");
  const store = new MemoryStore({ clock, hosts: before.memory.images(), graceMs: 1_000 });
  expect((await store.instances()).map(({ instance }) => instance)).toEqual(["one"]);
  expect(await store.peek(["h"])).toEqual(await before.memory.peek(["h"]));
  await clock.run(1_001);
  expect(await store.instances()).toEqual([]);
});

test("a store that fails over and loses its last commits issues no fence twice (found by the simulator)", async () => {
  const bench = new Bench({ maxSlotPerHost: 5 });
  await bench.take("a");
  const before = [...bench.memory.images()].map((kept) => structuredClone(kept));
  for (let count = 0; count < 3; count++) await bench.take(`b${count}`);
  const lost = Math.max(...((await bench.snapshot())?.leases ?? []).map(({ slot }) => Number(slot.split(".")[1])));
  await bench.clock.run(1_100);
  const copy = new MemoryStore({ clock: bench.clock, hosts: before });
  let ids = 0;
  const next = new FairQueue({
    store: copy,
    clock: bench.clock,
    newSessionId: () => `next-${ids++}`,
    newSecret: () => `next-secret-${ids++}`,
    instance: "next",
  });
  const answer = await next.begin({ host: "h", hostname: "h", bucket: "c", waitMs: 1 });
  if (answer.result !== "granted") throw new Error(`Expected a slot, got ${answer.result}`);
  expect(answer.fence).toBeGreaterThan(lost);
});

test("the store shows only commits that it has accepted, even if the answer is still on its way", async () => {
  const bench = new Bench({ maxSlotPerHost: 2 });
  await bench.take("a");
  const before = await bench.memory.peek(["h"]);
  bench.stalled = [];
  const taken = bench.take("b", { waitMs: 1_000 });
  await drained();
  expect(bench.stalled).toHaveLength(1);
  expect(await bench.memory.peek(["h"])).toEqual(before);
  expect(await bench.memory.totals()).toMatchObject({ inFlight: 1 });
  const [arrive] = bench.stalled;
  bench.stalled = undefined;
  bench.late = [];
  arrive?.();
  await drained();
  const after = await bench.memory.peek(["h"]);
  expect(after.get("h")?.records.map(({ kind }) => kind)).toEqual(["lease", "lease", "account", "account", "limits"]);
  for (const answer of bench.late) answer();
  bench.late = undefined;
  await taken;
  expect(await bench.memory.peek(["h"])).toEqual(after);
});

test("a commit without its book is applied to the state of the last book", async () => {
  const bench = new Bench({ maxSlotPerHost: 2 });
  await bench.take("a");
  const before = (await bench.memory.peek(["h"])).get("h") as BookImage;
  const now = bench.clock.now();
  const base = (await bench.memory.read("h", undefined)).tag;
  const changes = { head: before.head, puts: [{ kind: "cooldown", key: "c", until: now }] as const, dels: [] };
  const commit = {
    host: "h",
    instance: "other",
    base,
    tag: "9.other",
    now,
    changes,
    hasOthers: true,
    wake: [],
    conflicts: 0,
  };
  expect(bench.memory.commit(commit)).toMatchObject({ isOk: true });
  const after = (await bench.memory.peek(["h"])).get("h");
  expect(after).toEqual({ head: before.head, records: expect.arrayContaining([...before.records, ...changes.puts]) });
  expect(after?.records).toHaveLength(before.records.length + 1);
  await bench.take("b");
  expect(await bench.memory.totals()).toMatchObject({ inFlight: 2 });
});
