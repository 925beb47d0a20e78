// Which method finds which planted bug: `npm run planted` writes the table to scripts/proof/planted.json, and a test compares it.
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { findPlanted, METHODS } from "@slotkeeper/testkit/planted";
import { record } from "./proof/record.mjs";

const HELP = `Usage: npm run planted

Plants each bug of packages/testkit/src/planted in simulated fleets, and lets every method look for it: the simulator's
invariants, and the independent checker, which knows only what clients see. Writes the table to scripts/proof/planted.json.

  --help    shows this`;

const FILE = resolve(import.meta.dirname, "proof/planted.json");

const { values } = parseArgs({ options: { help: { type: "boolean", default: false } } });
if (values.help) console.log(HELP);
else await run();

async function run() {
  const names = Object.keys(METHODS);
  const rows = await findPlanted((row) => {
    console.log(row.bug);
    for (const name of names) console.log(`    ${name.padEnd(12)}${textOf(row[name])}`);
  });
  writeFileSync(FILE, `${JSON.stringify(rows, undefined, 2)}\n`);
  const found = Object.fromEntries(names.map((name) => [name, rows.filter((row) => row[name].isFound).length]));
  record("planted", { bugs: rows.length, found });
  console.log(`${rows.length} bugs; found by ${names.map((name) => `${name}: ${found[name]}`).join(", ")}`);
}

function textOf(finding) {
  return finding.isFound ? `${finding.rule}, within ${finding.seeds} seeds` : `not found: ${finding.why}`;
}
