import type { Finding } from "./planted-bugs.ts";

/** Looks for a planted bug in histories: in that of `first`, then from seed 1 on. */
export async function search(
  seeds: number,
  first: number | undefined,
  rule: string,
  isFoundIn: (seed: number) => Promise<boolean>,
): Promise<Finding> {
  if (first !== undefined && (await isFoundIn(first))) return { isFound: true, rule, seed: first };
  for (let seed = 1; seed <= seeds; seed++) if (await isFoundIn(seed)) return { isFound: true, rule, seed };
  return { isFound: false, why: `not found in ${seeds} seeds` };
}
