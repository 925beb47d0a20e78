// Random and damaged input for everything that takes input from outside. `npm run fuzz -- --help` shows the options.
import { parseArgs } from "node:util";
import { FUZZ_TARGETS, fuzz } from "@slotkeeper/testkit/fuzz";
import { record, recorded } from "./proof/record.mjs";

const HELP = `Usage: npm run fuzz -- [options]

Gives each target random and damaged input, and stops at the first input that is handled badly: a crash, a hang, an error that is not
ours, memory that grows, a limit that is exceeded. Continues where the last run on this commit stopped.

  --seconds N     how long, all targets together (30)
  --inputs N      how many inputs, all targets together: the long mode is 10000000. Runs on the same commit count
  --target NAME   only this one
  --seed N        only the batch with this seed, to repeat a failure; with --target
  --help          shows this

Targets
${FUZZ_TARGETS.map(({ name, title }) => `  ${name.padEnd(10)}${title}`).join("\n")}

Exit codes: 0 all inputs were handled well; 1 one was not; 2 bad options.`;

function fail(message) {
  console.error(`${message} See --help.`);
  process.exit(2);
}

function read() {
  const text = { type: "string" };
  try {
    const options = { seconds: text, inputs: text, target: text, seed: text, help: { type: "boolean" } };
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
for (const name of ["seconds", "inputs", "seed"]) {
  if (values[name] !== undefined && !(Number(values[name]) > 0)) {
    fail(`Expected --${name} to be a number greater than 0, got ${JSON.stringify(values[name])}.`);
  }
}
const targets = FUZZ_TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
if (targets.length === 0) fail(`Expected --target to name a target, got ${JSON.stringify(values.target)}.`);
if (values.seed !== undefined && targets.length > 1) fail("Expected --seed together with --target.");

/** An abrupt end loses no more than this time. */
const KEPT_EVERY_S = 20;

/** Keeps what a report has more than the last one that was kept. */
function keeper() {
  let kept = { inputs: 0, seconds: 0 };
  return (report) => {
    const { target: part, nextSeed, failure } = report;
    const [amount, seconds] = [report.inputs - kept.inputs, report.seconds - kept.seconds];
    record("fuzz", { part, amount, unit: "inputs", isPassed: failure === undefined, seconds, nextSeed, failure });
    kept = report;
  };
}

const shares = targets.reduce((sum, { share }) => sum + share, 0);
let hasFailed = false;
for (const target of targets) {
  const before = recorded("fuzz").filter(({ part, isPassed }) => part === target.name && isPassed);
  const tried = before.reduce((sum, { amount }) => sum + amount, 0);
  const share = target.share / shares;
  const inputs =
    values.seed !== undefined
      ? target.batch
      : values.inputs === undefined
        ? Number.POSITIVE_INFINITY
        : Math.max(0, Math.ceil(Number(values.inputs) * share) - tried);
  if (inputs === 0) {
    console.log(`${target.name.padEnd(10)}${tried} inputs before: nothing left to do`);
    continue;
  }
  const seconds =
    values.inputs === undefined ? Number(values.seconds ?? 30) * share : Number(values.seconds ?? Infinity);
  const keep = values.seed === undefined ? keeper() : () => undefined;
  let keptAt = 0;
  const report = await fuzz({
    target,
    seed: Number(values.seed ?? before.at(-1)?.nextSeed ?? 1),
    inputs,
    until: performance.now() + seconds * 1000,
    onProgress: (soFar) => {
      if (soFar.seconds - keptAt < KEPT_EVERY_S) return;
      keptAt = soFar.seconds;
      keep(soFar);
      console.log(`${target.name.padEnd(10)}${soFar.inputs} inputs`);
    },
  });
  keep(report);
  const rate = Math.round(report.inputs / report.seconds);
  console.log(
    `${target.name.padEnd(10)}${report.inputs} inputs, ${rate} per second${report.failure ? ": FAILED" : ""}`,
  );
  if (report.failure === undefined) continue;
  hasFailed = true;
  const { seed, message, input } = report.failure;
  console.log(`  ${message}\n  repeat it: npm run fuzz -- --target ${target.name} --seed ${seed}\n  input: ${input}`);
}
process.exit(hasFailed ? 1 : 0);
