import { type ConstrainedScenario, runConstrained, vectorMaxMin } from "@slotkeeper/testkit/fairness";
import { describe, expect, test } from "vitest";

const PERIOD = { durationMs: 240_000 } as const;
const budget = (limit: number, burst = 20) => ({ tokens: { limit, perSeconds: 1, burst } });

const SCENARIOS: readonly ConstrainedScenario[] = [
  {
    name: "the slots of one tenant bind",
    config: { maxSlotPerHost: 6, keys: { tenant: { for: { acme: { slots: 2 } } } } },
    groups: [
      { name: "a", clients: 6, holdMs: 100, tenant: "acme" },
      { name: "b", clients: 6, holdMs: 100, tenant: "acme" },
      { name: "c", clients: 8, holdMs: 70, tenant: "other" },
      { name: "d", clients: 8, holdMs: 300 },
    ],
    ...PERIOD,
  },
  {
    name: "the budget of the host binds: equal slot time, whatever a request costs",
    config: { maxSlotPerHost: 40, budgets: budget(200) },
    groups: [
      { name: "cheap", clients: 20, holdMs: 100, tokens: 2 },
      { name: "dear", clients: 20, holdMs: 100, tokens: 10 },
      { name: "long", clients: 20, holdMs: 200, tokens: 6 },
    ],
    ...PERIOD,
  },
  {
    name: "the budget of a tenant binds, and the others share what it leaves",
    config: {
      maxSlotPerHost: 6,
      keys: { tenant: { budgets: budget(10_000), for: { acme: { budgets: budget(50) } } } },
    },
    groups: [
      { name: "a", clients: 6, holdMs: 100, tokens: 5, tenant: "acme" },
      { name: "b", clients: 10, holdMs: 100, tokens: 5, tenant: "b" },
      { name: "c", clients: 10, holdMs: 50, tokens: 1, tenant: "c", weight: 2 },
    ],
    ...PERIOD,
  },
  {
    name: "slots of a tenant, the budget of another and the slots of the host bind at once",
    config: {
      maxSlotPerHost: 8,
      keys: {
        tenant: { slots: 2, budgets: budget(10_000), for: { big: { slots: 8 }, dear: { budgets: budget(60) } } },
      },
    },
    groups: [
      { name: "a", clients: 6, holdMs: 80, tokens: 1, tenant: "small" },
      { name: "b", clients: 6, holdMs: 100, tokens: 8, tenant: "dear" },
      { name: "c", clients: 12, holdMs: 60, tokens: 1, tenant: "big" },
      { name: "d", clients: 12, holdMs: 120, tokens: 1 },
    ],
    ...PERIOD,
    tolerance: 0.03,
  },
  {
    name: "in the order by a budget, equal tokens, but for a tenant that its own budget holds back",
    config: {
      maxSlotPerHost: 40,
      order: "budget:tokens",
      budgets: budget(300),
      keys: { tenant: { for: { acme: { budgets: budget(40) } } } },
    },
    groups: [
      { name: "a", clients: 10, holdMs: 100, tokens: 4, tenant: "acme" },
      { name: "b", clients: 20, holdMs: 100, tokens: 10 },
      // With ten clients, all of them sometimes hold a slot: a bucket without a waiter saves up nothing.
      { name: "c", clients: 20, holdMs: 150, tokens: 3, weight: 2 },
    ],
    ...PERIOD,
  },
];

describe("keys and budgets against the max-min oracle for several resources", () => {
  test.each(SCENARIOS)("$name", async (scenario) => {
    const shares = await runConstrained(scenario);
    const worst = Math.max(...shares.map(({ got, fair }) => Math.abs(got - fair) / fair));
    expect(worst, JSON.stringify(shares)).toBeLessThanOrEqual(scenario.tolerance ?? 0.01);
  });

  test("without its key, the same host fails the check", async () => {
    const [scenario] = SCENARIOS as [ConstrainedScenario];
    const { keys: _, ...config } = scenario.config;
    const groups = scenario.groups.map(({ tenant: _none, ...group }) => group);
    const shares = await runConstrained({ ...scenario, config, groups });
    const fair = vectorMaxMin(
      [1, 1, 1, 1].map((rate) => ({ rate, demand: 8 })),
      [
        { capacity: 6, needs: [1, 1, 1, 1] },
        { capacity: 2, needs: [1, 1, 0, 0] },
      ],
    );
    expect(shares.every(({ got }, at) => Math.abs(got - (fair[at] ?? 0)) / (fair[at] ?? 1) <= 0.01)).toBe(false);
  });
});

test("the oracle stops each claim at the first resource that is used up", () => {
  const claims = [
    { rate: 1, demand: 10 },
    { rate: 1, demand: 10 },
    { rate: 2, demand: 10 },
  ];
  const slots = { capacity: 12, needs: [1, 1, 1] };
  expect(vectorMaxMin(claims, [slots])).toEqual([3, 3, 6]);
  expect(
    vectorMaxMin(claims, [slots, { capacity: 2, needs: [2, 0, 0] }]).map((share) => Math.round(share * 1e6) / 1e6),
  ).toEqual([1, 3.666667, 7.333333]);
});
