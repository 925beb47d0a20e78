import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { expect, test } from "vitest";

test("the defaults are those of the specification", () => {
  const { policy } = resolveHost(resolveOptions(), "example.com");
  expect(resolveOptions()).toMatchObject({
    maxWaitMs: 20_000,
    pollIntervalMs: 500,
    pollWindowMs: 6_000,
    idleMs: 90_000,
    collectMs: 1_000,
    maxSessions: 500,
    cancelMs: 5_000,
    scheduler: { isEnabled: false, hotPendingFactor: 4, hotPendingMin: 16, baseWeight: 1, weightPerWait: 1 },
  });
  expect(policy).toMatchObject({ slots: 5, slotsPerBucket: 1, waiters: 50, leaseMs: 30_000, maxHoldMs: 3_600_000 });
  expect(policy).toMatchObject({
    waitersPerBucket: Number.POSITIVE_INFINITY,
    cooldownMs: 0,
    smoothMs: 0,
    order: "slot-seconds",
  });
  expect(policy.breaker).toMatchObject({ windowMs: 60_000, openMs: 60_000, consecutiveErrors: 4, halfOpenProbes: 1 });
});

test("all problems are listed at once, by path", () => {
  const config = {
    maxSlotPerHost: 0,
    pollIntervalMs: "soon",
    typo: 1,
    breaker: { openSeconds: -1, halfOpenProbe: 1 },
    hosts: { "*.example.com": { maxSlotPerIp: 1.5, weights: { a: 0 } } },
    weightedScheduler: { coldAvgWaitMs: -10 },
  };
  const lines = () => resolveOptions(config as never);
  for (const part of [
    "`fairQueue.maxSlotPerHost` to be a whole number from 1 up, got 0",
    '`fairQueue.pollIntervalMs` to be a number from 1 up, got "soon"',
    "Unknown key `fairQueue.typo`",
    "`fairQueue.breaker.openSeconds` to be a number above 0, at most 3600, got -1",
    "Unknown key `fairQueue.breaker.halfOpenProbe`",
    '`fairQueue.hosts["*.example.com"].maxSlotPerIp` to be a whole number, got 1.5',
    '`fairQueue.hosts["*.example.com"].weights` to be an object of numbers from 0.001 to 1000000',
    "`fairQueue.weightedScheduler.coldAvgWaitMs` to be a number from 0 up, got -10",
  ]) {
    expect(lines).toThrow(part);
  }
});

test("weights of buckets and of classes have the same bounds", () => {
  for (const weight of [0.0009, 1_000_001, Number.NaN]) {
    expect(() => resolveOptions({ hosts: { h: { weights: { a: weight } } } })).toThrow("from 0.001 to 1000000");
    expect(() => resolveOptions({ classes: { a: { weight } } })).toThrow("from 0.001 to 1000000");
  }
  for (const weight of [0.001, 1_000_000])
    expect(() =>
      resolveOptions({ hosts: { h: { weights: { a: weight } } }, classes: { a: { weight } } }),
    ).not.toThrow();
});

test("null counts as absent and replaces no default", () => {
  expect(resolveOptions({ pollIntervalMs: null } as never).pollIntervalMs).toBe(500);
});

test("the most specific pattern wins, and *.x also matches x", () => {
  const options = resolveOptions({
    maxSlotPerHost: 1,
    hosts: {
      "*": { maxSlotPerHost: 2 },
      "*.example.com": { maxSlotPerHost: 3, breaker: { openSeconds: 7 } },
      "*.eu.example.com": { maxSlotPerHost: 4 },
      "a.eu.example.com": { maxSlotPerHost: 5, weights: { vip: 3 } },
    },
  });
  const slots = (name: string | undefined) => resolveHost(options, name).policy.slots;
  expect(
    [undefined, "other", "example.com", "X.Example.com", "b.eu.example.com", "a.eu.example.com"].map(slots),
  ).toEqual([1, 2, 3, 3, 4, 5]);
  expect(resolveHost(options, "example.com").policy.breaker).toMatchObject({ openMs: 7_000, windowMs: 60_000 });
  expect(resolveHost(options, "a.eu.example.com").weightOf("vip")).toBe(3);
});
