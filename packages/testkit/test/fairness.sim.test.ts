import { maxMin, type Outcome, runFleet, runScenario, SCENARIOS, type Scenario } from "@slotkeeper/testkit/fairness";
import { describe, expect, test } from "vitest";

/** The common check: the engine must pass it, and the controls must fail it. */
function isFair({ cap }: Scenario, { worstError }: Outcome): boolean {
  return worstError <= (cap === undefined ? 0.01 : 0.03);
}

describe("slot-seconds against the max-min oracle (order ORDER1, ORDER3, ORDER4)", () => {
  test.each(SCENARIOS)("$name: every bucket gets its share", async (scenario) => {
    const outcome = await runScenario(scenario, "slot-seconds");
    expect(outcome.holds).toBeGreaterThanOrEqual(1_000);
    expect(outcome.idleMoments, "a slot was idle while a waiter could have had it").toBe(0);
    expect(isFair(scenario, outcome), describeOutcome(outcome)).toBe(true);
  });
});

describe("controls that must fail the same check", () => {
  const controls = SCENARIOS.flatMap((scenario) =>
    scenario.fails.map((control) => ({ scenario, control, name: scenario.name })),
  );

  test.each(controls)("$name: $control is unfair", async ({ scenario, control }) => {
    expect(isFair(scenario, await runScenario(scenario, control))).toBe(false);
  });
});

test.each(SCENARIOS)("$name: the weighted scheduler leaves no slot idle either", async (scenario) => {
  const outcome = await runScenario(
    { ...scenario, phasesMs: scenario.phasesMs.map((ms) => ms / 4) },
    "weighted-scheduler",
  );
  expect(outcome.idleMoments).toBe(0);
});

describe("the max-min oracle", () => {
  test("fills by weight, and gives what a bucket does not want to the others", () => {
    const claims = [
      { weight: 1, demand: 1 },
      { weight: 1, demand: 10 },
      { weight: 2, demand: 10 },
    ];
    expect(maxMin(10, claims)).toEqual([1, 3, 6]);
    expect(maxMin(30, claims)).toEqual([1, 10, 10]);
    expect(maxMin(4, claims)).toEqual([1, 1, 2]);
  });
});

function describeOutcome({ phases, worstError }: Outcome): string {
  return `${(100 * worstError).toFixed(2)} % off: ${JSON.stringify(phases)}`;
}

describe("three instances with one store share a host as one instance would (engine DECIDE7)", () => {
  test.each([
    { routing: "bucket", name: "each bucket lives on one instance" },
    { routing: "any", name: "every poll reaches another instance" },
  ] as const)("$name", async ({ routing }) => {
    const outcome = await runFleet(routing, 60_000);
    expect(outcome.jain, JSON.stringify(outcome)).toBeGreaterThanOrEqual(0.99);
    expect(outcome.slowest, JSON.stringify(outcome)).toBeGreaterThanOrEqual(0.9);
    expect(outcome.utilisation, JSON.stringify(outcome)).toBeGreaterThanOrEqual(0.93);
  });
});
