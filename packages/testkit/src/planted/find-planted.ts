import { simulate } from "../simulator/simulate.ts";
import { PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";

/** Whether a method finds a planted bug: by which rule, or why not. */
export type Finding =
  | { readonly isFound: true; readonly rule: string; readonly seeds: number }
  | { readonly isFound: false; readonly why: string };

type Method = (bug: PlantedBug) => Promise<Finding>;

/**
 * The methods that look for planted bugs, each a column of the table. The table of the reliability page, the file that
 * `npm run planted` writes and its test have a column for each entry.
 */
export const METHODS = { invariants: byInvariants, checker: byChecker } satisfies Record<string, Method>;

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

/** By the simulator's own invariants, which read the records of the service. */
async function byInvariants({ plant, rule, seeds }: PlantedBug): Promise<Finding> {
  for (let seed = 1; seed <= seeds; seed++) {
    const { violations } = await simulate(seed, plant);
    if (violations.some((violation) => rule.test(violation))) return { isFound: true, rule: nameOf(rule), seeds };
  }
  return { isFound: false, why: `not found in ${seeds} seeds` };
}

/** By the independent checker, which knows only what clients see. */
async function byChecker({ plant, checker }: PlantedBug): Promise<Finding> {
  if (typeof checker === "string") return { isFound: false, why: checker };
  const { rule, seeds } = checker;
  for (let seed = 1; seed <= seeds; seed++) {
    const { verdict } = await simulate(seed, plant);
    if (verdict.violations.some((violation) => violation.rule === rule)) return { isFound: true, rule, seeds };
  }
  return { isFound: false, why: `not found in ${seeds} seeds` };
}

/** `V1`, or `V[12]` if it depends on the seed which of them is broken first. */
function nameOf({ source }: RegExp): string {
  return source.replace("^", "").split(" ")[0] ?? source;
}
