import { readFileSync } from "node:fs";

interface Found {
  readonly method: string;
  readonly commit: string;
  readonly seed?: number;
  readonly found: string;
}

const list = new URL("../../../scripts/proof/found.json", import.meta.url);

/**
 * Seeds whose histories once broke an invariant, and what they found. They run on every change. They are part of the
 * list of all bugs that a method found, which the reliability page shows.
 */
export const REGRESSION_SEEDS: readonly { readonly seed: number; readonly found: string }[] = (
  JSON.parse(readFileSync(list, "utf8")) as readonly Found[]
).flatMap(({ seed, found }) => (seed === undefined ? [] : [{ seed, found }]));
