// The figures of the README come from the page with the benchmarks and from the size limits, and change with them.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const readme = read("README.md");
const benchmarks = read("docs/reference/benchmarks.md");

/** The number in a row and a column of the table of one benchmark: `10010 (9722..10342)` is 10010. */
function measured(benchmark: string, row: string, column: string): number {
  const [, section = ""] = benchmarks.split(`\n### ${benchmark}\n`);
  const lines = section.split("\n### ")[0]?.split("\n") ?? [];
  const cells = (line = "") => line.split("|").map((cell) => cell.trim());
  const columns = cells(lines.find((line) => line.startsWith("|")));
  const values = cells(lines.find((line) => cells(line)[1] === row));
  const value = Number.parseFloat(values[columns.indexOf(column)] ?? "");
  expect(value, `${benchmark}, ${row}, ${column}`).toBeGreaterThan(0);
  return value;
}

/** With two significant digits, as people say a number. */
function about(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString("en");
}

test("README: acquires and releases per second, on PostgreSQL and in memory", () => {
  const [postgres, memory] = ["postgres", "slotkeeper"].map((column) => measured("S1", "cycles/s", column));
  expect(readme).toContain(
    `PostgreSQL serves about ${about(postgres ?? 0)} acquires and releases per second, memory ${about(memory ?? 0)} ([S1]`,
  );
  // No other rate in the README: it would have no source.
  expect(readme.match(/\d per second|\d\/s\b/g)).toBeNull();
});

test("README: the fastest queue needs about half the time of ours", () => {
  const ratio = /\| W2r +\| level with or ahead of every peer +\| @henrygd\/queue (0\.\d+) ×/.exec(benchmarks)?.[1];
  expect(readme).toMatch(/@henrygd\/queue .* it needs about half the time of ours \(\[W2r\]/);
  expect(Number(ratio)).toBeGreaterThan(0.4);
  expect(Number(ratio)).toBeLessThan(0.6);
});

test("README: the sizes of the library and of the client are the limits that CI checks", () => {
  const limits = JSON.parse(read(".size-limit.json")) as { path: string; limit: string; import?: string }[];
  const kilobytes = (path: string) => Number.parseFloat(limits.find((row) => row.path.includes(path))?.limit ?? "");
  expect(readme).toContain(`much smaller than our ${kilobytes("packages/core/dist/index.js")} kB`);
  expect(readme).toContain(`needs only \`fetch\` and is ${kilobytes("packages/client/dist/index.js")} kB`);
});

test("README: the first screen has the command that starts it and the one that tests it", () => {
  const [first = ""] = readme.split("\n## ");
  for (const command of ["npm ci && npm start", "npm ci && npm test"]) expect(first).toContain(`\n${command} `);
  expect(first).toMatch(/Rates and budgets [\s\S]* are in the library, with limits for each key; the service has/);
});
