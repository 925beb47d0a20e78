import type { FairQueueConfig } from "@slotkeeper/protocol";
import { Random } from "@slotkeeper/testkit/random";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

/** What positions promise (ORDER6): while nothing else changes, sessions get their slots in this order. */

const SLOTS = 5;
/** The number of slots that are handed out together. */
const MORE = 9;
const HOST = {
  maxSlotPerHost: SLOTS,
  maxSlotPerIp: -1,
  maxWaitersPerIp: -1,
  maxWaitersPerHost: 0,
  globalMaxWaiters: -1,
  maxWaitMs: 600_000,
  sessionIdleSeconds: 600,
  zombieTimeoutSeconds: 600,
  hosts: { h: { weights: { b: 2, c: 0.5 } } },
} as const;
const TOKENS = { tokens: { limit: 1e9, perSeconds: 1 } };
const CLASSES = { chat: { weight: 3 }, batch: { weight: 0.5 } };

const HOSTS: Readonly<Record<string, FairQueueConfig>> = {
  "slots and their use": {},
  arrival: { order: "fifo" },
  "a budget": { order: "budget:tokens", budgets: TOKENS },
  classes: { classes: CLASSES },
  "classes by a budget": { classes: CLASSES, order: "budget:tokens", budgets: TOKENS },
};

const BUCKETS = ["a", "b", "c", "d"];

/** A paused host at which buckets of different weights hold slots, have used some, and have more waiters than it has slots. */
async function pausedHost(config: FairQueueConfig, seed: number): Promise<Bench> {
  const random = new Random(seed);
  const bench = new Bench({ ...HOST, ...config });
  const isClassed = config.classes !== undefined;
  // A line whose last waiter is granted changes the shares of the others, which positions do not foresee.
  const buckets = isClassed ? BUCKETS.slice(0, 2) : BUCKETS;
  const more = () => ({
    cost: config.budgets && { tokens: random.int(1, 400) },
    class: isClassed ? random.pick(["chat", "batch", "default"]) : undefined,
  });
  const sessions: Followed[] = [];
  for (const bucket of buckets) for (let one = 0; one < 3; one++) sessions.push(await bench.want(bucket, more()));
  for (let round = 0; round < 12; round++) {
    await bench.clock.run(random.int(10, 900));
    const holding = sessions.filter(({ isGranted }) => isGranted);
    if (holding.length === 0) break;
    const one = random.pick(holding);
    sessions.splice(sessions.indexOf(one), 1);
    await bench.release(one.slotToken);
    if (random.chance(0.7)) sessions.push(await bench.want(random.pick(buckets), more()));
  }
  await bench.queue.operate({ kind: "pause", host: "h", hostname: "h", isPaused: true });
  for (let one = 0; one < 40; one++) {
    await bench.clock.run(random.int(0, 3));
    await bench.want(random.pick(buckets), more());
  }
  await bench.clock.run(random.int(10, 500));
  return bench;
}

describe.each(Object.entries(HOSTS))("at a host ordered by %s", (_name, config) => {
  test.each([1, 2, 3, 4, 5, 6])(
    "sessions get the next slots in the order of their positions (seed %i)",
    async (seed) => {
      const bench = await pausedHost(config, seed);
      const slots = (await bench.held()) + MORE;
      await bench.queue.operate({ kind: "limits", host: "h", hostname: "h", limits: { slots } });
      const places = new Map(bench.queue.inspect("h")?.waiting.map(({ session, position }) => [session, position]));
      const before = bench.ofType("granted").length;
      await bench.queue.operate({ kind: "pause", host: "h", hostname: "h", isPaused: false });
      await drained();
      const granted = bench.ofType("granted").slice(before);
      expect(granted.map(({ session }) => places.get(session))).toEqual(
        Array.from({ length: MORE }, (_, at) => at + 1),
      );
    },
  );
});

test("of classes with the same share and use, the one with the older first session is next", async () => {
  const bench = new Bench({ ...HOST, maxSlotPerHost: 1, classes: { batch: {}, chat: {} } });
  await bench.take("z");
  const sessions = [await bench.want("a", { class: "chat" }), await bench.want("b", { class: "batch" })];
  const places = bench.queue.inspect("h")?.waiting.map(({ session, position }) => [session, position]);
  expect(places).toEqual(sessions.map(({ session }, at) => [session.id, at + 1]));
});
