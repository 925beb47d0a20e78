// Mutation testing: changes the code in small ways and looks whether a test fails. `npm run mutate -- --help` shows the options.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { measureEngine } from "./proof/measure-engine.mjs";
import { byReason, FOLDER, GROUPS, reportOf, resultOf } from "./proof/mutation.mjs";
import { record } from "./proof/record.mjs";

/** The results of a file are kept each time when this number of lines is done. */
const PIECE = 60;

const HELP = `Usage: npm run mutate -- [options]

Changes the code in small ways, one at a time, runs the pure tests that execute it, and reports the part of the changes that they find.
Changes of the engine (decide, book, order) are also judged by the reference book and the simulator.
Results are kept after every ${PIECE} lines, in the engine after every 20 changes. What was measured before is continued: only what changed
since, and what no test found, is measured again.

  --group NAMES    with commas between them: ${Object.keys(GROUPS).join(", ")} (all)
  --file TEXT      measures only the files of the groups whose path contains the text
  --missing        measures only the files that have changed or were not measured yet
  --minutes N      ends after the piece in which the time is over; the same command with --missing continues there
  --again          forgets what was measured before
  --report         measures nothing: reports what was measured before
  --survivors      lists the changes that no test found
  --help           shows this

The groups of the engine take 5 to 60 minutes each, all groups hours. Exit codes: 0 every score is reached; 1 one is not, or is not measured; 2 bad options.`;

function fail(message) {
  console.error(`${message} See --help.`);
  process.exit(2);
}

function read() {
  const [flag, text] = [{ type: "boolean", default: false }, { type: "string" }];
  try {
    const options = {
      group: text,
      file: text,
      minutes: text,
      missing: flag,
      again: flag,
      report: flag,
      survivors: flag,
      help: flag,
    };
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
mkdirSync(FOLDER, { recursive: true });

function filesToMeasure(name) {
  if (values.report) return [];
  const files = values.missing ? resultOf(name).missing : GROUPS[name].files;
  return files.filter((file) => file.includes(values.file ?? ""));
}

const startedAt = performance.now();
const isTimeOver = () => performance.now() - startedAt > Number(values.minutes ?? Infinity) * 60_000;

/** The ranges of lines that the report of a part does not have yet, and the whole file. */
function piecesOf(file, part) {
  const source = readFileSync(resolve(ROOT, file), "utf8");
  const { length } = source.split("\n");
  const report = existsSync(part) ? JSON.parse(readFileSync(part, "utf8")).files[file] : undefined;
  const mutants = report?.source === source ? report.mutants : [];
  const pieces = [];
  for (let from = 1; from <= length && length > 2 * PIECE; from += PIECE) {
    const isDone = mutants.some(({ location: { start } }) => start.line >= from && start.line < from + PIECE);
    if (!isDone) pieces.push(`:${from}-${from + PIECE - 1}`);
  }
  return [...pieces, ""];
}

/** Measures the pieces of a file, and then what crosses their ends. Only then the report of the file is complete. */
async function measure(file, tests) {
  const [whole, part] = [reportOf(file), `${reportOf(file)}.part`];
  if (values.again) for (const report of [whole, part]) rmSync(report, { force: true });
  if (existsSync(whole) && !existsSync(part)) copyFileSync(whole, part);
  process.env["SLOTKEEPER_MUTATE_TESTS"] = tests.join(",");
  for (const piece of piecesOf(file, part)) {
    if (isTimeOver()) return;
    await mutate(file + piece, part);
  }
  renameSync(part, whole);
}

async function mutate(files, incrementalFile) {
  console.log(files);
  await new Stryker({
    mutate: [files],
    testRunner: "vitest",
    testRunnerNodeArgs: ["--expose-gc"],
    vitest: { configFile: resolve(ROOT, "vitest.mutate.config.ts"), related: false },
    plugins: ["@stryker-mutator/vitest-runner"],
    // Stryker would rewrite the configuration of TypeScript, which tests do not use.
    tsconfigFile: "tsconfig.of-no-file.json",
    coverageAnalysis: "perTest",
    incremental: true,
    incrementalFile,
    concurrency: 1,
    timeoutMS: 8_000,
    reporters: process.stdout.isTTY ? ["progress"] : ["progress-append-only"],
    tempDirName: resolve(FOLDER, "tmp"),
    ignorePatterns: ["docs/images", "docs/dist", "deploy", ".proof", "**/dist", "**/dist-test"],
    allowEmpty: true,
  }).runMutationTest();
}

/** Prints the result of a group and records it if every file is measured. Returns whether it reaches its score. */
function report(name) {
  const { missing, survivors, record: result } = resultOf(name);
  const { least } = GROUPS[name];
  console.log(`${name}: ${result.score.toFixed(1)} % of ${result.mutants} changes found (goal ${least})`);
  for (const file of missing) console.log(`  not measured: ${file}`);
  const reasons = byReason(survivors);
  for (const [reason, ones] of reasons) {
    console.log(`  ${ones.length} survived: ${reason ?? "no reason given"}`);
    if (values.survivors) for (const { text, location } of ones) console.log(`    ${location.start.line} ${text}`);
  }
  if (missing.length > 0) return false;
  const explained = [...reasons].map(([reason, ones]) => ({ reason: reason ?? null, count: ones.length }));
  const { mutants, score } = result;
  record("mutation", {
    part: name,
    amount: mutants,
    unit: "changes",
    isPassed: score >= least,
    isWhole: true,
    figures: { survived: survivors.length, goal: least },
    explained,
  });
  return result.score >= least;
}

for (const name of names) {
  const { isEngine, tests } = GROUPS[name];
  const files = filesToMeasure(name);
  if (isEngine) await measureEngine(name, files, { isAgain: values.again, isTimeOver });
  else for (const file of files) await measure(file, tests);
}
const isReached = names.map(report).every(Boolean);
process.exit(isReached ? 0 : 1);
