/** A label such as `GATE2` names one promise in the whole repository: it can be searched for. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./pages.ts";
import { sourceFiles } from "./sources.ts";

/** Benchmark rows: see the glossary. */
const ROWS = new Set(["W", "B", "T", "E", "S", "L"]);

/** The first promise of a list, at the beginning of a comment's line; not a mention such as `P1 and P2 of …`. */
const FIRST = /^\s*(?:\/\*\*|\*|--|\/\/) +([A-Z]{1,12})1(?:\.? {1,2})(?!(?:and|to|of)\b)\S/gm;

const definitions = sourceFiles(/\.(?:tsx?|mjs|sql)$/).flatMap((path) => {
  const text = readFileSync(join(ROOT, path), "utf8");
  return [...text.matchAll(FIRST)].map(([, prefix = ""]) => ({ path, prefix }));
});

test("no two files define the same label", () => {
  expect(definitions.length).toBeGreaterThan(60);
  const files = new Map<string, string[]>();
  for (const { path, prefix } of definitions) files.set(prefix, [...(files.get(prefix) ?? []), path]);
  const twice = [...files].filter(([, paths]) => new Set(paths).size > 1);
  expect(twice.map(([prefix, paths]) => `${prefix}1: ${paths.join(", ")}`)).toEqual([]);
});

test("no promise has the label of a benchmark row", () => {
  expect(definitions.filter(({ prefix }) => ROWS.has(prefix)).map(({ path, prefix }) => `${path}: ${prefix}1`)).toEqual(
    [],
  );
});
