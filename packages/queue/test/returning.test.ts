import { drained } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

/** How long clients of the dead instance stay away before they poll elsewhere: longer than the fleet keeps its waiters. */
const AWAY_MS = 10_000;

const CONFIG = { maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitMs: 600_000, zombieTimeoutSeconds: 600 } as const;

async function waiting({ memory }: Bench): Promise<string[]> {
  const book = (await memory.peek(["h"])).get("h");
  return book?.records.flatMap((record) => (record.kind === "waiter" ? [record.bucket] : [])).sort() ?? [];
}

/** Starts a session that waits. Its arrival may be committed a little later, so time passes. */
async function want(bench: Bench, bucket: string): Promise<Followed> {
  const wanted = bench.want(bucket);
  await bench.clock.run(500);
  return wanted;
}

/** The buckets in the order of their grants. Each releases its slot after a second. */
async function grants(bench: Bench, slotToken: string, followed: Record<string, Followed>): Promise<string[]> {
  const granted: string[] = [];
  let token = slotToken;
  for (let turn = Object.keys(followed).length; turn > 0; turn--) {
    await bench.release(token);
    const next = Object.keys(followed).find((name) => followed[name]?.isGranted && !granted.includes(name));
    if (next === undefined) break;
    granted.push(next);
    token = followed[next]?.slotToken ?? "";
    await bench.clock.run(1_000);
  }
  return granted;
}

test.each([
  { title: "in a pool with room", maxWaitersPerHost: 0 },
  { title: "in a full pool", maxWaitersPerHost: 3 },
])("a client that returns long after its instance died gets its slot in the order of arrival, $title", async (more) => {
  const config = { ...CONFIG, maxWaitersPerHost: more.maxWaitersPerHost };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one, true);
  await Promise.all([one.queue.start(), two.queue.start()]);
  const held = await one.take("holder");
  const places: Record<string, Followed> = {};
  for (const [at, bucket] of ["a", "b", "c", "d"].entries()) {
    places[bucket] = await want(at === 1 ? two : one, bucket);
  }
  const left = places["b"] as Followed;
  left.isStopped = true;
  two.queue.close();
  await one.clock.run(AWAY_MS);
  expect(await waiting(one)).toEqual(["a", "c", "d"]);
  places["b"] = one.follow(left.session);
  await drained();
  await one.clock.run(200);
  expect(await grants(one, held, places)).toEqual(["a", "b", "c", "d"]);
});

test("a bucket that used the host meanwhile does not return to its earlier place", async () => {
  const one = new Bench({ ...CONFIG, maxSlotPerHost: 2, maxWaitersPerHost: 0 }, undefined, true);
  const two = new Bench({ ...CONFIG, maxSlotPerHost: 2, maxWaitersPerHost: 0 }, one, true);
  await Promise.all([one.queue.start(), two.queue.start()]);
  const held = await one.take("holder");
  const own = await one.take("b");
  const left = await want(two, "b");
  left.isStopped = true;
  two.queue.close();
  await one.clock.run(AWAY_MS);
  const fresh = await want(one, "fresh");
  await one.release(own);
  await one.clock.run(100);
  expect(fresh.isGranted).toBe(true);
  const late = await want(one, "late");
  const back = one.follow(left.session);
  await one.clock.run(200);
  await one.release(held);
  expect({ back: back.isGranted, late: late.isGranted }).toEqual({ back: false, late: true });
});
