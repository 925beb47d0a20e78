// A real fleet under faults, judged by what its clients saw. `npm run chaos -- --help` shows the options.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { FAULT_NAMES, FAULTS, formatReport, runChaos } from "@slotkeeper/testkit/chaos";
import { record } from "./proof/record.mjs";

const HELP = `Usage: npm run chaos -- [options]

Starts PostgreSQL, three instances of \`slotkeeper serve\`, a round-robin proxy and a load. Breaks them at random, one fault after
the other. The independent checker judges what the clients saw (packages/testkit/src/history). Ctrl-C ends it early, with a verdict.

  --minutes N             how long faults are made (30)
  --each N                how often every fault is made, at least (10 with --minutes 30 or more, else 0): the run takes half of its
                          time longer if that is needed
  --seconds N             the same in seconds; 60 is the short mode of the tests
  --seed N                makes the order of the faults repeatable (random)
  --faults A,B            only these
  --recovery-seconds N    how soon a host must be back at work after a fault (5)
  --plant overstay        a client uses its slot after its lease is over: the run must fail
  --json FILE             keeps the report
  --history FILE          keeps what the clients saw, for packages/testkit/bin/check-history.mjs
  --help                  shows this

Faults
${FAULT_NAMES.map((name) => `  ${name.padEnd(20)}${FAULTS[name].title}`).join("\n")}

Exit codes: 0 passed; 1 a violation, or a goal missed; 2 bad options.`;

function fail(message) {
  console.error(`${message} See --help.`);
  process.exit(2);
}

function read() {
  const text = { type: "string" };
  const options = {
    minutes: text,
    seconds: text,
    each: text,
    seed: text,
    faults: text,
    plant: text,
    json: text,
    history: text,
  };
  try {
    const more = { "recovery-seconds": { ...text, default: "5" }, help: { type: "boolean" } };
    return parseArgs({ options: { ...options, ...more } }).values;
  } catch (error) {
    return fail(error.message);
  }
}

function positive(name, given) {
  const value = Number(given);
  if (!(value > 0)) fail(`Expected --${name} to be a number greater than 0, got ${JSON.stringify(given)}.`);
  return value;
}

const values = read();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
if (values.minutes !== undefined && values.seconds !== undefined) fail("Expected --minutes or --seconds, got both.");
const seconds =
  values.seconds === undefined ? 60 * positive("minutes", values.minutes ?? "30") : positive("seconds", values.seconds);
const each = values.each === undefined ? (seconds >= 1800 ? 10 : 0) : Number(values.each);
if (!Number.isInteger(each) || each < 0)
  fail(`Expected --each to be a whole number, got ${JSON.stringify(values.each)}.`);
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
if (!Number.isInteger(seed)) fail(`Expected --seed to be a whole number, got ${JSON.stringify(values.seed)}.`);
const faults = values.faults?.split(",");
const unknown = faults?.find((name) => !FAULT_NAMES.includes(name));
if (unknown !== undefined) fail(`Expected --faults to name known faults, got ${JSON.stringify(unknown)}.`);
if (values.plant !== undefined && values.plant !== "overstay")
  fail(`Expected --plant to be "overstay", got ${JSON.stringify(values.plant)}.`);

const jsonLines = (lines) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

const interrupt = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => interrupt.abort());
const startedAt = performance.now();
const report = await runChaos({
  seconds,
  seed,
  ...(each > 0 && { each }),
  ...(faults && { faults }),
  recoveryMs: 1000 * positive("recovery-seconds", values["recovery-seconds"]),
  plant: values.plant,
  signal: interrupt.signal,
  ...(values.history !== undefined && { onHistory: (lines) => writeFileSync(values.history, jsonLines(lines)) }),
  log: (line) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${line}`),
});
console.log(formatReport(report));
const isPassed = report.misses.length === 0;
if (values.plant === undefined) {
  const { calls, grants, violations } = report;
  const made = report.faults.reduce((sum, { count }) => sum + count, 0);
  const figures = { calls, grants, violations: violations.length };
  record("chaos", { amount: made, unit: "faults", isPassed, seconds: report.seconds, figures });
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
process.exit(isPassed ? 0 : 1);
