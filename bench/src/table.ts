/** The report as text for a terminal of 120 columns. */
import { LIMIT, OURS } from "./goals.ts";
import { type CaseResult, figuresOf, type Report, type Row } from "./results.ts";

export const formatCost = (value: number): string =>
  value >= 10_000 ? value.toFixed(0) : value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);

const formatRatio = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? "" : value >= 100 ? value.toFixed(0) : value.toFixed(2);

/** One row's cells: subject, median, spread, ratio to the limit, ratio to ours; or why there is no figure. */
export interface Cells {
  readonly subject: string;
  readonly median: string;
  readonly spread: string;
  readonly toLimit: string;
  readonly toOurs: string;
  readonly remark: string;
}

const medianIn = (result: CaseResult, subject: string): number | undefined => {
  const row = result.rows.find((candidate) => candidate.subject === subject);
  return row === undefined ? undefined : figuresOf(row.standing)?.median;
};

const over = (value: number, base: number | undefined): string =>
  formatRatio(base === undefined ? undefined : value / base);

function remarkOf(row: Row): string {
  switch (row.standing.state) {
    case "absent":
      return `absent: ${row.standing.reason}`;
    case "failed":
      return `failed: ${row.standing.message}`;
    case "over-budget":
      return `> ${row.standing.budgetMs / 1000} s for the whole run: stopped`;
    case "measured":
      return "";
  }
}

export function cellsOf(result: CaseResult, row: Row): Cells {
  const figures = figuresOf(row.standing);
  const extra = Object.entries(figures?.extra ?? {}).map(([name, value]) => `${name} ${Number(value.toFixed(1))}`);
  return {
    subject: row.subject + (row.isFull && row.subject !== OURS ? " *" : ""),
    median: figures === undefined ? "–" : formatCost(figures.median),
    spread: figures === undefined ? "" : `${formatCost(figures.min)}..${formatCost(figures.max)}`,
    toLimit: figures === undefined ? "" : over(figures.median, medianIn(result, LIMIT)),
    toOurs: figures === undefined ? "" : over(figures.median, medianIn(result, OURS)),
    remark: [remarkOf(row), ...extra].filter((text) => text !== "").join(", "),
  };
}

/** Measured rows by cost, then those over budget or failed, then the absent ones. */
export function ordered(rows: readonly Row[]): Row[] {
  const rank = { measured: 0, "over-budget": 1, failed: 2, absent: 3 };
  const cost = (row: Row): number => figuresOf(row.standing)?.median ?? 0;
  return [...rows].sort((a, b) => rank[a.standing.state] - rank[b.standing.state] || cost(a) - cost(b));
}

function caseLines(result: CaseResult): string[] {
  const lines = [
    "",
    `${result.id.padEnd(6)} ${result.title}  [${result.unit}/op]`,
    `       ${"".padEnd(20)}${"median".padStart(10)}  ${"min..max".padEnd(18)}${"× limit".padStart(9)}${"× ours".padStart(9)}`,
  ];
  for (const row of ordered(result.rows)) {
    const cells = cellsOf(result, row);
    const figures =
      cells.spread === ""
        ? cells.median.padStart(10)
        : `${cells.median.padStart(10)}  ${cells.spread.padEnd(18)}${cells.toLimit.padStart(9)}${cells.toOurs.padStart(9)}`;
    lines.push(`       ${cells.subject.padEnd(20)}${figures}  ${cells.remark}`.trimEnd());
  }
  if (result.limitTitle !== undefined) lines.push(`       limit: ${result.limitTitle}`);
  if (result.peersLeftOut !== undefined) lines.push(`       ${result.peersLeftOut}`);
  for (const row of result.rows) if (row.note !== undefined) lines.push(`       ${row.subject}: ${row.note}`);
  for (const verdict of result.verdicts) {
    lines.push(`       goal  ${verdict.text.padEnd(52)} ${verdict.measured.padEnd(28)} ${verdict.outcome}`);
  }
  return lines;
}

export function summaryLine(report: Report): string {
  const verdicts = report.cases.flatMap((result) => result.verdicts);
  const count = (outcome: string) => verdicts.filter((verdict) => verdict.outcome === outcome).length;
  const missed = report.cases.filter((result) => result.verdicts.some((verdict) => verdict.outcome === "missed"));
  const names = missed.length === 0 ? "" : ` (${missed.map((result) => result.id).join(", ")})`;
  return `goals: ${count("reached")} reached, ${count("missed")} missed${names}, ${count("not measured")} not measured`;
}

export function renderTable(report: Report): string {
  const mode = report.isShort ? ", short mode: a smoke run, not a measurement" : "";
  return [
    `Node ${report.node}, medians of ${report.rounds} interleaved rounds in fresh processes${mode}`,
    "* full peer: owner-safe release, timeout or abort",
    ...report.cases.flatMap(caseLines),
    "",
    summaryLine(report),
  ].join("\n");
}
