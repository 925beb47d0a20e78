import { drained } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

test("an end is counted when another instance committed it while the session's own was on its way", async () => {
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
  two.stalled = undefined;
  for (const goOn of stalled) goOn();
  await two.clock.run(2_000);
  expect([one, two].map(({ queue }) => queue.counts.timeout)).toEqual([0, 1]);
});

test("a session is throttled once, also when its client got `pending` after that was decided", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, breaker: { consecutiveErrors: 1, openSeconds: 2 } });
  const token = await bench.take("z");
  await bench.queue.report({ host: "h", status: 503 });
  await bench.clock.run(1_000);
  const late: (() => void)[] = [];
  bench.late = late;
  bench.queue.release({ slotToken: token });
  const first = bench.ask("a");
  await bench.clock.run(600);
  const answer = await first;
  if (answer.result !== "pending") throw new Error(`Expected pending, got ${answer.result}`);
  bench.late = undefined;
  for (const answered of late) answered();
  await drained();
  // The breaker has closed, and the instance no longer keeps the session.
  await bench.clock.run(10_000);
  expect(await bench.queue.poll(answer.session)).toMatchObject({ result: "throttled", throttleCode: 503 });
  expect(bench.queue.counts).toMatchObject({ throttled: 1, granted: 1 });
});

test("a session that is throttled as its deadline passes is counted", async () => {
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
