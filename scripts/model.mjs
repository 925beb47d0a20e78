// Checks the models of our algorithms with the model checker SPIN. `npm run model -- --help` shows the options.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { record } from "./proof/record.mjs";

const OFFERS = "packages/queue/test/model/offers.pml";
const DISPATCHER = "packages/core/test/threads/model/dispatcher.pml";
const ALWAYS = ["LIMIT", "OWNER"];

/** Without `planted` no error may be found; with it, one must be. `isLong`: more than a minute, only with --long. */
const RUNS = [
  { model: "offers", flags: [...ALWAYS, "FAULTS=1"] },
  { model: "offers", flags: [...ALWAYS, "FAULTS=1", "SLOTS=2"] },
  { model: "offers", flags: [...ALWAYS, "FAULTS=2", "SESSIONS=2"] },
  { model: "offers", flags: ["SERVED", "FAULTS=0"] },
  { model: "offers", flags: ["SERVED", "FAULTS=1", "SESSIONS=2"] },
  { model: "offers", flags: ["SERVED", "FAULTS=1"], isLong: true },
  { model: "offers", flags: ["LIMIT", "FAULTS=2", "SESSIONS=2"], planted: "BREAK_BLIND_STORE" },
  { model: "offers", flags: ["LIMIT", "FAULTS=2", "SESSIONS=2"], planted: "BREAK_ANSWER_FIRST" },
  { model: "offers", flags: ["LIMIT", "FAULTS=2", "SESSIONS=2"], planted: "BREAK_RESENT_APPLIED" },
  { model: "offers", flags: ["OWNER", "FAULTS=2", "SESSIONS=2"], planted: "BREAK_RETURN_BY_ANY" },
  { model: "offers", flags: ["OWNER", "FAULTS=2", "SESSIONS=2"], planted: "BREAK_ENDS_FORGOTTEN" },
  { model: "offers", flags: ["SERVED", "FAULTS=1", "SESSIONS=2"], planted: "BREAK_NO_EXPIRY" },
  { model: "offers", flags: ["SERVED", "FAULTS=1", "SESSIONS=2"], planted: "BREAK_AWAY_STAYS" },
  { model: "dispatcher", flags: ["N=2"] },
  { model: "dispatcher", flags: ["N=3"] },
  { model: "dispatcher", flags: ["N=3", "CANCEL"] },
  { model: "dispatcher", flags: ["N=2", "DEATH"] },
  { model: "dispatcher", flags: ["N=2", "DEATH", "CANCEL"] },
  { model: "dispatcher", flags: ["N=3", "DEATH"] },
];
const FILES = { offers: OFFERS, dispatcher: DISPATCHER };

const HELP = `Usage: npm run model -- [options]

Explores every state of small models of our algorithms with SPIN: offers and commits of a fleet (${OFFERS}),
and the dispatcher of threads (${DISPATCHER}).
Models with a planted bug must fail. Needs \`spin\` and \`gcc\` (Debian: apt-get install spin gcc), and 4 GB of memory.

  --model NAME    only this one: ${Object.keys(FILES).join(", ")}
  --long          also the runs that take minutes
  --help          shows this

Exit codes: 0 every run ended as it must, or spin is missing; 1 one did not; 2 bad options.`;

function fail(message) {
  console.error(`${message} See --help.`);
  process.exit(2);
}

function read() {
  const flag = { type: "boolean", default: false };
  try {
    return parseArgs({ options: { model: { type: "string" }, long: flag, help: flag } }).values;
  } catch (error) {
    return fail(error.message);
  }
}

function run(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (error !== undefined || status !== 0) throw new Error(`${command} failed: ${error?.message ?? stdout + stderr}`);
  return stdout;
}

/** Explores all states. Properties of whole runs are searched for unfair cycles, too. */
function explore({ model, flags, planted }) {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-model-"));
  try {
    const defines = [...flags, ...(planted === undefined ? [] : [planted])].map((flag) => `-D${flag}`);
    const isOfRuns = flags.includes("SERVED");
    run("spin", [...defines, "-a", resolve(import.meta.dirname, "..", FILES[model])], folder);
    const mode = isOfRuns ? ["-DNFAIR=3"] : ["-DSAFETY"];
    run("gcc", ["-O2", "-w", ...mode, "-DCOLLAPSE", "-DVECTORSZ=4096", "-DMEMLIM=4000", "-o", "pan", "pan.c"], folder);
    return resultOf(run(join(folder, "pan"), ["-m5000000", ...(isOfRuns ? ["-a", "-f"] : [])], folder));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function resultOf(output) {
  const [, errors] = /errors: (\d+)/.exec(output) ?? [];
  const [, states] = /^\s*([\d.e+]+) states, stored/m.exec(output) ?? [];
  const isWhole = !/reached -DMEMLIM|max search depth too small|out of memory/.test(output);
  if (errors === undefined || states === undefined) throw new Error(`Unexpected output of the checker:\n${output}`);
  const [, found] = /^pan:1: (.*?) \(at depth/m.exec(output) ?? [];
  return { errors: Number(errors), states: Number(states), found, isWhole };
}

const values = read();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
if (values.model !== undefined && !(values.model in FILES))
  fail(`Expected --model to name a model, got ${JSON.stringify(values.model)}.`);
for (const tool of ["spin", "gcc"]) {
  if (spawnSync(tool, ["--version"]).error === undefined) continue;
  console.log(`skipped: ${tool} is not installed (Debian: apt-get install spin gcc)`);
  process.exit(0);
}

let isFailed = false;
for (const one of RUNS) {
  if ((values.model !== undefined && one.model !== values.model) || (one.isLong && !values.long)) continue;
  const startedAt = performance.now();
  const { errors, states, found, isWhole } = explore(one);
  const seconds = (performance.now() - startedAt) / 1000;
  const isPassed = one.planted === undefined ? errors === 0 && isWhole : errors > 0;
  isFailed ||= !isPassed;
  const name = `${one.model} ${one.flags.join(" ")}${one.planted === undefined ? "" : ` ${one.planted}`}`;
  const ended = isWhole ? (found ?? "no error") : "not explored completely";
  console.log(`${isPassed ? "ok  " : "FAIL"}  ${name}: ${states} states, ${ended}  (${seconds.toFixed(1)} s)`);
  record("model", { part: name, amount: states, unit: "states", isPassed, isWhole: true, seconds });
}
console.log(isFailed ? "model: FAILED" : "model: passed");
process.exit(isFailed ? 1 : 0);
