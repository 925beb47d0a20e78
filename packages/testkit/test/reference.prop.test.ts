import {
  compareHistory,
  formatHistory,
  hotHistory,
  longHistory,
  memoryHost,
  randomHistory,
  shrinkHistory,
  storedHost,
} from "@slotkeeper/testkit/reference";
import { describe, expect, test } from "vitest";
import { regressionSeeds } from "./regression-seeds.ts";

/** In CI some hundreds; `npm run reference` compares any number. */
const HISTORIES = 400;
/** They take several times as long. */
const LONG_HISTORIES = 40;
/** Through a store: every decision reads the whole book. */
const STORED = 40;

describe("the engine and the reference book decide the same", () => {
  test("on a book that stays in memory", { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const difference = await compareHistory(randomHistory(seed), memoryHost());
      expect(difference, `repeat it: npm run reference -- --seed ${seed}`).toBeUndefined();
    }
  });

  test.each([
    ["over many grants", longHistory],
    ["at hosts where the weighted scheduler chooses", hotHistory],
  ])("%s", { timeout: 600_000 }, async (_, history) => {
    for (let seed = 1; seed <= LONG_HISTORIES; seed++)
      expect(await compareHistory(history(seed), memoryHost()), `seed ${seed}`).toBeUndefined();
  });

  test.each(regressionSeeds("reference"))("seed $seed stays the same: $found", async ({ seed }) => {
    expect(await compareHistory(randomHistory(seed), memoryHost())).toBeUndefined();
  });

  test("seed 243 stays the same: an offer from before a limit was lowered became a lease, which the store refused", async () => {
    expect(await compareHistory(randomHistory(243), storedHost())).toBeUndefined();
  });

  test("seed 172 stays the same: which offer became a lease first depended on the order of the records in the store", async () => {
    expect(await compareHistory(randomHistory(172), storedHost())).toBeUndefined();
  });

  test("seed 9844 stays the same: the reference book ranked a newcomer after a waiter that it holds back at their key", async () => {
    expect(await compareHistory(randomHistory(9844), memoryHost())).toBeUndefined();
  });

  test("seed 20202 stays the same: the reference book gave back the wrong one of two charges of a session at the same time", async () => {
    expect(await compareHistory(randomHistory(20202), memoryHost())).toBeUndefined();
  });

  test("on a book that each decision reads from a store", { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= STORED; seed++) {
      expect(await compareHistory(randomHistory(seed), storedHost()), `seed ${seed}`).toBeUndefined();
    }
  });
});

test("the shortest history that shows a bug is printed", { timeout: 600_000 }, async () => {
  const config = (given: object) => ({ ...given, maxSlotPerHost: 9 });
  const differs = async (history: ReturnType<typeof randomHistory>) =>
    (await compareHistory(history, memoryHost(), { config })) !== undefined;
  const history = randomHistory(3);
  expect(await differs(history)).toBe(true);
  const shortest = await shrinkHistory(history, differs);
  expect(await differs(shortest)).toBe(true);
  expect(shortest.steps.length).toBeLessThan(3);
  expect(formatHistory(shortest)).toContain("0: ");
});
