import { readFileSync } from "node:fs";
import { METHODS, type MethodName, PLANTED_BUGS, type PlantedRow } from "@slotkeeper/testkit/planted";
import { simulate } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { regressionSeeds } from "./regression-seeds.ts";

/** In CI some hundreds; `npm run simulate` runs ten thousand. */
const SEEDS = Number(process.env["SLOTKEEPER_SEEDS"] ?? 240);
const PARTS = 8;

describe("clients, network, instances, store and clocks, with faults in all of them", () => {
  test.each(Array.from({ length: PARTS }, (_, part) => ({ part })))(
    "no history breaks an invariant (part $part of the seeds)",
    async ({ part }) => {
      for (let seed = 1 + part; seed <= SEEDS; seed += PARTS) {
        const { violations, verdict, history } = await simulate(seed);
        const story = history.slice(-20).join("\n");
        const found = { violations, verdict: verdict.violations };
        const clean = { violations: [], verdict: [] };
        expect(found, `replay with: npm run simulate -- --seed ${seed}\n${story}`).toEqual(clean);
      }
    },
    3_600_000,
  );

  test.each(regressionSeeds("simulate"))("seed $seed stays clean: $found", async ({ seed }) => {
    const { violations, verdict } = await simulate(seed);
    expect([...violations, ...verdict.violations]).toEqual([]);
  });

  test.each([
    [63896, "the checker took a grant for one after its own release at the same time"],
    [15359, "the checker took a budget for exceeded that was charged at the time of an instance, which is behind"],
    [5478, "the same for the budget of a key"],
    [89014, "the same while the clock of an instance is wrong"],
    [63534, "V5 gave an instance no time to learn of a jump of the clock that it had slept through"],
    [30782, "V12 knew one order only of two settlements of a commit, of which one reached the largest debt"],
  ])("seed %i stays clean: %s", async (seed) => {
    const { violations, verdict } = await simulate(seed);
    expect([...violations, ...verdict.violations]).toEqual([]);
  });

  test("the same seed gives the same history", async () => {
    const dirty = PLANTED_BUGS[0]?.plant;
    expect(await simulate(7, dirty)).toEqual(await simulate(7, dirty));
  });
});

describe("planted bugs: every method finds what the table says (npm run planted writes it)", () => {
  const table = JSON.parse(
    readFileSync(new URL("../../../scripts/proof/planted.json", import.meta.url), "utf8"),
  ) as PlantedRow[];
  const methods = Object.keys(METHODS) as MethodName[];

  test.each(methods.flatMap((method) => PLANTED_BUGS.map((bug) => ({ method, bug, name: bug.name }))))(
    "$method: $name",
    { timeout: 600_000 },
    async ({ method, bug }) => {
      const known = table.find((row) => row.bug === bug.name)?.[method];
      const found = await METHODS[method](bug, known?.isFound ? known.seed : undefined);
      // A change of the engine changes all histories: then another seed shows the bug.
      expect(found).toEqual({ ...known, ...(found.isFound && { seed: found.seed }) });
    },
  );

  test("it has every bug, a method finds each, and those that do not have a reason", () => {
    expect(table.map(({ bug }) => bug)).toEqual(PLANTED_BUGS.map(({ name }) => name));
    expect(table.filter((row) => !methods.some((method) => row[method].isFound))).toEqual([]);
    const missed = (method: MethodName) => table.flatMap(({ [method]: one }) => (one.isFound ? [] : [one.why]));
    expect(missed("invariants")).toHaveLength(3);
    for (const why of missed("invariants")) expect(why).toMatch(/^No limit is broken|counts/);
    expect(missed("checker")).toHaveLength(9);
    for (const why of missed("checker")) expect(why).toMatch(/clients|counts/i);
    for (const why of methods.flatMap(missed)) expect(why).not.toMatch(/^not found in/);
  });
});
