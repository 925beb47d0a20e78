import { readFileSync } from "node:fs";

interface Found {
  readonly method: string;
  readonly seed?: number;
  readonly found: string;
}

const list = new URL("../../../scripts/proof/found.json", import.meta.url);
const all = JSON.parse(readFileSync(list, "utf8")) as readonly Found[];

/**
 * Seeds whose histories once showed a bug to a method, and what they found. They run on every change. They are part of
 * the list of all bugs that a method found, which the reliability page shows.
 */
export function regressionSeeds(method: string): readonly { readonly seed: number; readonly found: string }[] {
  return all.flatMap((one) =>
    one.method === method && one.seed !== undefined ? [{ seed: one.seed, found: one.found }] : [],
  );
}
