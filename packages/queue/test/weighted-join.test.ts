import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** A bucket that joins a hot host starts at the minimum of the buckets that wait: judged by who gets the slots. */

const HOLD_MS = 250;
const BASE = {
  globalMaxWaiters: -1,
  maxWaitMs: 600_000,
  weightedScheduler: { enabled: true, hotPendingMin: 4 },
} as const;

/** Clients that hold each slot for a while and ask again at once, until `stop`. Grants are counted by bucket. */
class Crowd {
  readonly bench: Bench;
  readonly grants: string[] = [];
  #isOver = false;

  constructor(config: object) {
    this.bench = new Bench({ ...BASE, ...config });
  }

  /** Clients of the bucket that ask all the time. */
  keepAsking(bucket: string, clients: number): void {
    for (let client = 0; client < clients; client++) void this.#loop(bucket);
  }

  /** One session of the bucket. */
  async askOnce(bucket: string, holdMs = HOLD_MS): Promise<number> {
    const askedAt = this.bench.clock.now();
    let answer = await this.bench.ask(bucket, { waitMs: 500 });
    while (answer.result === "pending") {
      const again = await this.bench.queue.poll(answer.session);
      if (again.result === "pending") continue;
      answer = again as never;
    }
    if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
    this.grants.push(bucket);
    const waitedMs = this.bench.clock.now() - askedAt;
    const { slotToken } = answer;
    this.bench.clock.setTimer(() => this.bench.queue.release({ slotToken }), holdMs);
    return waitedMs;
  }

  async run(ms: number): Promise<void> {
    await this.bench.clock.run(ms);
  }

  /** Waits until the weighted scheduler decides. */
  async untilHot(): Promise<void> {
    for (let tries = 0; this.bench.queue.glance("h")?.isHot !== true; tries++) {
      if (tries > 200) throw new Error("The host did not become hot");
      await this.run(100);
    }
  }

  stop(): void {
    this.#isOver = true;
  }

  async #loop(bucket: string): Promise<void> {
    while (!this.#isOver) {
      await this.askOnce(bucket);
      await new Promise<void>((resolve) => this.bench.clock.setTimer(resolve, HOLD_MS));
    }
  }
}

/** The part of the grants that the bucket got. */
const shareOf = (grants: readonly string[], bucket: string) =>
  grants.filter((one) => one === bucket).length / grants.length;

describe("a bucket that joins a hot host", () => {
  test.each([1, 2])(
    "gets no more than its share of the next grants, with %i slots per bucket",
    async (maxSlotPerIp) => {
      const crowd = new Crowd({ maxSlotPerHost: 2, maxSlotPerIp, maxWaitersPerHost: 0 });
      for (const bucket of ["a", "b", "c", "d"]) crowd.keepAsking(bucket, 6);
      await crowd.untilHot();
      await crowd.run(10_000);
      const before = crowd.grants.length;
      crowd.keepAsking("newcomer", 6);
      await crowd.run(10_000);
      const after = crowd.grants.slice(before);
      expect(after.length).toBeGreaterThan(50);
      expect(shareOf(after, "newcomer")).toBeGreaterThan(0.15);
      expect(shareOf(after, "newcomer")).toBeLessThan(0.25);
      // Those that waited before it are not overtaken: each of them is served before the newcomer's second turn.
      const second = after.indexOf("newcomer", after.indexOf("newcomer") + 1);
      expect(new Set(after.slice(0, second))).toEqual(new Set(["a", "b", "c", "d", "newcomer"]));
      crowd.stop();
    },
  );

  test("gets no more than its share if it enters from outside the pool", async () => {
    const crowd = new Crowd({ maxSlotPerHost: 2, maxSlotPerIp: 1, maxWaitersPerHost: 8 });
    for (const bucket of ["a", "b", "c", "d"]) crowd.keepAsking(bucket, 6);
    await crowd.untilHot();
    await crowd.run(10_000);
    const before = crowd.grants.length;
    crowd.keepAsking("newcomer", 6);
    await crowd.run(10_000);
    const after = crowd.grants.slice(before);
    expect(shareOf(after, "newcomer")).toBeGreaterThan(0.1);
    expect(shareOf(after, "newcomer")).toBeLessThan(0.25);
    crowd.stop();
  });

  test("gets no more than its share while another bucket waits at its limit and is far behind", async () => {
    const crowd = new Crowd({ maxSlotPerHost: 3, maxSlotPerIp: 1, maxWaitersPerHost: 0 });
    for (const bucket of ["a", "b", "c", "d"]) crowd.keepAsking(bucket, 6);
    await crowd.untilHot();
    // It gets its first slot soon and keeps it, and its second session waits.
    void crowd.askOnce("slow", 25_000);
    void crowd.askOnce("slow", 25_000);
    await crowd.run(10_000);
    const before = crowd.grants.length;
    crowd.keepAsking("newcomer", 6);
    await crowd.run(10_000);
    const after = crowd.grants.slice(before);
    expect(shareOf(after, "newcomer")).toBeGreaterThan(0.15);
    expect(shareOf(after, "newcomer")).toBeLessThan(0.25);
    crowd.stop();
  });

  test("gets no more than its share if it comes back after a while without sessions", async () => {
    const crowd = new Crowd({ maxSlotPerHost: 2, maxSlotPerIp: 1, maxWaitersPerHost: 0 });
    for (const bucket of ["a", "b", "c", "d"]) crowd.keepAsking(bucket, 6);
    await crowd.untilHot();
    void crowd.askOnce("back");
    await crowd.run(30_000);
    const before = crowd.grants.length;
    crowd.keepAsking("back", 6);
    await crowd.run(10_000);
    const after = crowd.grants.slice(before);
    expect(shareOf(after, "back")).toBeGreaterThan(0.15);
    expect(shareOf(after, "back")).toBeLessThan(0.25);
    crowd.stop();
  });
});

/** Buckets with one session each, some more than the host can serve, that hold their slot for long. Returns their waits. */
async function waitsOfOneShots(isEnabled: boolean): Promise<number[]> {
  const weightedScheduler = { enabled: isEnabled, hotPendingMin: 4, hotPendingFactor: 1 };
  const crowd = new Crowd({ maxSlotPerHost: 5, maxSlotPerIp: 1, maxWaitersPerHost: 0, weightedScheduler });
  const waits: Promise<number>[] = [];
  for (let tick = 0; tick < 150; tick++) {
    const arrivals = tick === 0 ? 20 : tick % 5 === 0 ? 0 : 1;
    for (let at = 0; at < arrivals; at++) waits.push(crowd.askOnce(`bucket ${waits.length}`, 1_000));
    await crowd.run(200);
  }
  await crowd.run(60_000);
  return Promise.all(waits);
}

test("a bucket with a single session is not overtaken by those that come after it: the longest wait is that without the scheduler", async () => {
  const longest = Math.max(...(await waitsOfOneShots(true)));
  expect(longest).toBeGreaterThan(3_000);
  expect(longest).toBe(Math.max(...(await waitsOfOneShots(false))));
});
