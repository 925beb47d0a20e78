import { simulate } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { REGRESSION_SEEDS } from "./regression-seeds.ts";

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

  test.each(REGRESSION_SEEDS)("seed $seed stays clean: $found", async ({ seed }) => {
    const { violations, verdict } = await simulate(seed);
    expect([...violations, ...verdict.violations]).toEqual([]);
  });

  test("the same seed gives the same history", async () => {
    const dirty = PLANTED_BUGS[0]?.plant;
    expect(await simulate(7, dirty)).toEqual(await simulate(7, dirty));
  });
});

describe("planted bugs are found", () => {
  test.each(PLANTED_BUGS)("by the invariants: $name", { timeout: 120_000 }, async ({ plant, rule, seeds }) => {
    let caught: string | undefined;
    for (let seed = 1; seed <= seeds && caught === undefined; seed++) {
      const { violations } = await simulate(seed, plant);
      caught = violations.find((violation) => rule.test(violation));
    }
    expect(caught, `not found in ${seeds} seeds`).toBeDefined();
  });

  test.each(PLANTED_BUGS.filter(({ checker }) => typeof checker === "object"))(
    "by the independent checker, from what clients see: $name",
    { timeout: 120_000 },
    async ({ plant, checker }) => {
      const { rule, seeds } = checker as Exclude<typeof checker, string>;
      const found = new Set<string>();
      for (let seed = 1; seed <= seeds && !found.has(rule); seed++) {
        const { verdict } = await simulate(seed, plant);
        for (const violation of verdict.violations) found.add(violation.rule);
      }
      expect([...found], `not found in ${seeds} seeds`).toContain(rule);
    },
  );

  test("most bugs are visible to clients, and the others have a reason", () => {
    const unseen = PLANTED_BUGS.filter(({ checker }) => typeof checker === "string");
    expect(PLANTED_BUGS.length - unseen.length).toBeGreaterThanOrEqual(10);
    for (const { checker } of unseen) expect(checker).toMatch(/\w+ \w+/);
  });
});
