/** An hour of virtual time against a simulated model API: the example of the guide, held to its figures. */
import { describe, expect, test } from "vitest";
import { withLimiter, withRetries } from "../../../../examples/src/model-api/callers.ts";
import { simulateHour } from "../../../../examples/src/model-api/hour.ts";

const slow = { timeout: 180_000 };

describe("an hour against a model API", () => {
  test("with requests, tokens and slots limited: used, hardly refused, and fair", slow, async () => {
    const hour = await simulateHour(withLimiter);
    expect(hour.fixed).toBeGreaterThanOrEqual(0.95);
    expect(hour.moving).toBeGreaterThanOrEqual(0.9);
    expect(hour.refusedShare).toBeLessThanOrEqual(0.01);
    expect(hour.unfairness).toBeLessThanOrEqual(0.02);
  });

  test.each([1, 2])("with a capacity of 24 to 100 that moves every five minutes, seed %i", slow, async (seed) => {
    const hour = await simulateHour(withLimiter, { seed, movesAlways: true });
    expect(hour.moving).toBeGreaterThanOrEqual(0.9);
    expect(hour.refusedShare).toBeLessThanOrEqual(0.01);
    expect(hour.unfairness).toBeLessThanOrEqual(0.02);
  });

  test("the measure can fail: p-limit with retries wastes capacity, or is refused, and is not fair", slow, async () => {
    const careful = await simulateHour((clock, api) => withRetries(clock, api, 25));
    const greedy = await simulateHour((clock, api) => withRetries(clock, api, 100));
    expect(careful.fixed).toBeLessThan(0.5);
    expect(greedy.refusedShare).toBeGreaterThan(0.05);
    expect([careful.unfairness, greedy.unfairness].every((unfairness) => unfairness > 0.2)).toBe(true);
  });
});
