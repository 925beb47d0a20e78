// Mutation testing: changes the code in small ways and looks whether a test fails. `npm run mutate -- --help` shows the options.
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { record } from "./proof/record.mjs";

/** Folders and files with the score that they must reach. Survivors are listed in docs/reliability.md by group. */
const GROUPS = {
  decide: { least: 90, mutate: ["packages/queue/src/decide/*.ts"] },
  book: { least: 90, mutate: ["packages/queue/src/book/*.ts"] },
  order: { least: 90, mutate: ["packages/queue/src/order/*.ts"] },
  gate: { least: 85, mutate: ["packages/core/src/gate.ts"] },
  keys: { least: 85, mutate: ["packages/core/src/keyed-slots.ts", "packages/core/src/keyed-semaphore.ts"] },
  pool: { least: 85, mutate: ["packages/core/src/slot-pool.ts"] },
  budgets: { least: 85, mutate: ["packages/core/src/limiter/budget.ts", "packages/core/src/limiter/ledger.ts"] },
};

const HELP = `Usage: npm run mutate -- [options]

Changes the code in small ways, one at a time, runs the pure tests that execute it, and reports the part of the changes that they find.
A group that was measured before is continued: only what changed since is measured again.

  --group NAMES    with commas between them: ${Object.keys(GROUPS).join(", ")} (all)
  --again          forgets what was measured before
  --survivors      lists the changes that no test found
  --help           shows this

All groups take hours. Exit codes: 0 every score is reached; 1 one is not; 2 bad options.`;

function fail(message) {
  console.error(`${message} See --help.`);
  process.exit(2);
}

function read() {
  const flag = { type: "boolean", default: false };
  try {
    const options = { group: { type: "string" }, again: flag, survivors: flag, help: flag };
    return parseArgs({ options }).values;
  } catch (error) {
    return fail(error.message);
  }
}

const values = read();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const names = values.group?.split(",") ?? Object.keys(GROUPS);
const unknown = names.find((name) => !(name in GROUPS));
if (unknown !== undefined) fail(`Expected --group to name groups, got ${JSON.stringify(unknown)}.`);

const ROOT = resolve(import.meta.dirname, "..");
const folder = resolve(ROOT, ".proof/mutation");
mkdirSync(folder, { recursive: true });

/** Timeouts count as found: the change made the code loop. */
function scoreOf(results) {
  const counted = results.filter(({ status }) => !["Ignored", "CompileError", "RuntimeError"].includes(status));
  const found = counted.filter(({ status }) => status === "Killed" || status === "Timeout");
  const survived = counted.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  return { mutants: counted.length, score: (100 * found.length) / Math.max(1, counted.length), survived };
}

let isMissed = false;
for (const name of names) {
  const { mutate, least } = GROUPS[name];
  const incrementalFile = resolve(folder, `${name}.json`);
  if (values.again) rmSync(incrementalFile, { force: true });
  const startedAt = performance.now();
  const isContinued = existsSync(incrementalFile) && readFileSync(incrementalFile, "utf8").length > 0;
  console.log(`${name}: ${isContinued ? "continues" : "starts"}`);
  const results = await new Stryker({
    mutate,
    testRunner: "vitest",
    testRunnerNodeArgs: ["--expose-gc"],
    vitest: { configFile: resolve(ROOT, "vitest.quick.config.ts"), related: true },
    plugins: ["@stryker-mutator/vitest-runner"],
    // Stryker would rewrite the configuration of TypeScript, which tests do not use.
    tsconfigFile: "tsconfig.of-no-file.json",
    coverageAnalysis: "perTest",
    incremental: true,
    incrementalFile,
    concurrency: 2,
    timeoutMS: 20_000,
    reporters: process.stdout.isTTY ? ["progress"] : ["progress-append-only"],
    tempDirName: resolve(ROOT, ".proof/mutation/tmp"),
    ignorePatterns: ["docs/images", "docs/dist", "deploy", ".proof", "**/dist", "**/dist-test"],
    allowEmpty: true,
  }).runMutationTest();
  const { mutants, score, survived } = scoreOf(results);
  record("mutation", {
    part: name,
    amount: mutants,
    unit: "changes",
    isPassed: score >= least,
    isWhole: true,
    seconds: (performance.now() - startedAt) / 1000,
    figures: { survived: survived.length, goal: least },
  });
  console.log(`${name}: ${score.toFixed(1)} % of ${mutants} changes found (goal ${least})`);
  if (values.survivors) {
    for (const { fileName, location, mutatorName, replacement } of survived) {
      console.log(
        `  ${fileName}:${location.start.line} ${mutatorName}: ${(replacement ?? "").replaceAll("\n", " ").slice(0, 100)}`,
      );
    }
  }
  isMissed ||= score < least;
}
process.exit(isMissed ? 1 : 0);
