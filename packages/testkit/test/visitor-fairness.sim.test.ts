import { type Group, runScenario, type Scenario, type SourceName } from "@slotkeeper/testkit/fairness";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const SECOND = 1_000;

/** Slot-milliseconds of each group from the start to the end of each phase. */
async function sums(host: Pick<Scenario, "slots" | "groups" | "phasesMs">, source: SourceName = "slot-seconds") {
  const { phases } = await runScenario({ name: "visitors", fails: [], ...host }, source);
  return phases.map((_, last) =>
    host.groups.map((_group, at) => phases.slice(0, last + 1).reduce((sum, phase) => sum + (phase[at]?.got ?? 0), 0)),
  );
}

describe("two buckets beside one that comes and goes: the measured hosts of fairness.md", () => {
  test.each([
    { slots: 6, holds: [60, 120], visitor: { everyMs: 133, holdMs: 100 }, differences: [440, 7_380] },
    { slots: 6, holds: [61, 119], visitor: { everyMs: 133, holdMs: 100 }, differences: [4, 1_792] },
    { slots: 2, holds: [50, 1_000], visitor: { everyMs: 1_000, holdMs: 200 }, differences: [1_000, 18_800, 198_800] },
  ])("$slots slots, holds of $holds ms", async ({ slots, holds: [short = 0, long = 0], visitor, differences }) => {
    const groups: Group[] = [
      { name: "short", clients: 2 * slots, holdMs: short },
      { name: "long", clients: 2 * slots, holdMs: long },
      { name: "visitor", ...visitor },
    ];
    const phasesMs = [10, 90, 900].slice(0, differences.length).map((seconds) => seconds * SECOND);
    const measured = await sums({ slots, groups, phasesMs });
    expect(measured.map(([a = 0, b = 0]) => Math.round(b - a))).toEqual(differences);
  });
});

const weight = fc.constantFrom<number[]>(1, 1, 1, 2, 3);
const host = fc.record({
  slots: fc.integer({ min: 1, max: 6 }),
  lasting: fc.array(fc.record({ holdMs: fc.integer({ min: 20, max: 1_000 }), weight }), { minLength: 2, maxLength: 3 }),
  visitors: fc.array(
    fc.record({ everyMs: fc.integer({ min: 50, max: 900 }), holdMs: fc.integer({ min: 10, max: 200 }), weight }),
    { minLength: 1, maxLength: 2 },
  ),
});
type Host = typeof host extends fc.Arbitrary<infer T> ? T : never;

/** By how much two buckets that always wait move apart once all have been served, at most, over the bound with V. */
async function overBound({ slots, lasting, visitors }: Host, source?: SourceName): Promise<number> {
  const groups: Group[] = [
    ...lasting.map((one, index) => ({ name: `lasting-${index}`, clients: slots + 2, ...one })),
    ...visitors.map((one, index) => ({ name: `visitor-${index}`, ...one })),
  ];
  const longest = Math.max(...groups.map(({ holdMs }) => holdMs));
  const [start = [], ...later] = await sums({ slots, groups, phasesMs: [2, 5, 15].map((s) => s * SECOND) }, source);
  const visited = (used: readonly number[]) => used.slice(lasting.length).reduce((sum, ms) => sum + ms, 0);
  const over = later.flatMap((used) =>
    lasting.flatMap((one, i) =>
      lasting.slice(0, i).map((other, j) => {
        const apart = (at: readonly number[]) => Math.abs((at[i] ?? 0) / one.weight - (at[j] ?? 0) / other.weight);
        const holds = longest / one.weight + longest / other.weight;
        const visits = (visited(used) - visited(start)) / Math.min(one.weight, other.weight);
        return apart(used) - apart(start) - holds - visits;
      }),
    ),
  );
  return Math.max(...over);
}

describe("the bound with V, the slot time of buckets that come and go (order ORDER3)", () => {
  test("buckets that always wait stay within H/w + H/w + V/w of each other", async () => {
    const isWithin = async (one: Host) => {
      expect(await overBound(one)).toBeLessThanOrEqual(1e-6);
    };
    await fc.assert(fc.asyncProperty(host, isWithin), { numRuns: 12 });
  });

  test("an order that counts grants breaks it", async () => {
    const lasting = [20, 1_000].map((holdMs) => ({ holdMs, weight: 1 }));
    const visitors = [{ everyMs: 900, holdMs: 10, weight: 1 }];
    expect(await overBound({ slots: 4, lasting, visitors }, "count-grants")).toBeGreaterThan(0);
  });
});
