import type { SessionClaims } from "@slotkeeper/protocol";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, it } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** END1 to END4 of `standing.ts`. */

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** `KEPT_MS` of `standing.ts`. */
const KEPT_MS = 10 * MINUTE_MS;
const FEW = 3;

/** One instance, or two on a shared store, whose sessions may wait for a day. The host keeps few ends. */
function benchOf(most = FEW): Bench {
  return new Bench({ maxSlotPerHost: 2, maxSlotPerIp: -1, maxWaitMs: DAY_MS }, undefined, true, most);
}

function other(bench: Bench, most = FEW): Bench {
  return new Bench({ maxSlotPerHost: 2, maxSlotPerIp: -1, maxWaitMs: DAY_MS }, bench, true, most);
}

/** Sessions that get a slot and release it. */
async function use(bench: Bench, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    await bench.clock.run(20);
    await bench.release(await bench.take("u"));
    await bench.clock.run(20);
  }
}

async function ends(bench: Bench): Promise<number> {
  return ((await bench.memory.peek(["h"])).get("h")?.records ?? []).filter(({ kind }) => kind === "ending").length;
}

/** A session that had its slot. */
async function ended(bench: Bench): Promise<SessionClaims> {
  const answer = await bench.ask("a", { waitMs: 1 });
  if (answer.result !== "granted") throw new Error(`Expected a slot, got ${answer.result}`);
  await bench.release(answer.slotToken);
  await bench.clock.run(20);
  return answer.session;
}

describe("the ends of sessions that may wait for a day", () => {
  it("are kept for the newest sessions only (END1)", async () => {
    const bench = benchOf();
    await use(bench, 20);
    expect(await ends(bench)).toBe(FEW);
  });

  it("are kept for ten minutes only (END1)", async () => {
    const bench = benchOf(1_000);
    await use(bench, 20);
    expect(await ends(bench)).toBe(20);
    await bench.clock.run(KEPT_MS);
    await use(bench, 1);
    expect(await ends(bench)).toBe(1);
  });

  it("do not keep the host from being forgotten after ten minutes, and it then starts as one that has forgotten ends (END4)", async () => {
    const bench = benchOf(1_000);
    const session = await ended(bench);
    await bench.clock.run(KEPT_MS - 5 * MINUTE_MS);
    await bench.queue.sweep();
    expect(await bench.memory.hostKeys()).toEqual(["h"]);
    await bench.clock.run(6 * MINUTE_MS);
    await bench.queue.sweep();
    expect(await bench.memory.hostKeys()).toEqual([]);
    expect(await bench.queue.poll(session)).toEqual({ result: "timeout", reason: "forgotten" });
  });
});

describe("a session whose end was forgotten (END3)", () => {
  it("gets no second slot, with any of its tokens and at any instance", async () => {
    const one = benchOf();
    const two = other(one);
    const session = await ended(one);
    await use(one, 20);
    for (const { queue } of [one, two])
      expect(await queue.poll(session)).toEqual({ result: "timeout", reason: "forgotten" });
    expect(await one.held()).toBe(0);
  });

  it("is not counted as ended again if its client cancels it", async () => {
    const bench = benchOf();
    const session = await ended(bench);
    await use(bench, 20);
    await bench.clock.run(10_000);
    bench.queue.cancel(session);
    await bench.clock.run(20);
    expect(bench.ofType("canceled")).toEqual([]);
  });

  it("gets no second slot if it arrived at a time that the store had not reached", async () => {
    const bench = benchOf();
    const arrivedAt = bench.clock.now() + 5_000;
    const session = { id: "early", host: "h", bucket: "a", arrivedAt, deadlineAt: arrivedAt + DAY_MS };
    const early = bench.follow(session);
    await drained();
    expect(early.isGranted).toBe(true);
    await bench.release(early.slotToken);
    await use(bench, 20);
    await bench.clock.run(6_000);
    expect(await bench.queue.poll(session)).toEqual({ result: "timeout", reason: "forgotten" });
  });
});

describe("a session that has not ended, but that the book does not have", () => {
  it("continues if its instance was considered dead: its newest token is from after the forgotten ends", async () => {
    const one = benchOf();
    const two = other(one);
    await fill(one);
    const first = await begun(two, "a");
    for (let at = 0; at < 10; at++) {
      one.queue.cancel(await begun(one, "e"));
      await one.clock.run(2_000);
    }
    const newest = await latestToken(two, first);
    expect(newest.pendingAt).toBeGreaterThan(first.arrivedAt);
    two.queue.close();
    await one.clock.run(6_000);
    expect(await waiters(one)).not.toContain(first.id);
    void one.queue.poll(newest);
    await one.clock.run(200);
    expect(await waiters(one)).toContain(first.id);
  });

  it("continues if its first call was answered in an outage, however long that lasted", async () => {
    const one = benchOf();
    await use(one, 20);
    await one.clock.run(2_000);
    one.isStoreDown = true;
    const session = await begun(one, "a");
    const two = other(one);
    await one.clock.run(2 * KEPT_MS);
    // Its instance dies with the outage, and the client goes to another one.
    one.queue.close();
    const followed = two.follow(session);
    await drained();
    expect(followed.isGranted).toBe(true);
  });
});

/** Takes both slots for a long time. Another session waits, so that the instance sends quick beats. */
async function fill(bench: Bench): Promise<void> {
  const tokens = [await bench.take("x"), await bench.take("x")];
  await bench.want("w");
  const renew = () => {
    for (const slotToken of tokens) void bench.queue.renew(slotToken);
    bench.clock.setTimer(renew, 10_000);
  };
  renew();
}

/** A first call. Its arrival may wait for other inputs. */
async function begun(bench: Bench, bucket: string): Promise<SessionClaims> {
  const session = bench.begin(bucket);
  await bench.clock.run(1_000);
  return session;
}

async function waiters(bench: Bench): Promise<string[]> {
  const records = (await bench.memory.peek(["h"])).get("h")?.records ?? [];
  return records.filter(({ kind }) => kind === "waiter").map(({ key }) => key);
}

async function latestToken({ queue }: Bench, session: SessionClaims): Promise<SessionClaims> {
  const answer = await queue.poll(session, { waitMs: 0 });
  if (answer.result !== "pending") throw new Error(`Expected pending, got ${answer.result}`);
  return answer.session;
}
