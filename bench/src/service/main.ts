/**
 * `npm run bench:service -- [--short] [--rounds N] [--only S1,S6] [--json FILE] [--from FILE] [--continue FILE]
 * [--write-docs] [--strict]`
 *
 * The service over real HTTP on loopback, compared with a bare server and with the seed. In each round the subjects of
 * a scenario take turns (A B C, B C A, …), each with a fresh server and a fresh load process. A scenario that leaves
 * the machine idle runs its rounds in parallel. Missed goals are not errors unless `--strict` is given: a benchmark is
 * not a test. A violated limit is an error: the process ends with 1.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { writeServicePart } from "../page.ts";
import { expectWhole, runOptions } from "../run-options.ts";
import { renderServicePart } from "./docs.ts";
import { measureAll } from "./measure.ts";
import { type Report, renderReport } from "./report.ts";
import { scenarioById, scenarios } from "./scenarios/index.ts";

const options = runOptions({
  command: "npm run bench:service",
  rows: scenarios.map(({ id }) => id),
  continues: true,
});
const { isShort, rounds } = options;

const readReport = (file: string): Report => JSON.parse(readFileSync(file, "utf8")) as Report;

async function measured(): Promise<Report> {
  const before = options.continued === undefined ? [] : readReport(options.continued).cases;
  const results = new Map(before.map((result) => [result.id, result]));
  const reportNow = (): Report => {
    const cases = scenarios.map(({ id }) => results.get(id)).filter((result) => result !== undefined);
    return { node: process.version, rounds, isShort, cases };
  };
  for (const scenario of options.only?.map(scenarioById) ?? scenarios) {
    results.set(
      scenario.id,
      await measureAll(scenario, { isShort, rounds, before: results.get(scenario.id)?.samples }),
    );
    // Written after each scenario, so that an interrupted run has results.
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(reportNow(), undefined, 2)}\n`);
  }
  return reportNow();
}

const report = options.from === undefined ? await measured() : readReport(options.from);
console.log(renderReport(report));
if (options.writesDocs) {
  expectWhole(report, report.cases.length, scenarios.length);
  writeServicePart(renderServicePart(report));
}
const isMissed = report.cases.some(({ verdicts }) => verdicts.some(({ outcome }) => outcome !== "reached"));
const isViolated = report.cases.some(({ violations }) => violations > 0);
if (isViolated || (options.isStrict && isMissed)) process.exitCode = 1;
