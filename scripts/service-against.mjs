#!/usr/bin/env node
/**
 * Measures rows of the service benchmark beside another checkout: its service and this one take turns, under the load program and on the
 * databases of this checkout, which sync every commit. This one has two turns in each round: their difference is the noise of the machine (A/A).
 * Both checkouts need a build (`npx tsc -b`). Prints the lowest, median and highest value of each figure.
 */
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { startFleet } from "../bench/dist/fleet/fleet.js";
import { CONFIG, measureFleet } from "../bench/dist/fleet/measure.js";
import { scenarioById } from "../bench/dist/service/scenarios/index.js";
import { startServer, waitingOf } from "../bench/dist/service/servers.js";

const HELP = `Usage: node scripts/service-against.mjs --against FOLDER [options]

  --against FOLDER    the other checkout
  --only ROWS         these rows, with commas between them (S1,S5,S6,fleet)
  --subjects NAMES    slotkeeper, weighted, journal, postgres, postgres-weighted, postgres-unsynced (slotkeeper,postgres).
                      The fleet always runs on PostgreSQL
  --rounds N          how often each is measured (3)
  --seconds N         how long the fleet is measured in each round (20)
  --help              shows this`;

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    only: { type: "string", default: "S1,S5,S6,fleet" },
    subjects: { type: "string", default: "slotkeeper,postgres" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "20" },
    help: { type: "boolean", default: false },
  },
});
if (values.help || values.against === undefined) {
  console.log(HELP);
  process.exit(values.help ? 0 : 2);
}

const here = resolve(import.meta.dirname, "..");
const checkouts = { other: resolve(values.against), this: here, "this again": here };
const load = `${here}/bench/dist/service/load/main.js`;

async function measureRow(checkout, row, subject) {
  const server = await startServer(subject, scenarioById(row), checkout);
  const context = { url: server.url, serverPid: server.pid, subject, waiting: waitingOf(subject), isShort: false };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [load, row, JSON.stringify(context)]);
    return JSON.parse(stdout);
  } finally {
    await server.stop();
  }
}

async function measureSpread(checkout, run) {
  const fleet = await startFleet(3, CONFIG, { through: "postgres", isDurable: true, checkout });
  try {
    return await measureFleet(fleet, { ...run, seconds: Number(values.seconds) });
  } finally {
    await fleet.stop();
  }
}

const FLEET_RUNS = {
  "fleet, each bucket at one instance": { spread: "by-bucket" },
  "fleet, every call at the next instance": { spread: "round-robin" },
  "fleet, every call at the next instance, calls end near their grant": { spread: "round-robin", waitMs: 5_000 },
};

/** What is measured for a row of the command line, by title. */
function measurementsOf(row) {
  if (row === "fleet") {
    return Object.entries(FLEET_RUNS).map(([title, run]) => [title, (checkout) => measureSpread(checkout, run)]);
  }
  return values.subjects
    .split(",")
    .map((subject) => [`${row}, ${subject}`, (checkout) => measureRow(checkout, row, subject)]);
}

const shown = (numbers) => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const three = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return three.map((value) => (value < 10 ? value.toFixed(2) : String(Math.round(value)))).join(", ");
};

for (const [title, measure] of values.only.split(",").flatMap(measurementsOf)) {
  const results = Object.fromEntries(Object.keys(checkouts).map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, folder] of Object.entries(checkouts)) results[name].push(await measure(folder));
  }
  console.log(title);
  console.table(
    Object.keys(results.this[0] ?? {}).map((figure) => {
      const row = Object.entries(results).map(([name, all]) => [name, shown(all.map((result) => result[figure]))]);
      return { figure, ...Object.fromEntries(row) };
    }),
  );
}
process.exit(0);
