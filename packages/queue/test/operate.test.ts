import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, it } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** Two instances on one store. */
function fleet(config = {}): [Bench, Bench] {
  const one = new Bench(config);
  return [one, new Bench(config, one)];
}

const HOST = { host: "h", hostname: "h" };

describe("an operator's action", () => {
  it("on limits at one instance takes effect immediately for sessions that wait at another", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1 });
    await one.want("a");
    const waiting = two.follow(await two.begin("b"));
    await drained();
    expect(waiting.last?.result).not.toBe("granted");
    await one.queue.operate({ kind: "limits", ...HOST, limits: { slots: 2 } });
    await drained();
    expect(waiting.last?.result).toBe("granted");
    await one.queue.operate({ kind: "limits", ...HOST, limits: undefined });
    expect(await one.snapshot()).toMatchObject({ slots: 1, live: undefined, inFlight: 2 });
  });

  it("on the breaker throttles waiting sessions at every instance, and new ones immediately at its own instance", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1 });
    await one.want("a");
    const waiting = two.follow(await two.begin("b"));
    await one.queue.operate({ kind: "breaker", ...HOST, isOpen: true });
    await drained();
    expect(waiting.last).toMatchObject({ result: "throttled", throttleCode: 0 });
    expect(await one.ask("c")).toMatchObject({ result: "throttled", throttleCode: 0 });
    await one.queue.operate({ kind: "breaker", ...HOST, isOpen: false });
    expect(await one.ask("c")).toMatchObject({ result: "pending" });
  });

  it("that closes the breaker reaches every instance within a poll interval, even if no session waits there", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, pollIntervalMs: 500 });
    await one.queue.operate({ kind: "breaker", ...HOST, isOpen: true });
    for (const { queue } of [one, two]) {
      expect(await queue.begin({ ...HOST, bucket: "b", waitMs: 1 })).toMatchObject({ result: "throttled" });
    }
    await one.queue.operate({ kind: "breaker", ...HOST, isOpen: false });
    await one.clock.run(500);
    expect(await two.queue.begin({ ...HOST, bucket: "b", waitMs: 1 })).toMatchObject({ result: "granted" });
  });

  it("that pauses a host grants nothing new at any instance, holders go on, and waiters are served when it goes on", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 2 });
    const { last: held } = await one.want("a");
    if (held?.result !== "granted") throw new Error("expected a slot");
    await one.queue.operate({ kind: "pause", ...HOST, isPaused: true });
    const waiting = two.follow(await two.begin("b"));
    await one.clock.run(6_500);
    expect(waiting.last).toMatchObject({ result: "pending", blockedBy: "paused" });
    expect(await one.queue.renew(held.slotToken)).toBeDefined();
    await one.release(held.slotToken);
    await one.clock.run(1_000);
    expect(await one.snapshot()).toMatchObject({ inFlight: 0, waiting: 1, isPaused: true });
    // Other settings of an operator do not end the pause.
    await one.queue.operate({ kind: "limits", ...HOST, limits: { slots: 3 } });
    await one.queue.operate({ kind: "limits", ...HOST, limits: undefined });
    expect(await one.snapshot()).toMatchObject({ inFlight: 0, isPaused: true });
    await one.queue.operate({ kind: "pause", ...HOST, isPaused: false });
    await one.clock.run(100);
    expect(waiting.last?.result).toBe("granted");
    expect(await one.snapshot()).toMatchObject({ inFlight: 1, isPaused: false, live: undefined });
  });

  it("that pauses a host is kept while no caller uses the host", async () => {
    const [one] = fleet({ maxSlotPerHost: 1 });
    await one.queue.operate({ kind: "pause", ...HOST, isPaused: true });
    await one.clock.run(7_200_000);
    await one.queue.sweep();
    const waiting = one.follow(await one.begin("b"));
    await one.clock.run(6_500);
    expect(waiting.last).toMatchObject({ result: "pending", blockedBy: "paused" });
  });

  it("that revokes a slot gives it to the next waiter, and a repeated poll does not return it again", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1 });
    const { session, last: held } = await one.want("a");
    if (held?.result !== "granted") throw new Error("expected a slot");
    const waiting = two.follow(await two.begin("b"));
    expect(await two.queue.operate({ kind: "revoke", host: "h", fence: held.fence })).toBe(true);
    await drained();
    expect(waiting.last?.result).toBe("granted");
    expect(await one.queue.renew(held.slotToken)).toBeUndefined();
    expect(await one.queue.poll(session)).toMatchObject({ result: "timeout", reason: "released" });
    expect(await two.queue.operate({ kind: "revoke", host: "h", fence: held.fence })).toBe(false);
  });
});

describe("what the engine reports about itself", () => {
  it("the inspection of a host shows which session is next and what each waits for", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, maxWaitersPerHost: 2 });
    await bench.want("a");
    for (const bucket of ["b", "c", "d"]) bench.follow(await bench.begin(bucket));
    await drained();
    const { waiting, pending, oldestArrivedAt } = bench.queue.inspect("h") ?? {};
    expect(waiting?.map(({ bucket, position, blockedBy }) => [bucket, position, blockedBy])).toEqual([
      ["b", 1, "host-limit"],
      ["c", 2, "host-limit"],
      ["d", 3, "waiter-pool"],
    ]);
    expect([pending, oldestArrivedAt]).toEqual([3, waiting?.[0]?.arrivedAt]);
    expect(bench.queue.dump()).toMatchObject({ sessions: { pending: 3, granted: 1 }, oldestArrivedAt });
    expect(bench.queue.glance("h")).toMatchObject({ pending: 3, hostname: "h", isHot: false });
    expect([bench.queue.inspect("unknown"), bench.queue.glance("unknown")]).toEqual([undefined, undefined]);
    expect([...bench.queue.hostKeys()]).toEqual(["h"]);
  });

  it("a release reports how long the slot was held; late releases and expired leases are reported, too", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, zombieTimeoutSeconds: 5 });
    const { last: held } = await bench.want("a");
    if (held?.result !== "granted") throw new Error("expected a slot");
    await bench.clock.run(1_000);
    await bench.release(held.slotToken);
    await bench.release(held.slotToken);
    await bench.want("b");
    const next = bench.follow(await bench.begin("c"));
    await bench.clock.run(6_000);
    expect(next.last?.result).toBe("granted");
    const reported = bench.events.filter(({ type }) => ["released", "late-release", "reclaimed"].includes(type));
    expect(reported).toMatchObject([
      { type: "released", heldMs: 1_000 },
      { type: "late-release" },
      { type: "reclaimed", host: "h", bucket: "b", fence: expect.any(Number) },
    ]);
  });

  it("a sweep ends everything that has expired, and reports the leases", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, zombieTimeoutSeconds: 1, maxWaitMs: 3_000 });
    await bench.want("a");
    await bench.clock.run(2_000);
    await bench.queue.sweep();
    await drained();
    expect(bench.ofType("reclaimed")).toMatchObject([{ type: "reclaimed", bucket: "a" }]);
    expect(bench.queue.sweepSessions()).toBe(0);
  });
});
