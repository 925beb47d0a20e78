import {
  compareHistory,
  formatHistory,
  memoryHost,
  randomHistory,
  shrinkHistory,
  storedHost,
} from "@slotkeeper/testkit/reference";
import { describe, expect, test } from "vitest";
import { foundByReference, NOT_IN_A_DECISION } from "./found-by-reference.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";

/** In CI some hundreds; `npm run reference` compares any number. */
const HISTORIES = 400;
/** Through a store: every decision reads the whole book. */
const STORED = 40;

/** What the comparison has found so far. */
const FOUND = [
  { seed: 32, found: "whether an expired waiter ends depended on earlier decisions that are not in the records" },
  { seed: 126, found: "the end of an earlier session with the same id was taken for the end of the present one" },
  { seed: 252, found: "rounding errors ranked buckets with the same use, and not the oldest head" },
  { seed: 392, found: "a bucket that was refused for its cooldown waited longer than its cooldown" },
  { seed: 599, found: "a bucket joined a hot host at the virtual time of one whose client had left" },
  { seed: 1750, found: "a bucket that returned was charged for use that should be forgotten" },
  { seed: 7784, found: "the scheduler forgot the numbers of a bucket before it was idle for long enough" },
  { seed: 45_433, found: "an idle bucket kept another one from being forgotten" },
];
const FOUND_IN_STORE = {
  seed: 243,
  found: "an offer from before a limit was lowered became a lease, which the store refused",
};

describe("the engine and the reference book decide the same", () => {
  test("on a book that stays in memory", { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const difference = await compareHistory(randomHistory(seed), memoryHost());
      expect(difference, `repeat it: npm run reference -- --seed ${seed}`).toBeUndefined();
    }
  });

  test.each(FOUND)("seed $seed stays the same: $found", async ({ seed }) => {
    expect(await compareHistory(randomHistory(seed), memoryHost())).toBeUndefined();
  });

  test(`seed ${FOUND_IN_STORE.seed} stays the same: ${FOUND_IN_STORE.found}`, async () => {
    expect(await compareHistory(randomHistory(FOUND_IN_STORE.seed), storedHost())).toBeUndefined();
  });

  test("on a book that each decision reads from a store", { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= STORED; seed++) {
      expect(await compareHistory(randomHistory(seed), storedHost()), `seed ${seed}`).toBeUndefined();
    }
  });
});

describe("planted bugs", () => {
  test.each(PLANTED_BUGS)(
    "$name: found, or not visible in a decision",
    { timeout: 600_000 },
    async ({ name, plant }) => {
      const seed = await foundByReference(plant);
      expect(seed === undefined, `found by seed ${seed}`).toBe(NOT_IN_A_DECISION.has(name));
    },
  );

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
});
