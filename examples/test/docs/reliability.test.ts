/** The reliability page equals what its program makes of the results that are checked in. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { ROOT } from "./pages.ts";

interface Result {
  readonly kind: string;
  readonly part?: string;
  readonly commit: string;
  readonly at: string;
  readonly amount: number;
  readonly isPassed: boolean;
  readonly seconds: number;
  readonly isWhole?: boolean;
  readonly figures?: Record<string, number>;
}
interface Found {
  readonly method: string;
  readonly commit: string;
  readonly found: string;
}
interface Sums {
  readonly sumsOf: (results: readonly Result[]) => readonly Result[];
  readonly newestOf: (sums: readonly Result[]) => readonly Result[];
}
interface Page {
  readonly pageOf: (from: { sums: readonly Result[]; found: readonly Found[]; planted?: readonly unknown[] }) => string;
}

const load = (path: string): Promise<unknown> => import(pathToFileURL(join(ROOT, path)).href);
const { pageOf } = (await load("scripts/proof/page.mjs")) as Page;
const { sumsOf, newestOf } = (await load("scripts/proof/results.mjs")) as Sums;
const { METHODS } = (await load("scripts/proof/methods.mjs")) as { METHODS: readonly { kind: string }[] };
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const found = JSON.parse(read("scripts/proof/found.json")) as readonly Found[];
const result = (more: Partial<Result>): Result => ({
  kind: "fuzz",
  part: "http",
  commit: "0123456789ab",
  at: "2026-01-01T00:00:00.000Z",
  amount: 10,
  isPassed: true,
  seconds: 1,
  ...more,
});

test("docs/reliability.md is the page of the results that are checked in", () => {
  const script = join(ROOT, "scripts/reliability.mjs");
  const printed = execFileSync(process.execPath, [script, "--print"], { encoding: "utf8" });
  expect(read("docs/reliability.md")).toBe(printed);
});

test("every bug of the list has a known method, and a commit of this repository", () => {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
  // A copy without its history cannot know old commits.
  const isWhole = git("rev-parse", "--is-shallow-repository") === "false";
  for (const { method, commit } of found) {
    expect(METHODS.map(({ kind }) => kind)).toContain(method);
    if (isWhole) expect(git("cat-file", "-t", commit)).toBe("commit");
  }
});

test("results of one commit add up, and one failed part fails the sum", () => {
  const parts = [result({}), result({ amount: 5, isPassed: false }), result({ commit: "ba9876543210" })];
  const sums = sumsOf(parts).map(({ commit, amount, isPassed, seconds }) => ({ commit, amount, isPassed, seconds }));
  expect(sums).toEqual([
    { commit: "0123456789ab", amount: 15, isPassed: false, seconds: 2 },
    { commit: "ba9876543210", amount: 10, isPassed: true, seconds: 1 },
  ]);
});

test("a repetition of a whole run replaces its result", () => {
  const again = result({ amount: 7, at: "2026-01-02T00:00:00.000Z", isWhole: true });
  expect(sumsOf([result({ isPassed: false, isWhole: true }), again])).toMatchObject([{ amount: 7, isPassed: true }]);
});

test("many short parts add up without loss, and parts of a kind give way to a newer sum without parts", () => {
  const { part: _, ...whole } = result({ kind: "simulate", amount: 1000, seconds: 0.4, figures: { bad: 1 } });
  const later = { ...whole, at: "2026-01-02T00:00:00.000Z" };
  const sums = sumsOf([result({ kind: "simulate", part: "seeds 1 to 5" }), ...Array.from({ length: 10 }, () => later)]);
  expect(newestOf(sums)).toMatchObject([{ amount: 10_000, seconds: 4, figures: { bad: 10 } }]);
  expect(newestOf([...sums, result({ part: "sql" }), result({})])).toHaveLength(3);
});

test("the page has sections only for methods with results", () => {
  const empty = pageOf({ sums: [], found });
  expect(empty).not.toMatch(/## (?:What was tried|Planted bugs|Commits and machines)|### Fuzzing/);
  const [sum] = sumsOf([result({})]);
  const page = pageOf({
    sums: sum === undefined ? [] : [{ ...sum, isPassed: false, commit: "0123456789ab-changed" }],
    found,
  });
  expect(page).toContain("### Fuzzing, part by part");
  expect(page).toContain("**failed**");
  expect(page).toContain("`0123456789ab` with changes");
  expect(page).not.toContain("Mutation testing");
});

test("the table of planted bugs is on the page as soon as it exists", () => {
  const planted = [
    { bug: "an offer is forgotten", simulator: { isFound: true, rule: "V1" }, checker: { isFound: false } },
  ];
  expect(pageOf({ sums: [], found, planted })).toMatch(/\| an offer is forgotten \| V1 +\| not found \|/);
});
