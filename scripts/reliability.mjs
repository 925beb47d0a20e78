// Writes docs/reliability.md. `npm run reliability -- --help` shows the options.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { pageOf } from "./proof/page.mjs";
import { collect, readSums } from "./proof/results.mjs";

const HELP = `Usage: npm run reliability -- [options]

Takes the results that simulate, reference, model, mutate, fuzz, chaos and soak have recorded here (.proof) into
scripts/proof/results.json, and writes docs/reliability.md from it. For each part the results of the newest run count,
together with all others of the same commit. Commit both files.

  --print    prints the page of the results that are checked in, and changes nothing
  --help     shows this`;

const { values } = parseArgs({
  options: { print: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
});

const proof = (name) => resolve(import.meta.dirname, "proof", name);
const readJson = (file) => JSON.parse(readFileSync(file, "utf8"));

function page() {
  const planted = existsSync(proof("planted.json")) ? readJson(proof("planted.json")) : undefined;
  return pageOf({ sums: readSums(), found: readJson(proof("found.json")), planted });
}

if (values.help) console.log(HELP);
else if (values.print) process.stdout.write(page());
else {
  collect();
  writeFileSync(resolve(import.meta.dirname, "../docs/reliability.md"), page());
  console.log(`docs/reliability.md: ${readSums().length} results`);
}
