// Stands in for "vitest" in the bundle of bundle-changes.mjs: a test becomes a check that can be called again and again.
// vitest itself would load the modules and plan its run again for every change.
export { expect } from "vitest";

/** Each test of the files that were loaded, in their order. */
export const tests = [];
const titles = [];

/** Calls `declare` once for each row, as `test.each` and `describe.each` do. */
function withRows(declare) {
  declare.each = (rows) => (title, second, third) => {
    const [options, body] = typeof second === "function" ? [third, second] : [second, third];
    for (const [at, row] of rows.entries()) {
      const values = Array.isArray(row) ? row : [row];
      declare(`${title} (${at})`, options, () => body(...values));
    }
  };
  return declare;
}

export const test = withRows((title, second, third) => {
  const run = typeof second === "function" ? second : third;
  tests.push({ name: `test ${[...titles, title].join(" > ")}`, run: async () => run() });
});
export const it = test;

export const describe = withRows((title, second, third) => {
  titles.push(title);
  (typeof second === "function" ? second : third)();
  titles.pop();
});
