import type { ServiceInstances } from "@slotkeeper/protocol";
import { MemoryStore, type SlotStore } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import { startFleet } from "./fleet-fixture.ts";
import { type Fixture, openWith, startFixture, stopFixture } from "./service-fixture.ts";

const read = async (fixture: Fixture) =>
  JSON.parse((await fixture.request("GET", "/api/v0/instances")).text) as ServiceInstances;
const names = async (fixture: Fixture) => (await read(fixture)).instances.map(({ instance }) => instance);

describe("GET /instances", () => {
  it("has everybody on the store, told by whomever; one that stops is gone at once", async () => {
    const [one, two, three] = (await startFleet(3)) as [Fixture, Fixture, Fixture];
    for (const fixture of [one, two, three]) expect(await names(fixture)).toEqual(["i-1", "i-2", "i-3"]);
    await stopFixture(two);
    expect(await names(one)).toEqual(["i-1", "i-3"]);
    const { instances, isFleet, hasDrift } = await read(three);
    expect([isFleet, hasDrift]).toEqual([true, false]);
    expect(instances.map(({ isThis }) => isThis)).toEqual([false, true]);
    expect(instances[0]).toMatchObject({ address: one.url, version: "0.1.0", configVersion: "default", heldPolls: 0 });
  });

  it("says when their limits drift apart", async () => {
    const store = new MemoryStore({
      clock: { now: Date.now, setTimer: () => 0, clearTimer: () => {} },
      newToken: () => "t",
    });
    const open = openWith(() => store);
    const one = await startFixture({ open, config: { fairQueue: { maxSlotPerHost: 1 } } });
    expect((await read(one)).hasDrift).toBe(false);
    await startFixture({ open, config: { fairQueue: { maxSlotPerHost: 2 } } });
    expect((await read(one)).hasDrift).toBe(true);
  });

  it("on a store that tells of no others has this one, and says so; state, metrics and history work there too", async () => {
    const fixture = await startFixture({
      open: openWith((clock) => plain(new MemoryStore({ clock, newToken: () => "slot_0123456789abcdefghij" }))),
    });
    await fixture.take();
    expect(await read(fixture)).toMatchObject({ isFleet: false, hasDrift: false, instances: [{ isThis: true }] });
    expect(JSON.parse((await fixture.request("GET", "/api/v0/state")).text)).toMatchObject({
      total: 1,
      hosts: [{ inFlight: 1, limit: 5, slots: [{}] }],
    });
    expect((await fixture.request("GET", "/metrics")).text).toContain('slotkeeper_slots_in_use{host="example.com"} 1');
  });
});

/** Only what every store must have. */
function plain(memory: MemoryStore): SlotStore {
  return {
    heartbeatMs: undefined,
    checkThrottle: (query) => memory.checkThrottle(query),
    register: (batch) => memory.register(batch),
    withdraw: (batch) => memory.withdraw(batch),
    tryAcquire: (batch) => memory.tryAcquire(batch),
    release: (request) => memory.release(request),
    renew: (request) => memory.renew(request),
    report: (report) => memory.report(report),
    cleanup: (request) => memory.cleanup(request),
    snapshot: () => memory.snapshot(),
    operate: (action) => memory.operate(action),
    onFreed: (listener) => memory.onFreed(listener),
  };
}
