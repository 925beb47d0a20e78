import { drained } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** WPOOL4: clients that vanished do not fill the waiter pool. */

const SMALL = { maxSlotPerHost: 1, maxWaitersPerHost: 3, maxWaitMs: 60_000 } as const;
const placeOf = (bench: Bench, bucket: string) =>
  bench.queue.dump().hosts[0]?.buckets.find((one) => one.bucket === bucket)?.places;

/** Sessions that ask once and never poll. They have been away for longer than `collectMs`. */
async function vanished(bench: Bench, count: number) {
  const sessions = await Promise.all(Array.from({ length: count }, (_, at) => bench.begin(`gone${at}`)));
  await bench.clock.run(5_000);
  return sessions;
}

test("a client that is present gets a free slot immediately, although vanished clients fill the pool", async () => {
  const bench = new Bench(SMALL);
  await vanished(bench, 5);
  expect(await bench.held()).toBe(0);
  const live = [await bench.want("live1"), await bench.want("live2"), await bench.want("live3")];
  expect(live.map(({ isGranted }) => isGranted)).toEqual([true, false, false]);
  await bench.release(live[0]?.slotToken ?? "");
  await bench.release(live[1]?.slotToken ?? "");
  expect(live.map(({ isGranted }) => isGranted)).toEqual([true, true, true]);
});

test("with all slots in use, vanished clients lose their places too, and present clients compete", async () => {
  const bench = new Bench(SMALL);
  await vanished(bench, 3);
  const token = await bench.take("holder");
  await bench.want("live1");
  await bench.want("live2");
  expect([placeOf(bench, "live1"), placeOf(bench, "live2")]).toEqual([1, 1]);
  await bench.release(token);
  expect(bench.ofType("granted").at(-1)?.bucket).toBe("live1");
});

test("no more clients lose their place than others need, and one that returns is ahead of those that arrived after it", async () => {
  const bench = new Bench(SMALL);
  const [first, second] = await vanished(bench, 3);
  const token = await bench.take("holder");
  const live = await bench.want("live");
  expect([0, 1, 2].map((at) => placeOf(bench, `gone${at}`))).toEqual([0, 1, 1]);
  const back = [first, second].map((session) => bench.follow(session as NonNullable<typeof session>));
  await drained();
  await bench.release(token);
  expect([back[1]?.isGranted, live.isGranted]).toEqual([true, false]);
  await bench.release(back[1]?.slotToken ?? "");
  expect([back[0]?.isGranted, live.isGranted].filter(Boolean)).toHaveLength(1);
});

test("a client that is away for less than collectMs keeps its place", async () => {
  const bench = new Bench({ ...SMALL, maxWaitersPerHost: 1 });
  const token = await bench.take("holder");
  await bench.begin("between polls");
  await bench.clock.run(500);
  await bench.want("live");
  expect([placeOf(bench, "between polls"), placeOf(bench, "live")]).toEqual([1, 0]);
  await bench.release(token);
});
