import type { ServiceInstances, ServiceState } from "@slotkeeper/protocol";
import { MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { describe, expect, it } from "vitest";
import { startFleet } from "./fleet-fixture.ts";
import { type Fixture, openWith, startFixture, stopFixture } from "./service-fixture.ts";

const read = async (fixture: Fixture) =>
  JSON.parse((await fixture.request("GET", "/api/v0/instances")).text) as ServiceInstances;
const ids = async (fixture: Fixture) => (await read(fixture)).instances.map(({ instanceId }) => instanceId);

describe("GET /instances", () => {
  it("shows every instance of the store at each of them; one that stops disappears immediately", async () => {
    const [one, two, three] = (await startFleet(3)) as [Fixture, Fixture, Fixture];
    for (const fixture of [one, two, three]) expect(await ids(fixture)).toEqual(["i-1", "i-2", "i-3"]);
    await stopFixture(two);
    expect(await ids(one)).toEqual(["i-1", "i-3"]);
    const { instances, isFleet, hasDrift } = await read(three);
    expect([isFleet, hasDrift]).toEqual([true, false]);
    expect(instances.map(({ isThis }) => isThis)).toEqual([false, true]);
    expect(instances[0]).toMatchObject({ address: one.url, version: "0.1.0", configVersion: "default", heldPolls: 0 });
  });

  it("gives a restarted instance a new name in the fleet, and reports the same `controller.instanceId`", async () => {
    const store = new MemoryStore({ clock: realClock, isShared: true });
    const open = openWith(() => store);
    const config = { internalApiToken: "internal", controller: { instanceId: "pod-1" } };
    const headers = { authorization: "Bearer internal" };
    const names: string[] = [];
    for (let life = 0; life < 2; life++) {
      const fixture = await startFixture({ open, config });
      const { text } = await fixture.request("GET", "/api/v0/instances", { headers });
      const { instances } = JSON.parse(text) as ServiceInstances;
      expect(instances).toMatchObject([{ instanceId: "pod-1", isThis: true }]);
      names.push(...instances.map(({ instance }) => instance));
      const health = await fixture.request("GET", "/api/v0/health", { headers });
      expect(health.headers.get("x-instance-id")).toBe("pod-1");
      await stopFixture(fixture);
    }
    expect(names.every((name) => name.startsWith("pod-1-"))).toBe(true);
    expect(new Set(names).size).toBe(2);
  });

  it("reports if their limits differ", async () => {
    const store = new MemoryStore({ clock: realClock, isShared: true });
    const open = openWith(() => store);
    const one = await startFixture({ open, config: { fairQueue: { maxSlotPerHost: 1 } } });
    expect((await read(one)).hasDrift).toBe(false);
    await startFixture({ open, config: { fairQueue: { maxSlotPerHost: 2 } } });
    expect((await read(one)).hasDrift).toBe(true);
  });

  it("on a private store shows this instance alone, and reports that it is not a fleet", async () => {
    const fixture = await startFixture();
    expect(await read(fixture)).toMatchObject({ isFleet: false, hasDrift: false, instances: [{ isThis: true }] });
  });
});

describe("the fleet in GET /state", () => {
  it("sums waiters, grants and rejects over the live instances, at any instance", async () => {
    const fairQueue = { maxSlotPerHost: 1, maxWaitMs: 3_600_000, pollWindowMs: 100, globalMaxWaiters: 2 };
    const [one, two] = (await startFleet(2, { fairQueue })) as [Fixture, Fixture];
    await one.take({ ipBucket: "a" });
    for (const fixture of [one, two]) {
      const tries = await Promise.all(["b", "c", "d"].map((ipBucket) => fixture.acquire({ ipBucket })));
      expect(tries.map(({ body }) => body.result)).toContain("overloaded");
    }
    const fleet = async (fixture: Fixture) =>
      (JSON.parse((await fixture.request("GET", "/api/v0/state")).text) as ServiceState).fleet;
    // The others send their counts with their beats, once a second while sessions wait.
    await expect
      .poll(async () => [await fleet(one), await fleet(two)].map((sums) => sums?.rejected), { timeout: 5_000 })
      .toEqual([2, 2]);
    const [here, there] = [await fleet(one), await fleet(two)];
    expect(here).toEqual(there);
    expect(here).toMatchObject({ instances: 2, granted: 1, waiting: 4 });
  });
});
