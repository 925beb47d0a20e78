import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** Faults of the original implementation in the engine and its store. Each test fails on the old behaviour. */
describe("faults that must not come back", () => {
  test("the breaker check always said 'not protected'", async () => {
    const bench = new Bench();
    for (let count = 0; count < 4; count++) await bench.queue.report({ host: "h", status: 500 });
    expect(await bench.ask("a")).toMatchObject({ result: "throttled" });
  });

  test("dead waiters kept a host full", async () => {
    const bench = new Bench({
      maxSlotPerHost: 1,
      maxSlotPerIp: 0,
      maxWaitersPerHost: 3,
      sessionIdleSeconds: 5,
      zombieTimeoutSeconds: 60,
    });
    const token = await bench.take("z");
    for (let count = 0; count < 3; count++) await bench.begin("dead");
    const alive = await bench.want("alive");
    await bench.clock.run(5_500);
    await bench.release(token);
    expect(alive.isGranted).toBe(true);
    expect((await bench.snapshot())?.waiting).toBe(0);
  });

  test("one silent bucket froze a hot host", async () => {
    const bench = new Bench({
      maxSlotPerHost: 1,
      maxWaitersPerHost: 0,
      maxWaitMs: 60_000,
      weightedScheduler: { enabled: true, hotPendingMin: 1, hotPendingFactor: 0.1, coldAvgWaitMs: 1, hotAvgWaitMs: 2 },
    });
    let token = await bench.take("z");
    const silent = await bench.begin("silent");
    const waiting = await Promise.all(["a", "b", "c"].map((bucket) => bench.want(bucket)));
    await bench.clock.run(3_000);
    for (let round = 0; round < 3; round++) {
      await bench.release(token);
      expect(waiting.filter(({ isGranted }) => isGranted)).toHaveLength(round + 1);
      token = newest(bench, waiting);
    }
    expect(silent.bucket).toBe("silent");
  });

  test("counters drifted on repeated polls, on refresh and on a crash of the client", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitersPerIp: 2, sessionIdleSeconds: 2 });
    await bench.take("z");
    const session = await bench.begin("a");
    for (let count = 0; count < 10; count++) await bench.queue.poll(session, { waitMs: 0 });
    bench.queue.reconfigure({ maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitersPerIp: 2, sessionIdleSeconds: 2 });
    await drained();
    const [host] = bench.queue.dump().hosts;
    expect(host?.pending).toBe(1);
    expect(host?.buckets.find(({ bucket }) => bucket === "a")).toMatchObject({ pending: 1, places: 1 });
    await bench.clock.run(3_000);
    expect(bench.queue.dump().hosts[0]?.pending ?? 0).toBe(0);
    expect((await bench.snapshot())?.waiting).toBe(0);
  });

  test("a lock held through a poll blocked cancel and sweep", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    await bench.take("z");
    const followed = await bench.want("a");
    expect(await bench.queue.sweep()).toMatchObject({ failures: [] });
    expect(bench.queue.cancel(followed.session)).toBe("canceled");
    await drained();
    expect(followed.last).toEqual({ result: "timeout", reason: "canceled" });
  });

  test("a release depended on the caller's connection", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    const token = await bench.take("a");
    bench.stalled = [];
    bench.queue.release({ slotToken: token });
    await drained();
    const resume = bench.stalled;
    bench.stalled = undefined;
    for (const go of resume) go();
    await drained();
    expect(await bench.held()).toBe(0);
  });

  test("a cooldown had no effect at limit 1", async () => {
    const bench = new Bench({ maxSlotPerHost: 2, maxSlotPerIp: 1, ipCooldownSeconds: 2 });
    await bench.release(await bench.take("a"));
    expect((await bench.ask("a", { waitMs: 0 })).result).toBe("pending");
    await drained();
    expect(await bench.held()).toBe(0);
  });

  test("a hitUpstreamAtMs in the future blocked the host", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, minSlotHoldMs: 100, smoothReleaseIntervalMs: 100 });
    await bench.release(await bench.take("a"), { hitUpstreamAtMs: bench.clock.now() + 86_400_000 });
    await bench.clock.run(200);
    await bench.take("b");
  });

  test("a slot stayed idle for up to 500 ms after each release", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    const token = await bench.take("z");
    const next = await bench.want("a");
    await bench.clock.run(130);
    await bench.release(token);
    expect(next.isGranted).toBe(true);
  });

  test("a grant cost five calls to the store", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    const token = await bench.take("z");
    const next = await bench.want("a");
    bench.calls.length = 0;
    await bench.release(token);
    expect(next.isGranted).toBe(true);
    expect(bench.calls.length).toBeLessThanOrEqual(3);
  });

  test("an attempt waited for another host", async () => {
    const bench = new Bench();
    await bench.queue.report({ host: "h", status: 200 });
    await bench.queue.report({ host: "other", status: 200 });
    bench.stalled = [];
    await bench.begin("a");
    const stuck = bench.stalled;
    bench.stalled = undefined;
    const answer = await bench.ask("a", { host: "other", hostname: "other", waitMs: 1 });
    expect(answer.result).toBe("granted");
    for (const go of stuck) go();
  });

  test("logs contained tokens", async () => {
    const bench = new Bench();
    const token = await bench.take("a");
    await bench.release(token, { status: 200 });
    const said = JSON.stringify([bench.events, bench.queue.dump(), await bench.snapshot()]);
    expect(said).not.toContain(token);
  });
});

/** The token of the last grant. */
function newest(bench: Bench, waiting: readonly { session: { id: string }; isGranted: boolean; slotToken: string }[]) {
  const last = bench.ofType("granted").at(-1)?.session;
  return waiting.find(({ session }) => session.id === last)?.slotToken ?? "";
}
