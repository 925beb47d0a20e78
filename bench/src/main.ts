/**
 * `npm run bench -- [--short] [--rounds N] [--only W1,W4] [--json FILE] [--write-docs] [--strict]`
 *
 * `--from FILE` shows, judges and writes a report that `--json` has kept, without measuring. Misses are not errors
 * unless `--strict`: a benchmark is not a test.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { renderDocs } from "./docs.ts";
import { OURS, referencesOf } from "./goals.ts";
import { measureAll, type Pair, rowsOf } from "./harness.ts";
import { caseResults, type Report } from "./results.ts";
import { roundsOf } from "./rounds.ts";
import type { Subject } from "./subject.ts";
import { describeSubject, subjectIds } from "./subjects/index.ts";
import { renderTable } from "./table.ts";
import { type Case, yardsticksOf } from "./workload.ts";
import { caseById, workloads } from "./workloads/index.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    json: { type: "string" },
    from: { type: "string" },
    "write-docs": { type: "boolean", default: false },
    strict: { type: "boolean", default: false },
  },
});

function chosenCases(only: string | undefined): Case[] {
  if (only === undefined) return workloads.flatMap((workload) => workload.cases);
  return only.split(",").flatMap((id) => {
    const workload = workloads.find((candidate) => candidate.id === id);
    return workload === undefined ? [caseById(id)] : workload.cases;
  });
}

/** One group per case; then the pairs of cases left out that a goal is held against. */
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

const LEAST_ROUNDS = 5;
const DOCS = fileURLToPath(new URL("../../docs/reference/", import.meta.url));

async function measure(isShort: boolean, signal: AbortSignal): Promise<Report> {
  const rounds = roundsOf(values.rounds, isShort, LEAST_ROUNDS);
  const cases = chosenCases(values.only);
  const subjects = await Promise.all(subjectIds.map(describeSubject));
  const groups = pairsOf(cases, subjects);
  const isTerminal = process.stderr.isTTY;
  const standings = await measureAll(groups, {
    rounds,
    isShort,
    budgetMs: isShort ? 1000 : 6000,
    signal,
    onProgress: (text) => process.stderr.write(isTerminal ? `\r\u001B[K${text}` : `${text}\n`),
  });
  if (isTerminal) process.stderr.write("\r\u001B[K");
  const measured = [...new Set(groups.flat().map((pair) => pair.chosen))];
  const rows = new Map(measured.map((chosen) => [chosen.id, rowsOf(chosen, subjects, standings)]));
  return { node: process.version, rounds, isShort, cases: caseResults(cases, rows) };
}

/** The page is about all rows, measured properly, or it is not written. */
function writeDocs(report: Report): void {
  const all = workloads.flatMap((workload) => workload.cases);
  if (report.isShort || report.rounds < LEAST_ROUNDS || report.cases.length < all.length) {
    throw new RangeError(`Expected all rows, full mode and ${LEAST_ROUNDS} rounds or more for --write-docs.`);
  }
  mkdirSync(DOCS, { recursive: true });
  writeFileSync(`${DOCS}benchmarks.md`, renderDocs(report));
}

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());

const report =
  values.from === undefined
    ? await measure(values.short, stop.signal)
    : (JSON.parse(readFileSync(values.from, "utf8")) as Report);
console.log(renderTable(report));
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
if (stop.signal.aborted) {
  console.error("Interrupted: the figures are of fewer rounds, or missing.");
  process.exitCode = 130;
} else if (values["write-docs"]) writeDocs(report);
if (values.strict && report.cases.some((result) => result.verdicts.some((verdict) => verdict.outcome !== "reached"))) {
  process.exitCode = 1;
}
