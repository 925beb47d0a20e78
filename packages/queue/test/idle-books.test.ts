import { drained } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const MOST = 10_000;

test("at most 10,000 books of hosts without sessions stay cached, and the least recently used one is dropped first", async () => {
  const bench = new Bench({ maxSlotPerHost: 2, maxWaitMs: 60_000 }, undefined, true);
  const use = async (host: string) => {
    bench.queue.release({ slotToken: await bench.take("a", { host, hostname: host }) });
    await bench.clock.run(2);
  };
  const waiting = await bench.begin("w", { host: "busy", hostname: "busy" });
  for (let at = 0; at < MOST; at++) await use(`h${at}`);
  await drained();
  expect(bench.queue.hostCount).toBe(MOST + 1);
  await use("h0");
  await use("new");
  await drained();
  expect(bench.queue.hostCount).toBe(MOST + 1);
  const cached = new Set(bench.queue.hostKeys());
  expect(["busy", "h0", "h1", "new"].map((host) => cached.has(host))).toEqual([true, true, false, true]);
  expect(await bench.queue.poll(waiting, { waitMs: 0 })).toMatchObject({ session: waiting });
  // The host is read again, unchanged.
  await use("h1");
  await drained();
  expect((await bench.snapshot("h1"))?.inFlight).toBe(0);
  bench.queue.close();
});

test("the estimate of the wait only uses time in which a session waits", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, maxSlotPerIp: 0 });
  const handOver = async (token: string) => {
    await bench.clock.run(100);
    await bench.release(token);
  };
  let token = await bench.take("z");
  for (let at = 0; at < 8; at++) {
    const next = await bench.want("a");
    const last = await bench.want("b");
    await handOver(token);
    await handOver(next.slotToken);
    token = last.slotToken;
  }
  // A minute without callers does not show how fast the queue moves.
  await bench.release(token);
  await bench.clock.run(60_000);
  await bench.take("z");
  const waiting = await bench.want("a");
  const answer = await bench.queue.poll(waiting.session, { waitMs: 0 });
  expect(answer).toMatchObject({ result: "pending", position: 1 });
  expect((answer as { estimatedWaitMs: number }).estimatedWaitMs).toBeLessThan(150);
});
