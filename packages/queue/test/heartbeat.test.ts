import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** How many sessions wait, in the state that all instances share. */
async function waiters({ memory }: Bench): Promise<number> {
  const book = (await memory.peek(["h"])).get("h");
  return book?.records.filter(({ kind }) => kind === "waiter").length ?? 0;
}

test.each([
  { died: "before its first quick beat", afterMs: 500 },
  { died: "after quick beats", afterMs: 3_200 },
])("the waiters of an instance that died $died stop counting within 5 s", async ({ afterMs }) => {
  const one = new Bench({ maxSlotPerHost: 1 }, undefined, true);
  const two = new Bench({ maxSlotPerHost: 1 }, one, true);
  await Promise.all([one.queue.start(), two.queue.start()]);
  await one.take();
  await one.want("b");
  const gone = await two.want("c");
  await one.clock.run(afterMs);
  expect(await waiters(one)).toBe(2);
  gone.isStopped = true;
  two.queue.close();
  await one.clock.run(5_000);
  expect(await waiters(one)).toBe(1);
});

test("after an outage of the store for all instances, none considers the others dead", async () => {
  const one = new Bench({ maxSlotPerHost: 1 }, undefined, true);
  const two = new Bench({ maxSlotPerHost: 1 }, one, true);
  await Promise.all([one.queue.start(), two.queue.start()]);
  await one.take();
  await one.want("b");
  const asked = two.want("c");
  await one.clock.run(2_000);
  await asked;
  one.isStoreDown = two.isStoreDown = true;
  await one.clock.run(8_000);
  one.isStoreDown = two.isStoreDown = false;
  one.commits.length = two.commits.length = 0;
  await one.clock.run(5_000);
  expect(await waiters(one)).toBe(2);
  expect([...one.commits, ...two.commits]).toEqual([]);
});

test("an instance whose clock was ahead until the store corrected it sends its beats in time, and keeps its waiters", async () => {
  const one = new Bench({ maxSlotPerHost: 1 }, undefined, true);
  const two = new Bench({ maxSlotPerHost: 1 }, one, true);
  await Promise.all([one.queue.start(), two.queue.start()]);
  await one.take();
  await one.want("b");
  two.ownClock.jump(6_000);
  const waiting = await two.want("c");
  await one.clock.run(6_000);
  expect(await waiters(one)).toBe(2);
  expect(waiting.last?.result).not.toBe("timeout");
});

test("an instance that starts in an outage with its clock ahead tries the store again in time, although the store then sets its clock back", async () => {
  const one = new Bench({ maxSlotPerHost: 1 }, undefined, true);
  one.ownClock.jump(60_000);
  one.isStoreDown = true;
  await one.queue.start();
  const waiting = await one.want("a");
  one.isStoreDown = false;
  // The first answer of the store is about another host.
  await one.take("a", { host: "other", hostname: "other" });
  await one.clock.run(5_000);
  expect(waiting.isGranted).toBe(true);
});

// Simulator, seed 4068: its last quick beat was over before the next slow one was due.
test("a session that comes to an instance without other waiters is not dropped before its next beat", async () => {
  const one = new Bench({ maxSlotPerHost: 1, maxWaitMs: 60_000 }, undefined, true);
  const two = new Bench({ maxSlotPerHost: 1, maxWaitMs: 60_000 }, one, true);
  await Promise.all([one.queue.start(), two.queue.start()]);
  await one.take();
  await one.want("b");
  await two.want("c", { maxWaitMs: 2_500 });
  await one.clock.run(8_550);
  expect(await waiters(one)).toBe(1);
  const asked = two.want("d");
  await one.clock.run(200);
  await asked;
  for (let ms = 0; ms < 2_000; ms += 50) {
    expect(await waiters(one)).toBe(2);
    await one.clock.run(50);
  }
});
