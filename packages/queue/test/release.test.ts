import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const sem = (bench: Bench, limit: number) =>
  bench.queue.begin({ host: "sem:x", hostname: "sem:x", bucket: "a", limit, waitMs: 1 });

const ends = (bench: Bench) => bench.ofType("released").map(({ endsInMs }) => endsInMs);

describe("when a released slot ends: max(hit + minSlotHoldMs, last end + spacing, now), at most a lease from now", () => {
  test("the minimum hold starts at the hit", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, smoothReleaseIntervalMs: 0 });
    const token = await bench.take();
    const now = bench.clock.now();
    await bench.release(token, { hitUpstreamAtMs: now - 400, callerNow: now });
    expect(ends(bench)).toEqual([600]);
  });

  test("without a hit there is no minimum hold", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, smoothReleaseIntervalMs: 0 });
    await bench.release(await bench.take());
    expect(ends(bench)).toEqual([0]);
  });

  test("a wrong clock of the caller does no harm: only the distance to its own now counts", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, smoothReleaseIntervalMs: 0 });
    await bench.release(await bench.take(), { hitUpstreamAtMs: 9_000_000_000_000, callerNow: 9_000_000_000_700 });
    expect(ends(bench)).toEqual([300]);
  });

  test.each([
    { name: "in the future", hitAgoMs: -5_000 },
    { name: "longer ago than a lease", hitAgoMs: 31_000 },
  ])("a hit $name counts as now", async ({ hitAgoMs }) => {
    const bench = new Bench({ minSlotHoldMs: 1_000, smoothReleaseIntervalMs: 0 });
    const token = await bench.take();
    await bench.release(token, { hitUpstreamAtMs: bench.clock.now() - hitAgoMs });
    expect(ends(bench)).toEqual([1_000]);
  });

  test("releases are spaced by minSlotHoldMs / maxSlotPerHost by default", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, maxSlotPerHost: 4 });
    const tokens = await Promise.all(["a", "b", "c"].map((bucket) => bench.take(bucket)));
    for (const token of tokens) await bench.release(token);
    expect(ends(bench)).toEqual([0, 250, 500]);
  });

  test("a spacing of zero or less turns it off", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, smoothReleaseIntervalMs: -1 });
    const tokens = await Promise.all(["a", "b"].map((bucket) => bench.take(bucket)));
    for (const token of tokens) await bench.release(token);
    expect(ends(bench)).toEqual([0, 0]);
  });

  test("at most one lease time from now", async () => {
    const bench = new Bench({ smoothReleaseIntervalMs: 25_000, zombieTimeoutSeconds: 30, maxSlotPerHost: 3 });
    const tokens = await Promise.all(["a", "b", "c"].map((bucket) => bench.take(bucket)));
    for (const token of tokens) await bench.release(token);
    expect(ends(bench)).toEqual([0, 25_000, 30_000]);
  });

  test("when it ends, the slot is granted in the same turn, without a call", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, maxSlotPerHost: 1 });
    const token = await bench.take("a");
    const next = await bench.want("b");
    await bench.release(token, { hitUpstreamAtMs: bench.clock.now() });
    await bench.clock.run(999);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(1);
    expect(next.isGranted).toBe(true);
  });

  test("a refresh of the configuration restarts the spacing", async () => {
    const config = { smoothReleaseIntervalMs: 5_000, maxSlotPerHost: 3 };
    const bench = new Bench(config);
    const tokens = await Promise.all(["a", "b"].map((bucket) => bench.take(bucket)));
    await bench.release(tokens[0] as string);
    bench.queue.reconfigure(config);
    await bench.release(tokens[1] as string);
    expect(ends(bench)).toEqual([0, 0]);
  });
});

describe("a slot that is given back by cancel ends as by a release, with its grant as the hit", () => {
  test("the minimum hold starts at the grant", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, maxSlotPerHost: 1 });
    const { session } = await bench.want("a");
    const next = await bench.want("b");
    await bench.clock.run(300);
    bench.queue.cancel(session);
    await bench.clock.run(699);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(1);
    expect(next.isGranted).toBe(true);
  });

  test("the minimum hold also counts if the cancellation reaches an instance whose arrival the store does not have yet", async () => {
    const config = { minSlotHoldMs: 1_000, maxSlotPerHost: 1, smoothReleaseIntervalMs: 0 };
    const one = new Bench(config, undefined, true);
    const two = new Bench(config, one, true);
    await Promise.all([one.queue.start(), two.queue.start()]);
    await one.release(await one.take("b"));
    await one.clock.run(10);
    one.stalled = [];
    const session = await one.begin("a");
    const used = two.follow(session);
    await two.clock.run(0);
    expect(used.isGranted).toBe(true);
    const next = await two.want("c");
    expect(one.queue.cancel(session)).toBe("canceled");
    const stalled = one.stalled;
    one.stalled = undefined;
    for (const goOn of stalled) goOn();
    await one.clock.run(999);
    expect(next.isGranted).toBe(false);
    await one.clock.run(1);
    expect(next.isGranted).toBe(true);
  });

  test("a slot that is still held for its minimum is lost to its owner, and its session has ended", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, maxSlotPerHost: 1, defaultGrantedCleanupDelay: 0.5 });
    const { session, slotToken } = await bench.want("a");
    await bench.clock.run(400);
    expect(bench.queue.cancel(session)).toBe("canceled");
    await drained();
    expect(await bench.queue.renew(slotToken)).toBeUndefined();
    const ended = { result: "timeout", reason: "canceled" };
    for (const waitMs of [0, 550, 1_000]) {
      await bench.clock.run(waitMs);
      expect(await bench.queue.poll(session)).toEqual(ended);
    }
    expect(await bench.held()).toBe(0);
    expect(bench.queue.counts).toMatchObject({ granted: 1, canceled: 1, timeout: 0 });
  });

  test("releases and cancellations are spaced alike", async () => {
    const bench = new Bench({ smoothReleaseIntervalMs: 1_000, maxSlotPerHost: 2 });
    const one = await bench.take("a");
    const two = await bench.want("b");
    const next = [await bench.want("c"), await bench.want("d")];
    await bench.release(one);
    bench.queue.cancel(two.session);
    await bench.clock.run(999);
    expect(next.filter(({ isGranted }) => isGranted)).toHaveLength(1);
    await bench.clock.run(1);
    expect(next.filter(({ isGranted }) => isGranted)).toHaveLength(2);
  });

  test("the cooldown of the bucket starts", async () => {
    const bench = new Bench({ ipCooldownSeconds: 3, maxSlotPerHost: 5 });
    const { session } = await bench.want("a");
    bench.queue.cancel(session);
    const again = await bench.want("a");
    await bench.clock.run(2_999);
    expect(again.isGranted).toBe(false);
    await bench.clock.run(1_001);
    expect(again.isGranted).toBe(true);
  });
});

describe("release and renew", () => {
  test("a token that names no possible host causes no call of the store, which could only fail again and again", async () => {
    const bench = new Bench({}, undefined, true);
    for (const slotToken of ["", "slot_", "slot_.x", "slot_h", "slot_h\0.x", "slot_h.x\0"]) {
      await bench.release(slotToken);
      expect(await bench.queue.renew(slotToken)).toBeUndefined();
    }
    expect(bench.calls).toEqual([]);
    expect([bench.queue.hostCount, bench.queue.overview().unsent]).toEqual([0, 0]);
    expect(bench.ofType("late-release")).toHaveLength(6);
  });

  test("twice, late, or with a wrong token does not affect the slot of another client", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, zombieTimeoutSeconds: 2 });
    const token = await bench.take("a");
    await bench.clock.run(2_000);
    const other = await bench.take("b");
    await bench.release(token);
    await bench.release("anything");
    expect(await bench.held()).toBe(1);
    await bench.release(other);
    await bench.release(other);
    expect(bench.queue.counts.released).toBe(1);
  });

  test("a failed release is retried in the background until it succeeds", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    const token = await bench.take("a");
    bench.isStoreDown = true;
    bench.queue.release({ slotToken: token });
    await bench.clock.run(2_000);
    expect(bench.queue.dump().unsent).toBe(1);
    bench.isStoreDown = false;
    await bench.clock.run(500);
    expect(await bench.held()).toBe(0);
    expect(bench.queue.dump().unsent).toBe(0);
  });

  test("a retried release has no effect after the lease has ended", async () => {
    const bench = new Bench({ zombieTimeoutSeconds: 3 });
    const token = await bench.take("a");
    bench.isStoreDown = true;
    bench.queue.release({ slotToken: token });
    await bench.clock.run(4_000);
    bench.isStoreDown = false;
    await bench.clock.run(500);
    expect(bench.queue.dump().unsent).toBe(0);
    expect(await bench.held()).toBe(0);
  });

  test("a retried release keeps the time of the hit", async () => {
    const bench = new Bench({ minSlotHoldMs: 1_000, smoothReleaseIntervalMs: 0 });
    const token = await bench.take("a");
    bench.isStoreDown = true;
    bench.queue.release({ slotToken: token, hitUpstreamAtMs: bench.clock.now() });
    await drained();
    bench.isStoreDown = false;
    await bench.clock.run(500);
    expect(ends(bench)).toEqual([500]);
  });

  test("renewing keeps the slot; a lease that ended cannot be renewed", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, zombieTimeoutSeconds: 2, maxHoldSeconds: 5 });
    const token = await bench.take("a");
    for (let round = 0; round < 3; round++) {
      await bench.clock.run(1_500);
      expect(await bench.queue.renew(token)).toEqual({ leaseMs: Math.min(2_000, 5_000 - 1_500 * (round + 1)) });
    }
    await bench.clock.run(1_500);
    expect(await bench.queue.renew(token)).toBeUndefined();
    expect(await bench.held()).toBe(0);
  });
});

describe("when a release is accepted", () => {
  /** A queue on a shared store that holds a slot; `others` have sent a beat. */
  async function holding(...others: string[]) {
    const bench = new Bench({}, undefined, true);
    for (const instance of others) await bench.memory.beat({ instance, ttlMs: 60_000, about: {}, hosts: [] });
    await bench.queue.start();
    const slotToken = await bench.take();
    const accepted: number[] = [];
    const release = () => bench.queue.release({ slotToken }, () => accepted.push(bench.commits.length));
    return { commits: bench.commits.length, accepted, release };
  }

  test("by an instance that is alone: immediately", async () => {
    const { commits, accepted, release } = await holding();
    release();
    expect(accepted).toEqual([commits]);
  });

  test("while another instance is alive: when the store has it", async () => {
    const { commits, accepted, release } = await holding("two");
    release();
    expect(accepted).toEqual([]);
    await drained();
    expect(accepted).toEqual([commits + 1]);
  });
});

describe("named semaphores", () => {
  test("the first current user sets the capacity; a different one is refused while there are users", async () => {
    const bench = new Bench({ maxSlotPerHost: 5, maxSlotPerIp: 1 });
    const one = await sem(bench, 2);
    expect(one.result).toBe("granted");
    await expect(sem(bench, 3)).rejects.toMatchObject({ code: "CAPACITY_MISMATCH", capacity: 2, requested: 3 });
    expect((await sem(bench, 2)).result).toBe("granted");
    const third = sem(bench, 2);
    await bench.clock.run(10);
    expect((await third).result).toBe("pending");
  });

  test("a different capacity is refused even if the store takes longer than the caller would wait for a slot", async () => {
    const bench = new Bench();
    await sem(bench, 2);
    bench.stalled = [];
    const other = sem(bench, 3);
    const refused = expect(other).rejects.toMatchObject({ code: "CAPACITY_MISMATCH", capacity: 2, requested: 3 });
    await bench.clock.run(50);
    const answers = bench.stalled;
    bench.stalled = undefined;
    for (const answer of answers) answer();
    await refused;
  });

  test("when the last user has left, the next one may choose a different capacity", async () => {
    const bench = new Bench();
    const one = await sem(bench, 2);
    if (one.result === "granted") await bench.release(one.slotToken);
    expect((await sem(bench, 3)).result).toBe("granted");
  });
});

describe("live reconfiguration", () => {
  test("sessions, their places and their polls are kept, and a raised limit is used immediately", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    await bench.take("z");
    const waiting = await Promise.all(["a", "b"].map((bucket) => bench.want(bucket)));
    bench.queue.reconfigure({ maxSlotPerHost: 3 });
    await drained();
    expect(waiting.map(({ isGranted }) => isGranted)).toEqual([true, true]);
  });

  test("a bad configuration changes nothing", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    expect(() => bench.queue.reconfigure({ maxSlotPerHost: 0 })).toThrow(RangeError);
    await bench.take("z");
    expect((await bench.want("a")).isGranted).toBe(false);
  });
});
