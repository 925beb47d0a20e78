/**
 * `npm run bench:service -- [--short] [--rounds N] [--only S1,S6] [--json FILE] [--from FILE] [--continue FILE]
 * [--write-docs] [--strict]`
 *
 * The service over real HTTP on loopback, compared with a bare server and with the seed. In each round the subjects of
 * a scenario take turns (A B C, B C A, …), each with a fresh server and a fresh load process. A scenario that leaves
 * the machine idle runs its rounds in parallel. Missed goals are not errors unless `--strict` is given: a benchmark is
 * not a test. A violated limit is an error: the process ends with 1.
 */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { rotated } from "../harness.ts";
import { writeServicePart } from "../page.ts";
import { expectWhole, runOptions } from "../run-options.ts";
import { renderServicePart } from "./docs.ts";
import { pin } from "./pinning.ts";
import { type Report, renderReport, resultOf, type ScenarioResult } from "./report.ts";
import type { LoadContext, Metrics, Scenario, SubjectId } from "./scenario.ts";
import { scenarioById, scenarios } from "./scenarios/index.ts";
import { startServer, waitingOf } from "./servers.ts";

const options = runOptions({
  command: "npm run bench:service",
  rows: scenarios.map(({ id }) => id),
  continues: true,
});
const { isShort, rounds } = options;
const LOAD = fileURLToPath(new URL("load/main.js", import.meta.url));

async function measure(scenario: Scenario, subject: SubjectId): Promise<Metrics> {
  const server = await startServer(subject, scenario);
  try {
    const waiting = waitingOf(subject);
    const context: LoadContext = { url: server.url, serverPid: server.pid, subject, waiting, isShort };
    const load = promisify(execFile)(process.execPath, [LOAD, scenario.id, JSON.stringify(context)]);
    const pins = scenario.isPinned === true ? [pin(server.pid, "server"), pin(load.child.pid, "load")] : [];
    const [{ stdout }] = await Promise.all([load, ...pins]);
    return JSON.parse(stdout) as Metrics;
  } finally {
    await server.stop();
  }
}

/** `before`: the rounds that an earlier run took. */
async function measureAll(scenario: Scenario, before: ScenarioResult["samples"] = {}): Promise<ScenarioResult> {
  const { id, subjects } = scenario;
  const samples: Partial<Record<SubjectId, Metrics[]>> = Object.fromEntries(
    subjects.map((subject) => [subject, [...(before[subject] ?? [])]]),
  );
  const runRound = async (round: number) => {
    for (const subject of rotated(subjects, round)) {
      if (round < (before[subject]?.length ?? 0)) continue;
      if (round > 0 && scenario.forComparison?.includes(subject) === true) continue;
      process.stderr.write(`${id} round ${round + 1}/${rounds} ${subject}\n`);
      samples[subject]?.push(await measure(scenario, subject));
    }
  };
  const all = Array.from({ length: rounds }, (_, round) => round);
  if (scenario.isLight === true) await Promise.all(all.map(runRound));
  else for (const round of all) await runRound(round);
  return resultOf(scenario, samples);
}

const readReport = (file: string): Report => JSON.parse(readFileSync(file, "utf8")) as Report;

async function measured(): Promise<Report> {
  const before = options.continued === undefined ? [] : readReport(options.continued).cases;
  const results = new Map(before.map((result) => [result.id, result]));
  const reportNow = (): Report => {
    const cases = scenarios.map(({ id }) => results.get(id)).filter((result) => result !== undefined);
    return { node: process.version, rounds, isShort, cases };
  };
  for (const scenario of options.only?.map(scenarioById) ?? scenarios) {
    results.set(scenario.id, await measureAll(scenario, results.get(scenario.id)?.samples));
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
