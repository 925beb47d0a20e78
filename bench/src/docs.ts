/** The report as `docs/reference/benchmarks.md`. No dates and no machine names: the ratios are what matters. */
import { tableRow } from "./page.ts";
import type { CaseResult, Report } from "./results.ts";
import { absences, cellsOf, ordered, summaryLine } from "./table.ts";

function caseSection(result: CaseResult): string[] {
  const head = ["subject", `median ${result.unit}`, "min..max", "× limit", "× ours", ""];
  const rows = ordered(result.rows).map((row) => {
    const cells = cellsOf(result, row);
    return tableRow([cells.subject, cells.median, cells.spread, cells.toLimit, cells.toOurs, cells.remark]);
  });
  const notes = result.rows.flatMap((row) => (row.note === undefined ? [] : [`- ${row.subject}: ${row.note}.`]));
  const limit = result.limitTitle === undefined ? [] : [`- Limit: ${result.limitTitle}.`];
  const leftOut = result.peersLeftOut === undefined ? [] : [`- ${result.peersLeftOut}.`];
  const absent = absences(result.rows).map((absence) => `- Absent: ${absence}.`);
  return [
    `### ${result.id}`,
    "",
    `${result.title}, ${result.unit} per operation.`,
    "",
    tableRow(head),
    "|---|---:|---|---:|---:|---|",
    ...rows,
    "",
    ...limit,
    ...leftOut,
    ...notes,
    ...absent,
    "",
  ];
}

function goalSection(report: Report): string[] {
  const rows = report.cases.flatMap((result) =>
    result.verdicts.map((verdict) => tableRow([result.id, verdict.text, verdict.measured, verdict.outcome])),
  );
  return ["## Goals", "", tableRow(["row", "goal", "measured", "verdict"]), "|---|---|---|---|", ...rows, ""];
}

export function renderDocs(report: Report): string {
  return [
    "# Benchmarks",
    "",
    "Written by `npm run bench -- --write-docs`; do not edit. `npm run bench` prints the same as text, and",
    "`npm run bench -- --short --only W1,W5` a quick look at some rows.",
    "",
    `Node ${report.node}, medians of ${report.rounds} rounds. Each figure comes from a fresh process, and the subjects of a`,
    "row take turns round by round, so that a slow spell of the machine hits all of them alike. Absolute times mean little",
    "on a shared machine: read the ratios. The *limit* is the cheapest JavaScript for the same job, measured in the same",
    'run. "× limit" and "× ours" are costs: 2.00 in the last column is a peer that costs twice what Slotkeeper costs.',
    "An asterisk marks full peers: those with an owner-safe release, a timeout or an abort. A peer is absent from a row",
    "only if it lacks the operation. *Level* means that the spreads touch.",
    "",
    `In this run: ${summaryLine(report)}.`,
    "",
    ...goalSection(report),
    "## Rows",
    "",
    ...report.cases.flatMap(caseSection),
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}
