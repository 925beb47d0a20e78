import { expect, test } from "vitest";
import { type Fixture, startFixture, stopFixture } from "./service-fixture.ts";

let names = 0;

/** A separate host for each test: all tests of a file share the database. */
export const newHost = () => ({ hostname: `host-${names++}.example.com` });

/** Starts an instance of the fleet, with these settings of `fairQueue`. */
export type StartInstance = (fairQueue?: object) => Promise<Fixture>;

/** Instances on one backend. A function, because the database's address is known only when tests run. */
export function instancesOn(backend: () => object): StartInstance {
  return (fairQueue = {}) =>
    startFixture({ config: { backend: backend(), fairQueue: { pollIntervalMs: 100, ...fairQueue } } });
}

/** The cases that apply to a fleet on any database connection. */
export function describeFleet(instance: StartInstance): void {
  test("a slot exists once in the whole fleet: what one instance granted, another does not grant again", async () => {
    const [one, two] = await Promise.all([instance({ maxSlotPerHost: 1 }), instance({ maxSlotPerHost: 1 })]);
    const host = newHost();
    const slot = await one.take({ ...host, ipBucket: "a" });
    const { body: waiting } = await two.acquire({ ...host, ipBucket: "b", waitMs: 200 });
    expect(waiting).toMatchObject({ result: "pending" });
    await one.release(slot.slotToken);
    const { body: granted } = await two.poll(waiting.queryToken);
    expect(granted.result).toBe("granted");
    expect(granted.fence).toBeGreaterThan(slot.fence);
  });

  test("a session moves between instances, and a restart of the whole fleet does not lose its place or its slot", async () => {
    const host = newHost();
    const first = await instance({ maxSlotPerHost: 1 });
    const slot = await first.take(host);
    const { body: waiting } = await first.acquire({ ...host, ipBucket: "b", waitMs: 50 });
    await stopFixture(first);
    const second = await instance({ maxSlotPerHost: 1 });
    const moved = second.poll(waiting.queryToken);
    await second.release(slot.slotToken);
    const { body: granted } = await moved;
    expect(granted.result).toBe("granted");
    const { body: again } = await (await instance({ maxSlotPerHost: 1 })).poll(waiting.queryToken);
    expect(again).toMatchObject({ result: "granted", slotToken: granted.slotToken, fence: granted.fence });
  });

  test("the slots of a key are limited in the whole fleet, and its waiter moves between instances", async () => {
    const limits = { maxSlotPerHost: 4, maxSlotPerIp: -1, keys: { user: { slots: 2 }, tenant: { slots: 1 } } };
    const [one, two] = await Promise.all([instance(limits), instance(limits)]);
    const asked = { ...newHost(), keys: { tenant: "acme", user: "ann" } };
    const slot = await one.take(asked);
    const { body: waiting } = await two.acquire({ ...asked, waitMs: 50 });
    expect(waiting).toMatchObject({ result: "pending", blockedBy: "key:tenant" });
    const moved = (await instance(limits)).poll(waiting.queryToken);
    await one.release(slot.slotToken);
    expect((await moved).body.result).toBe("granted");
  });

  test("a session that needs several slots moves between instances, and gets them all at the other one", async () => {
    const limits = { maxSlotPerHost: 4, maxSlotPerIp: 4 };
    const [one, two] = await Promise.all([instance(limits), instance(limits)]);
    const host = newHost();
    const slot = await one.take({ ...host, width: 3 });
    const { body: waiting } = await one.acquire({ ...host, width: 3, waitMs: 50 });
    const moved = two.poll(waiting.queryToken);
    await one.release(slot.slotToken);
    const { body: granted } = await moved;
    expect(granted).toMatchObject({ result: "granted", width: 3 });
    expect((await one.poll(granted.queryToken)).body).toMatchObject({
      result: "granted",
      fence: granted.fence,
      width: 3,
    });
  });
}
