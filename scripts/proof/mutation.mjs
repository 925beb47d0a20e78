// Mutation testing: what is changed, by which tests it is judged, and what the saved reports say. scripts/mutate.mjs runs it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { EXPLAINED } from "./survivors.mjs";

const ROOT = resolve(import.meta.dirname, "../..");
export const FOLDER = resolve(ROOT, ".proof/mutation");

const core = (...names) => names.map((name) => `packages/core/src/${name}.ts`);
const folder = (path) =>
  readdirSync(resolve(ROOT, path), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${path}/${name}`);

/**
 * Tests that start processes, read sources or simulate hours find no change that the others miss. The test of the errors acquires
 * slots while it loads, so each change would count as made while loading and be judged by all tests.
 */
const CORE_TESTS = ["packages/core/test/!(errors|examples|import-boundaries|module-graph).test.ts"];
const LIMITER_TESTS = ["packages/core/test/limiter/!(model-api.sim).test.ts"];

/** Without those of the store, and those that run for seconds: the simulator and the reference book find more in less time. */
const LONG = /(granted-once\.sim|many-hosts|scale|idle-books|memory-conformance|limits\.prop|order\.prop)\.test\.ts$/;
const QUEUE_TESTS = [
  ...folder("packages/queue/test").filter((file) => file.endsWith(".test.ts") && !LONG.test(file)),
  "packages/testkit/test/decide.prop.test.ts",
];

const engine = (name) => ({
  least: 90,
  isEngine: true,
  tests: QUEUE_TESTS,
  files: folder(`packages/queue/src/${name}`),
});

/** The files of each group, the tests that judge it, and the score that it must reach. judge.mjs judges what is of the engine. */
export const GROUPS = {
  decide: engine("decide"),
  book: engine("book"),
  order: engine("order"),
  gate: {
    least: 85,
    tests: CORE_TESTS,
    files: core(
      "gate",
      "gate-context",
      "waiter-queue",
      "ticket",
      "deadlines",
      "linked-list",
      "signals",
      "slot",
      "slot-numbers",
    ),
  },
  keys: { least: 85, tests: CORE_TESTS, files: core("keyed-slots", "keyed-semaphore", "registry") },
  pool: { least: 85, tests: CORE_TESTS, files: core("slot-pool") },
  budgets: {
    least: 85,
    tests: LIMITER_TESTS,
    files: core("limiter/budget", "limiter/ledger", "limiter/lowest-levels", "limiter/keys", "limiter/key-state"),
  },
};

/** Where the report of a file is kept. Stryker continues from it. */
export const reportOf = (file) => resolve(FOLDER, `${file.replaceAll("/", "_")}.json`);

/** The changes of a file as they were last measured, or `undefined` if it has changed since. */
function measured(file) {
  if (!existsSync(reportOf(file))) return undefined;
  const report = JSON.parse(readFileSync(reportOf(file), "utf8")).files[file];
  if (report?.source !== readFileSync(resolve(ROOT, file), "utf8")) return undefined;
  return report.mutants.map((mutant) => ({ ...mutant, file, text: textOf(file, report.source, mutant) }));
}

/** One line that names a change and stays the same while other lines of its file move. */
function textOf(file, source, { location: { start, end }, replacement }) {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1);
  lines[0] = lines[0].slice(start.column - 1);
  const short = (code) => code.replaceAll(/\s+/g, " ").slice(0, 80);
  return `${file.split("/src/")[1]}: ${short(lines.join("\n"))} → ${short(replacement)}`;
}

/** The counts of a group, or the files that are still to measure. As Stryker counts: a timeout is a find, invalid changes do not count. */
export function resultOf(group) {
  const files = GROUPS[group].files.map((file) => ({ file, changes: measured(file) }));
  const missing = files.filter(({ changes }) => changes === undefined).map(({ file }) => file);
  const changes = files.flatMap((file) => file.changes ?? []);
  const count = (status) => changes.filter((change) => change.status === status).length;
  const counts = {
    killed: count("Killed"),
    timeout: count("Timeout"),
    survived: count("Survived"),
    noCoverage: count("NoCoverage"),
  };
  const found = counts.killed + counts.timeout;
  const mutants = found + counts.survived + counts.noCoverage;
  const survivors = changes.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  return { missing, survivors, record: { group, mutants, ...counts, score: (100 * found) / Math.max(1, mutants) } };
}

/** Survivors by the reason why no test finds them. Those without a reason are under `undefined`. */
export function byReason(survivors) {
  const reasonOf = ({ text }) => Object.keys(EXPLAINED).find((reason) => EXPLAINED[reason].includes(text));
  const groups = new Map();
  for (const survivor of survivors) {
    const reason = reasonOf(survivor);
    groups.set(reason, [...(groups.get(reason) ?? []), survivor]);
  }
  return groups;
}
