// An hour of mixed load with small faults, and a verdict about what grew. `npm run soak -- --help` shows the options.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { runSoak } from "@slotkeeper/testkit/soak";
import { record } from "./proof/record.mjs";

const HELP = `Usage: npm run soak -- [options]

Puts mixed load with small faults (connections cut, clients that vanish or die, bad requests) on two instances with PostgreSQL and one
with a journal, none of which is restarted. Memory may grow by 5 % after warming up; open files, tables and the journal must be level.

  --minutes N     how long (60)
  --warm-up N     minutes that do not count (10, or a sixth of a shorter run)
  --seed N        makes the order of the faults repeatable (1)
  --json FILE     keeps the report
  --help          shows this

Exit codes: 0 passed; 1 something grew; 2 bad options.`;

function read() {
  const text = { type: "string" };
  try {
    const options = { minutes: text, "warm-up": text, seed: text, json: text, help: { type: "boolean" } };
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${error.message} See --help.`);
    process.exit(2);
  }
}

const values = read();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const minutes = Number(values.minutes ?? "60");
const warmUp = Number(values["warm-up"] ?? Math.min(10, minutes / 6));
const seed = Number(values.seed ?? "1");
if (!(minutes > 0) || !(warmUp >= 0) || !Number.isInteger(seed)) {
  console.error("Expected --minutes, --warm-up and --seed to be numbers. See --help.");
  process.exit(2);
}
const interrupt = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => interrupt.abort());
const report = await runSoak({
  seconds: 60 * minutes,
  warmUpSeconds: 60 * warmUp,
  sampleSeconds: Math.min(30, minutes),
  seed,
  signal: interrupt.signal,
  log: (line) => console.log(line),
});
console.table(report.grown);
for (const miss of report.misses) console.log(miss);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
const { granted, faults, seconds, misses } = report;
record("soak", {
  amount: seconds / 60,
  unit: "minutes",
  isPassed: misses.length === 0,
  seconds,
  figures: { grants: granted, faults },
});
console.log(
  `${Math.round(seconds / 60)} minutes, ${granted} grants, ${faults} faults: ${misses.length === 0 ? "passed" : "FAILED"}`,
);
process.exit(misses.length === 0 ? 0 : 1);
