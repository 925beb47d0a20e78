#!/usr/bin/env node
/**
 * Measures rows of the service benchmark beside another checkout: its server and this one take turns, under the load program of this
 * checkout. Both need a build (`npx tsc -b`). Prints the lowest, median and highest value of each figure.
 */
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";

const HELP = `Usage: node scripts/service-against.mjs --against FOLDER [options]

  --against FOLDER    the other checkout
  --only ROWS         these rows, with commas between them (S1,S5,S6)
  --subjects NAMES    slotkeeper, weighted, journal, postgres, postgres-weighted (slotkeeper,postgres)
  --rounds N          how often each is measured (3)
  --help              shows this`;

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    only: { type: "string", default: "S1,S5,S6" },
    subjects: { type: "string", default: "slotkeeper,postgres" },
    rounds: { type: "string", default: "3" },
    help: { type: "boolean", default: false },
  },
});
if (values.help || values.against === undefined) {
  console.log(HELP);
  process.exit(values.help ? 0 : 2);
}

const here = resolve(import.meta.dirname, "..");
const checkouts = { other: resolve(values.against), this: here };
const builtIn = (folder, file) => pathToFileURL(`${folder}/bench/dist/service/${file}`).href;
const { scenarioById } = await import(builtIn(here, "scenarios/index.js"));
const load = `${here}/bench/dist/service/load/main.js`;

async function measure(folder, row, subject) {
  const { startServer, waitingOf } = await import(builtIn(folder, "servers.js"));
  const server = await startServer(subject, scenarioById(row));
  const context = { url: server.url, serverPid: server.pid, subject, waiting: waitingOf(subject), isShort: false };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [load, row, JSON.stringify(context)]);
    return JSON.parse(stdout);
  } finally {
    await server.stop();
  }
}

const shown = (numbers) => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const three = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return three.map((value) => (value < 10 ? value.toFixed(2) : String(Math.round(value)))).join(", ");
};

for (const row of values.only.split(",")) {
  for (const subject of values.subjects.split(",")) {
    const results = { other: [], this: [] };
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const [name, folder] of Object.entries(checkouts)) results[name].push(await measure(folder, row, subject));
    }
    const table = Object.keys(results.this[0] ?? {}).map((figure) => {
      const of = (name) => shown(results[name].map((result) => result[figure]));
      return { figure, other: of("other"), this: of("this") };
    });
    console.log(`${row}, ${subject}`);
    console.table(table);
  }
}
process.exit(0);
