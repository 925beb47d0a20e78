/**
 * `npm run bench -- [--short] [--rounds N] [--only W1,W4] [--json FILE] [--write-docs] [--strict]`
 *
 * `--continue FILE` measures only the rounds that are missing in a report of `--json`: all rows take 20 minutes or
 * more, and the machine may not be quiet for so long.
 *
 * `--from FILE` shows, judges and writes a report of `--json`, without measuring. Missed goals are not errors unless
 * `--strict` is given: a benchmark is not a test.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { renderDocs } from "./docs.ts";
import { OURS, referencesOf } from "./goals.ts";
import { measureAll, type Pair, rowsOf } from "./harness.ts";
import { writeInProcessPart } from "./page.ts";
import { caseResults, type Report, type Standing, standingsOf } from "./results.ts";
import { expectWhole, type RunOptions, runOptions } from "./run-options.ts";
import type { Subject } from "./subject.ts";
import { describeSubject, subjectIds } from "./subjects/index.ts";
import { renderTable } from "./table.ts";
import { type Case, yardsticksOf } from "./workload.ts";
import { caseById, workloads } from "./workloads/index.ts";

const options = runOptions({
  command: "npm run bench",
  rows: [...new Set(workloads.flatMap(({ id, cases }) => [id, ...cases.map((one) => one.id)]))],
  continues: true,
});

function chosenCases(only: readonly string[] | undefined): Case[] {
  if (only === undefined) return workloads.flatMap((workload) => workload.cases);
  return only.flatMap((id) => {
    const workload = workloads.find((candidate) => candidate.id === id);
    return workload === undefined ? [caseById(id)] : workload.cases;
  });
}

/** One group per case; then the pairs of other cases that a goal refers to. */
function pairsOf(cases: readonly Case[], subjects: readonly Subject[]): Pair[][] {
  const groups = cases.map((chosen) => {
    const present = subjects.filter(
      (subject) => chosen.absence(subject) === undefined && (chosen.peersLeftOut === undefined || subject.id === OURS),
    );
    return [...yardsticksOf(chosen), ...present].map((subject) => ({ chosen, subject: subject.id }));
  });
  const known = new Set(cases.map((chosen) => chosen.id));
  const missing = cases
    .flatMap((chosen) => referencesOf(chosen.goals))
    .filter((reference) => !known.has(reference.caseId))
    .map((reference) => ({ chosen: caseById(reference.caseId), subject: reference.subject }));
  return missing.length === 0 ? groups : [...groups, missing];
}

/** Fewer than requested if the run was interrupted. */
function completedRounds(standings: ReadonlyMap<string, Standing>): number {
  const counts = [...standings.values()].flatMap((one) => (one.state === "measured" ? [one.samples.length] : []));
  return Math.min(...counts);
}

const readReport = (file: string): Report => JSON.parse(readFileSync(file, "utf8")) as Report;

async function measure({ isShort, rounds, only, continued }: RunOptions, signal: AbortSignal): Promise<Report> {
  const cases = chosenCases(only);
  const subjects = await Promise.all(subjectIds.map(describeSubject));
  const groups = pairsOf(cases, subjects);
  const isTerminal = process.stderr.isTTY;
  const standings = await measureAll(groups, {
    rounds,
    isShort,
    budgetMs: isShort ? 1000 : 6000,
    before: continued === undefined ? new Map() : standingsOf(readReport(continued)),
    signal,
    onProgress: (text) => process.stderr.write(isTerminal ? `\r\u001B[K${text}` : `${text}\n`),
  });
  if (isTerminal) process.stderr.write("\r\u001B[K");
  const measured = [...new Set(groups.flat().map((pair) => pair.chosen))];
  const rows = new Map(measured.map((chosen) => [chosen.id, rowsOf(chosen, subjects, standings)]));
  return { node: process.version, rounds: completedRounds(standings), isShort, cases: caseResults(cases, rows) };
}

function writeDocs(report: Report): void {
  expectWhole(report, report.cases.length, workloads.flatMap((workload) => workload.cases).length);
  writeInProcessPart(renderDocs(report));
}

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());

const report = options.from === undefined ? await measure(options, stop.signal) : readReport(options.from);
console.log(renderTable(report));
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, undefined, 2)}\n`);
if (stop.signal.aborted) {
  console.error("Interrupted: the figures are of fewer rounds, or missing.");
  process.exitCode = 130;
} else if (options.writesDocs) writeDocs(report);
if (
  options.isStrict &&
  report.cases.some((result) => result.verdicts.some((verdict) => verdict.outcome !== "reached"))
) {
  process.exitCode = 1;
}
