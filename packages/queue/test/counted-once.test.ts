import type { SessionClaims } from "@slotkeeper/protocol";
import { drained } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** How often sessions were counted as ended, at all instances together. */
function ends(...benches: readonly Bench[]): number {
  return benches.reduce((sum, { queue: { counts } }) => {
    return sum + counts.granted + counts.timeout + counts.throttled + counts.canceled;
  }, 0);
}

test("an end is counted by the instance that committed it, even if the session's own instance sends one at the same time", async () => {
  const config = { maxSlotPerHost: 1, maxWaitMs: 5_000 };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  const token = await one.take("z");
  await two.want("a");
  await two.clock.run(4_900);
  const stalled: (() => void)[] = [];
  two.stalled = stalled;
  await two.clock.run(200);
  await one.release(token);
  await two.clock.run(2);
  two.stalled = undefined;
  for (const goOn of stalled) goOn();
  await two.clock.run(2_000);
  expect([one, two].map(({ queue }) => queue.counts.timeout)).toEqual([1, 0]);
});

test("a session that is polled exactly at its deadline is counted", async () => {
  const bench = new Bench({ maxWaitMs: 3_000 });
  const sessions: SessionClaims[] = [];
  // Runs before the session's own timer, which is set later for the same time.
  bench.clock.setTimer(() => void sessions.map((session) => bench.queue.poll(session)), 3_000);
  sessions.push(await bench.begin("a"));
  await bench.clock.run(4_000);
  expect(bench.queue.counts).toMatchObject({ session_created: 1, timeout: 1 });
  expect(ends(bench)).toBe(1);
});

test("a session that its client cancels while its arrival is on its way is counted once", async () => {
  const config = { maxSlotPerHost: 1, collectMs: 100, sessionIdleSeconds: 1, defaultGrantedCleanupDelay: 0 };
  const bench = new Bench(config);
  await bench.take("z");
  const late: (() => void)[] = [];
  bench.late = late;
  const first = bench.ask("a");
  // The store has the arrival, and its answer is late: longer than the session may be idle.
  await bench.clock.run(2_000);
  const answer = await first;
  if (answer.result !== "pending") throw new Error(`Expected pending, got ${answer.result}`);
  expect(bench.queue.cancel(answer.session)).toBe("canceled");
  bench.late = undefined;
  for (const answered of late) answered();
  await bench.clock.run(100);
  expect(bench.queue.counts).toMatchObject({ session_created: 2, granted: 1, canceled: 1, timeout: 0 });
});

test("a slot that another instance has taken over is counted once, and a poll that waits for it is answered", async () => {
  const config = { maxSlotPerHost: 1, collectMs: 500 };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  one.isUnnotified = true;
  const session = await one.begin("a");
  const leaving = new AbortController();
  const late: (() => void)[] = [];
  one.late = late;
  const left = one.queue.poll(session, { signal: leaving.signal }).catch(() => "left");
  await drained();
  leaving.abort();
  one.late = undefined;
  for (const answered of late) answered();
  await drained();
  // The client polls the other instance, which takes the slot over, and returns when the first is about to take the
  // slot back.
  expect(await two.queue.poll(session)).toMatchObject({ result: "granted" });
  const stalled: (() => void)[] = [];
  one.stalled = stalled;
  await one.clock.run(600);
  const again = one.queue.poll(session);
  one.stalled = undefined;
  for (const goOn of stalled) goOn();
  expect([await left, (await again).result]).toEqual(["left", "granted"]);
  await one.clock.run(30_000);
  expect([ends(one, two), one.queue.counts.granted]).toEqual([1, 1]);
});

test("if the breaker opens, sessions of all instances end, and each is counted once", async () => {
  const config = { maxSlotPerHost: 1, breaker: { consecutiveErrors: 1, openSeconds: 2 } };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  await one.take("z");
  const waiting = [await one.want("a"), await two.want("b")];
  await two.queue.report({ host: "h", status: 503 });
  await one.clock.run(5_000);
  expect(waiting.map(({ last }) => last?.result)).toEqual(["throttled", "throttled"]);
  expect([one, two].map(({ queue }) => queue.counts.throttled)).toEqual([0, 2]);
  expect(ends(one, two)).toBe(3);
});

test("a session is throttled once, even if its client got `pending` after the decision", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, breaker: { consecutiveErrors: 1, openSeconds: 2 } });
  const token = await bench.take("z");
  await bench.queue.report({ host: "h", status: 503 });
  await bench.clock.run(1_000);
  const late: (() => void)[] = [];
  bench.late = late;
  bench.queue.release({ slotToken: token });
  const first = bench.ask("a");
  await bench.clock.run(1_000);
  const answer = await first;
  if (answer.result !== "pending") throw new Error(`Expected pending, got ${answer.result}`);
  bench.late = undefined;
  for (const answered of late) answered();
  await drained();
  // The breaker is half open, and the instance no longer keeps the session.
  await bench.clock.run(10_000);
  expect(await bench.queue.poll(answer.session)).toMatchObject({ result: "throttled", throttleCode: 503 });
  expect(bench.queue.counts).toMatchObject({ throttled: 1, granted: 1 });
});

test("a session that is throttled at its deadline is counted", async () => {
  const config = { maxSlotPerHost: 1, maxWaitMs: 3_000, breaker: { consecutiveErrors: 1, openSeconds: 10 } };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  one.isStoreDown = true;
  await one.begin("a");
  await two.queue.report({ host: "h", status: 503 });
  const late: (() => void)[] = [];
  one.late = late;
  one.isStoreDown = false;
  await one.clock.run(1_000);
  // Refused: the other instance came first. The answer to the next attempt arrives after the deadline.
  late.shift()?.();
  await one.clock.run(2_500);
  one.late = undefined;
  for (const answered of late) answered();
  await one.clock.run(2_000);
  const { timeout, throttled } = one.queue.counts;
  expect(timeout + throttled).toBe(1);
});

test("a grant is counted even if another instance takes the slot over before the first knows of its commit", async () => {
  const config = { maxSlotPerHost: 1 };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  const session = await one.begin("a");
  // A second session waits here, so that this instance is notified of the other's commits.
  await one.want("b");
  const late: (() => void)[] = [];
  one.late = late;
  const first = one.queue.poll(session);
  await drained();
  const second = await two.queue.poll(session);
  one.late = undefined;
  for (const answered of late) answered();
  await drained();
  expect([await first, second].map(({ result }) => result)).toEqual(["granted", "granted"]);
  expect([one, two].map(({ queue }) => queue.counts.granted)).toEqual([1, 0]);
});

test("repeating a first call after its session ended begins no second session, even if a poll is faster", async () => {
  const config = { maxSlotPerHost: 1, collectMs: 100, sessionIdleSeconds: 1, defaultGrantedCleanupDelay: 0 };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  await one.take("z");
  await one.begin("a", { sessionId: "s" });
  await one.clock.run(2_000);
  expect(one.queue.counts.timeout).toBe(1);
  const stalled: (() => void)[] = [];
  two.stalled = stalled;
  const again = two.ask("a", { sessionId: "s" });
  await two.clock.run(1_000);
  const answer = await again;
  if (answer.result !== "pending") throw new Error(`Expected pending, got ${answer.result}`);
  expect(await one.queue.poll(answer.session)).toMatchObject({ result: "timeout" });
  two.stalled = undefined;
  for (const goOn of stalled) goOn();
  await two.clock.run(1_000);
  expect([one, two].map(({ queue }) => queue.counts.session_created)).toEqual([2, 0]);
});

test("a poll that is decided after the deadline does not take the slot from the client", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, maxWaitMs: 3_000, defaultGrantedCleanupDelay: 0 });
  const session = await bench.begin("a");
  expect(await bench.queue.poll(session)).toMatchObject({ result: "granted" });
  await bench.clock.run(2_900);
  const stalled: (() => void)[] = [];
  bench.stalled = stalled;
  const again = bench.queue.poll(session);
  await bench.clock.run(500);
  expect(await again).toMatchObject({ result: "timeout" });
  bench.stalled = undefined;
  for (const goOn of stalled) goOn();
  await bench.clock.run(100);
  expect(await bench.held()).toBe(1);
  expect(ends(bench)).toBe(1);
});

test("a slot that its client did not fetch here, and released at another instance, is not granted again", async () => {
  const one = new Bench({ maxSlotPerHost: 1 }, undefined, true);
  const two = new Bench({ maxSlotPerHost: 1 }, one);
  one.isUnnotified = true;
  const session = await one.begin("a");
  const late: (() => void)[] = [];
  one.late = late;
  const left = new AbortController();
  const poll = one.queue.poll(session, { signal: left.signal });
  await drained();
  left.abort(new Error("the client left"));
  await expect(poll).rejects.toThrow("the client left");
  one.late = undefined;
  for (const answered of late) answered();
  await drained();
  const elsewhere = two.follow(session);
  await drained();
  await two.release(elsewhere.slotToken);
  await two.clock.run(10);
  expect(await one.queue.poll(session)).toEqual({ result: "timeout", reason: "released" });
  expect(one.queue.counts.granted + two.queue.counts.granted).toBe(1);
});

test("a copy that was idle here does not end a session whose client moved on to another instance and comes back", async () => {
  const config = { maxSlotPerHost: 1, pollWindowMs: 300, sessionIdleSeconds: 2, defaultGrantedCleanupDelay: 5 };
  const one = new Bench(config, undefined, true);
  const two = new Bench(config, one);
  await two.take("z");
  one.isUnnotified = true;
  const session = await one.begin("a");
  await one.clock.run(1_800);
  const elsewhere = two.queue.poll(session);
  await one.clock.run(400);
  expect((await elsewhere).result).toBe("pending");
  const back = one.queue.poll(session);
  await one.clock.run(300);
  expect((await back).result).toBe("pending");
  expect(ends(one)).toBe(0);
});
