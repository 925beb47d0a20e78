/**
 * Row E1: steps per second of `slotkeeper/effects` against Effect's fibers and plain promises, 1,000,000 tasks over one
 * semaphore, and the memory of a parked task.
 *
 * `node bench/dist/effects/main.js [--short] [--rounds N] [--only contended,free] [--write-docs]`
 *
 * The short run gives Effect little time to warm up, so our ratio looks better than it is. Missed goals are not errors.
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeFormatted } from "../page.ts";
import { keepResults, roundsOf } from "../rounds.ts";
import { judge } from "./goals.ts";
import { type Figure, measureAll } from "./measure.ts";
import { type Report, renderDocs, verdictsText, workloadText } from "./report.ts";
import { type Workload, workloads } from "./workload.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    "write-docs": { type: "boolean", default: false },
  },
});

const LEAST_ROUNDS = 5;
const DOCS = fileURLToPath(new URL("../../../docs/reference/benchmarks-effects.md", import.meta.url));
const all = workloads(values.short);

function chosen(only: string | undefined): readonly Workload[] {
  const names = only?.split(",") ?? all.map(({ name }) => name);
  return names.map((name) => {
    const workload = all.find((candidate) => candidate.name === name);
    if (workload !== undefined) return workload;
    throw new RangeError(`Expected --only to name some of ${all.map((one) => one.name).join(", ")}, got ${name}.`);
  });
}

/** Writes the page only after a full measurement of all rows. */
function writeDocs(report: Report): void {
  if (report.isShort || report.rounds < LEAST_ROUNDS || values.only !== undefined) {
    throw new RangeError(`Expected all rows, full mode and ${LEAST_ROUNDS} rounds or more for --write-docs.`);
  }
  writeFormatted(DOCS, renderDocs(report, all));
}

// The minimum of one round says nothing, not even in short mode.
const rounds = roundsOf(values.rounds ?? (values.short ? String(LEAST_ROUNDS) : undefined), values.short, 7);
const figures: Figure[] = [];
for (const workload of chosen(values.only)) {
  // Bytes do not vary.
  const measured = await measureAll(workload, workload.program === "parked" ? 1 : rounds, values.short);
  console.log(workloadText(workload, measured));
  figures.push(...measured);
}
const report = { node: process.version, rounds, isShort: values.short, figures, verdicts: judge(figures) };
console.log(verdictsText(report.verdicts));
console.log(`\nWritten to ${keepResults("effects", report)}`);
if (values["write-docs"]) writeDocs(report);
