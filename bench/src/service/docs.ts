/** The service's part of `docs/reference/benchmarks.md`. */
import { SERVICE_TITLE, tableRow } from "../page.ts";
import { summaryLine } from "../table.ts";
import { figureRows, type Report, type Sampled, type ScenarioResult } from "./report.ts";

export function renderServicePart(report: Report): string {
  const goals = report.cases.flatMap(({ id, verdicts }) =>
    verdicts.map(({ text, measured, outcome }) => tableRow([id, text, measured, outcome])),
  );
  return [
    SERVICE_TITLE,
    "",
    "Written by `npm run bench:service -- --write-docs`; do not edit. `--short --only S1,S6` is a quick look at some rows.",
    "",
    `Node ${report.node}, medians of ${report.rounds} rounds with their spread; figures without one were taken once, for`,
    "comparison. Real HTTP on loopback; server and clients are fresh processes in each round, and the subjects of a row take",
    "turns. *bare* reads the same requests with `node:http` and answers at once with bodies of the same length: no server in",
    "JavaScript does less. *seed* answers at once too, under the same limits, and its clients ask again every 500 ms.",
    "*seed-sql* is the same with our functions for direct callers in PostgreSQL. *journal* is ours with its journal, *weighted*",
    "ours with the weighted scheduler. PostgreSQL syncs every commit (`fsync`, `synchronous_commit` and `full_page_writes` are",
    "on), as users run it; *postgres-unsynced* has all three off, loses commits in a crash, and only shows what the syncs cost.",
    "The server's processor time stands beside rates, because other programs on the machine do",
    "not stretch it.",
    "",
    `In this run: ${summaryLine(report)}.`,
    "",
    tableRow(["row", "goal", "measured", "verdict"]),
    "|---|---|---|---|",
    ...goals,
    "",
    ...report.cases.flatMap(scenarioSection),
  ].join("\n");
}

function scenarioSection(result: ScenarioResult): string[] {
  return [`### ${result.id}`, "", `${result.title}.`, "", ...figureTable(result), ""];
}

/** The table of the figures: a column for each subject. */
export function figureTable(sampled: Sampled): string[] {
  const subjects = Object.keys(sampled.samples);
  return [
    tableRow(["", ...subjects]),
    `|---|${subjects.map(() => "---:|").join("")}`,
    ...figureRows(sampled).map(({ metric, cells }) => tableRow([metric, ...cells])),
  ];
}
