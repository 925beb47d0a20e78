import { type SimulationResult, simulate } from "../simulator/simulate.ts";
import { byReference } from "./found-by-reference.ts";
import { type Finding, PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";
import { search } from "./search.ts";

/** `first`: a seed to try before all others, because it showed the bug the last time. */
type Method = (bug: PlantedBug, first?: number) => Promise<Finding>;

/**
 * The methods that look for planted bugs, each a column of the table. The table of the reliability page, the file that
 * `npm run planted` writes and its test have a column for each entry.
 */
export const METHODS = { invariants: byInvariants, checker: byChecker, reference: byReference } satisfies Record<
  string,
  Method
>;

export type MethodName = keyof typeof METHODS;

/** A planted bug, and what each method makes of it. */
export type PlantedRow = { readonly bug: string } & Readonly<Record<MethodName, Finding>>;

/** Runs every method on every planted bug. */
export async function findPlanted(onRow?: (row: PlantedRow) => void): Promise<PlantedRow[]> {
  const rows: PlantedRow[] = [];
  for (const bug of PLANTED_BUGS) {
    const findings: Record<string, Finding> = {};
    for (const [name, find] of Object.entries(METHODS)) findings[name] = await find(bug);
    const row = { bug: bug.name, ...(findings as Record<MethodName, Finding>) };
    rows.push(row);
    onRow?.(row);
  }
  return rows;
}

/**
 * How many seeds a bug gets. Most are found within the first hundred, but any change of the engine changes all
 * histories.
 */
const SEEDS = 2_000;

/** By the simulator's own invariants, which read the records of the service. */
async function byInvariants({ plant, rule }: PlantedBug, first?: number): Promise<Finding> {
  if (!(rule instanceof RegExp)) return { isFound: false, why: rule.unseen };
  const isFound = ({ violations }: SimulationResult) => violations.some((violation) => rule.test(violation));
  return search(SEEDS, first, nameOf(rule), async (seed) => isFound(await simulate(seed, plant)));
}

/** By the independent checker, which knows only what clients see. */
async function byChecker({ plant, checker }: PlantedBug, first?: number): Promise<Finding> {
  if (typeof checker !== "string") return { isFound: false, why: checker.unseen };
  const isFound = ({ verdict }: SimulationResult) => verdict.violations.some(({ rule }) => rule === checker);
  return search(SEEDS, first, checker, async (seed) => isFound(await simulate(seed, plant)));
}

/** `V1`, or `V[12]` if it depends on the seed which of them is broken first. */
function nameOf({ source }: RegExp): string {
  return source.replace("^", "").split(" ")[0] ?? source;
}
