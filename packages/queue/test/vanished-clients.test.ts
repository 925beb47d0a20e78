import { Book } from "@slotkeeper/queue/internals";
import { drained } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";
import { arrive, Decider, START } from "./decider.ts";

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

test("a client that is recorded as away keeps its place until it has been away for collectMs, and then gives it away", () => {
  const host = new Decider({ maxSlotPerHost: 1, maxSlotPerIp: -1, maxWaitersPerHost: 1, collectMs: 500 });
  const inside = () => [...host.book.all("waiter")].filter(({ isInside }) => isInside).map(({ key }) => key);
  host.at(0, [arrive("s0", "a", 0, 9_000)], ["s0"]);
  host.at(1, [arrive("s1", "b", 1, 9_000)], ["s1"]);
  host.at(2, [arrive("s2", "c", 2, 9_000)], ["s2"]);
  host.at(5, [{ kind: "client", session: "s1", awayAt: START + 5 }], ["s2"]);
  expect(host.book.get("waiter", "s1")?.awayAt).toBe(START + 5);
  for (const [ms, session] of [
    [5, "s1"],
    [504, "s1"],
    [505, "s2"],
  ] as const) {
    host.at(ms, [], ["s2"]);
    expect([ms, ...inside()]).toEqual([ms, session]);
  }
});

test("a session outside the pool changes nothing about its bucket before it gets a place", () => {
  const host = new Decider({ maxSlotPerHost: 1, maxSlotPerIp: -1, maxWaitersPerIp: 1 });
  const weight = () => host.book.get("account", "b")?.weight;
  host.at(0, [arrive("s0", "a", 0, 9_000)], ["s0"]);
  host.at(1, [arrive("s1", "b", 1, 9_000)], ["s1"]);
  host.at(2, [{ ...arrive("s2", "b", 2, 9_000), weight: 2 }], ["s1", "s2"]);
  expect([host.book.get("waiter", "s2")?.isInside, weight()]).toEqual([false, 1]);
  const times = { arrivedAt: START + 1, keepUntil: START + 9_000, at: START + 3, pendingAt: undefined };
  host.at(3, [{ kind: "end", session: "s1", bucket: "b", end: "canceled", ...times }], ["s2"]);
  expect([host.book.get("waiter", "s2")?.isInside, weight()]).toEqual([true, 2]);
});

test("a client is present again for the index when collectMs is raised above the time that it has been away", () => {
  const host = new Decider({ maxSlotPerHost: 1, maxSlotPerIp: -1, collectMs: 500 });
  host.at(0, [arrive("s0", "a", 0, 9_000)], ["s0"]);
  host.at(1, [arrive("s1", "b", 1, 9_000)], ["s1"]);
  host.at(5, [{ kind: "client", session: "s1", awayAt: START + 5 }], []);
  host.at(600, [], []);
  host.at(601, [], [], { collectMs: 5_000 });
  // BOOK4: the same records and time give the same index.
  const fresh = Book.of("h", undefined, structuredClone(host.book.image()));
  fresh.moveTo(START + 601);
  fresh.index.useTime(START + 601, 5_000);
  const heads = [host.book, fresh].map(
    ({ index }) => Array.from(index.lines).find(({ name }) => name === "b")?.head?.record.key,
  );
  expect(heads).toEqual(["s1", "s1"]);
});
