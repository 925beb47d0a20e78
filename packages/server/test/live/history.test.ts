import type { ServiceHistory } from "@slotkeeper/protocol";
import { FairQueue, MemoryStore, type QueueEvent } from "@slotkeeper/queue";
import { Activity, HistoryRing, STEP_MS, STEPS, StoreReader, WAIT_BOUNDS_MS } from "@slotkeeper/server/internals";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { describe, expect, it } from "vitest";
import { startFixture } from "../service-fixture.ts";

const T0 = 1_000_000 * STEP_MS;
const granted = (host: string, waitedMs = 3): QueueEvent => ({
  type: "granted",
  host,
  bucket: "b",
  session: "s",
  slot: 1,
  waitedMs,
});

describe("a history of fifteen minutes", () => {
  it("has 180 steps of five seconds, each with what happened in it", () => {
    expect(STEPS * STEP_MS).toBe(15 * 60_000);
    const ring = new HistoryRing(T0);
    for (let step = 0; step < 3; step++) {
      for (let time = 0; time <= step; time++) ring.count("granted", T0 + step * STEP_MS + time);
    }
    const { granted: counted } = ring.read(T0 + 2 * STEP_MS);
    expect(counted).toHaveLength(STEPS);
    expect(counted.slice(-4)).toEqual([0, 1, 2, 3]);
  });

  it("RING2: has a step without counts, and with the last gauges, for a time without a write", () => {
    const ring = new HistoryRing(T0);
    ring.count("timeout", T0);
    ring.sample({ inFlight: 2, limit: 5, waiters: 7 }, T0);
    const read = ring.read(T0 + 3 * STEP_MS);
    expect(read.timeout.slice(-4)).toEqual([1, 0, 0, 0]);
    expect([read.inFlight, read.limit, read.waiters].map((column) => column.at(-1))).toEqual([2, 5, 7]);
  });

  it("drops what is older, also after a pause longer than the whole history", () => {
    for (const silence of [STEPS, STEPS + 1, 10 * STEPS, 1e6]) {
      const ring = new HistoryRing(T0);
      ring.count("granted", T0);
      ring.addWait(3, T0);
      const { granted: counted, waits, waitP50Ms } = ring.read(T0 + silence * STEP_MS);
      expect([counted.length, sum(counted), sum(waits.counts)]).toEqual([STEPS, 0, 0]);
      expect(waitP50Ms.every((value) => value === null)).toBe(true);
    }
    const ring = new HistoryRing(T0);
    ring.count("granted", T0);
    expect(sum(ring.read(T0 + (STEPS - 1) * STEP_MS).granted)).toBe(1);
  });

  it("RING3: loses nothing if the clock is set back, and writes into the newest step", () => {
    const ring = new HistoryRing(T0);
    ring.count("granted", T0 - 100 * STEP_MS);
    expect(ring.read(T0).granted.at(-1)).toBe(1);
  });

  it.each([
    [0, 1],
    [3, 4],
    [STEPS - 1, STEPS],
    [10 * STEPS, STEPS],
  ])("RING4: after %i steps, %i are known", (steps, known) => {
    expect(new HistoryRing(T0).read(T0 + steps * STEP_MS).known).toBe(known);
  });

  it("has the quantiles of the waits of each step, within the bounds of their bucket", () => {
    const ring = new HistoryRing(T0);
    for (let n = 0; n < 90; n++) ring.addWait(30, T0);
    for (let n = 0; n < 10; n++) ring.addWait(700, T0);
    const { waitP50Ms, waitP95Ms, waits } = ring.read(T0);
    expect(waitP50Ms.at(-1)).toBeGreaterThan(25);
    expect(waitP50Ms.at(-1)).toBeLessThanOrEqual(50);
    expect(waitP95Ms.at(-1)).toBeGreaterThan(500);
    expect(waitP95Ms.at(-1)).toBeLessThanOrEqual(1000);
    expect(waits.counts).toHaveLength(WAIT_BOUNDS_MS.length + 1);
    expect(sum(waits.counts)).toBe(100);
    ring.addWait(1e9, T0 + STEP_MS);
    expect(ring.read(T0 + STEP_MS).waitP95Ms.at(-1)).toBe(60_000);
  });
});

describe("the activity of many hosts", () => {
  it("keeps a hundred of 100,000 hosts and the total: memory does not grow with hosts, and everything is counted", () => {
    let now = T0;
    const activity = new Activity(() => now);
    const uses = 300_000;
    for (let at = 0; at < uses; at++) {
      if (at % 1000 === 0) now += 10;
      activity.observe(granted(`host-${at % 100_000}`));
      if (at % 50 === 0) activity.observe(granted("busy"));
      if (at % 60_000 === 0) activity.hosts.elect();
    }
    activity.hosts.elect();
    expect(activity.hosts.size).toBe(100);
    expect(activity.hosts.get("busy")).toBeDefined();
    expect(sum(activity.history(undefined)?.granted ?? [])).toBe(uses + uses / 50);
  });

  it("counts every grant in exactly one place: at its host if that is kept, otherwise in the rest", () => {
    const activity = new Activity(() => T0);
    for (let at = 0; at < 5_000; at++) activity.observe(granted(`host-${at % 500}`));
    const kept = [...activity.hosts.entries()].reduce((all, [, { grants }]) => all + grants, 0);
    expect(kept + activity.rest.grants).toBe(5_000);
    expect(activity.hosts.size).toBe(100);
  });

  it("keeps a host from then on if it is asked for", () => {
    const activity = new Activity(() => T0);
    for (let at = 0; at < 300; at++) activity.observe(granted(`host-${at}`));
    expect(activity.history("quiet")).toBeUndefined();
    activity.observe(granted("quiet"));
    expect(sum(activity.history("quiet")?.granted ?? [])).toBe(1);
    activity.hosts.elect();
    expect(activity.history("quiet")).toBeDefined();
  });

  it("samples how full hosts are, on the clock it is given", async () => {
    const clock = new VirtualClock(T0);
    const activity = new Activity(() => clock.now());
    let ids = 0;
    const store = new MemoryStore({ clock });
    const queue = new FairQueue({
      store,
      clock,
      newSessionId: () => `s${ids++}`,
      newSecret: () => `secret${ids++}`,
      instance: "one",
      config: { maxSlotPerHost: 1, maxSlotPerIp: -1, maxWaitMs: 60_000 },
      observe: (event) => activity.observe(event),
    });
    void queue.begin({ host: "h", bucket: "a", waitMs: 5_000 });
    void queue.begin({ host: "h", bucket: "b", waitMs: 5_000 });
    await clock.run(10);
    await activity.sample(new StoreReader(store, () => clock.now()));
    for (const host of [undefined, "h"]) {
      const read = activity.history(host);
      expect([read?.inFlight.at(-1), read?.limit.at(-1), read?.waiters.at(-1)]).toEqual([1, 1, 1]);
    }
    queue.close();
  });
});

describe("GET /history", () => {
  it("returns all hosts or one, and nothing for a host that is not kept", async () => {
    const fixture = await startFixture();
    await fixture.take();
    const read = async (query: string) =>
      JSON.parse((await fixture.request("GET", `/api/v0/history${query}`)).text) as ServiceHistory;
    const [all, one, none] = [await read(""), await read("?host=example.com"), await read("?host=unknown.example")];
    expect([all, one, none].map(({ isTracked, granted }) => [isTracked, sum(granted)])).toEqual([
      [true, 1],
      [true, 1],
      [false, 0],
    ]);
    expect(all.granted).toHaveLength(STEPS);
    expect(all).not.toHaveProperty("host");
    expect(one.host).toMatch(/^[0-9a-f]{64}$/);
    expect((await fixture.request("GET", "/api/v0/history?host=%01")).status).toBe(400);
  });
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, value) => total + value, 0);
}
