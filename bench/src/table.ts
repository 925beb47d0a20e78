/** The report as text for a terminal of 120 columns. */
import { LIMIT, OURS, type Verdict } from "./goals.ts";
import { type CaseResult, figuresOf, type Report, type Row } from "./results.ts";

const formatCost = (value: number): string =>
  value >= 10_000 ? value.toFixed(0) : value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);

const formatRatio = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? "" : value >= 100 ? value.toFixed(0) : value.toFixed(2);

/** One row's cells: subject, median, spread, ratio to the limit, ratio to ours; or why there is no figure. */
interface Cells {
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

const costOf = (row: Row): number => figuresOf(row.standing)?.median ?? 0;

/** Rows with a figure by cost, then those over budget or failed. */
export function ordered(rows: readonly Row[]): Row[] {
  const rank = { measured: 0, "over-budget": 1, failed: 2, absent: 3 };
  return rows
    .filter((row) => row.standing.state !== "absent")
    .sort((a, b) => rank[a.standing.state] - rank[b.standing.state] || costOf(a) - costOf(b));
}

/** The peers without a figure, grouped by reason. */
export function absences(rows: readonly Row[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const row of rows) {
    if (row.standing.state !== "absent") continue;
    byReason.set(row.standing.reason, [...(byReason.get(row.standing.reason) ?? []), row.subject]);
  }
  return [...byReason].map(([reason, names]) => `${names.join(", ")}: ${reason}`);
}

const INDENT = "    ";
const WIDTH = 120;

/** Breaks a long line at spaces, and indents the following lines. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  let rest = INDENT + text;
  while (rest.length > WIDTH) {
    const at = rest.lastIndexOf(" ", WIDTH);
    lines.push(rest.slice(0, at));
    rest = `${INDENT}        ${rest.slice(at + 1)}`;
  }
  return [...lines, rest];
}

function rowLine(result: CaseResult, row: Row): string {
  const cells = cellsOf(result, row);
  const ratios = `${cells.spread.padEnd(18)}${cells.toLimit.padStart(9)}${cells.toOurs.padStart(9)}`;
  const figures = cells.spread === "" ? "" : `  ${ratios}`;
  return `${INDENT}${cells.subject.padEnd(22)}${cells.median.padStart(10)}${figures}  ${cells.remark}`.trimEnd();
}

function caseLines(result: CaseResult): string[] {
  const heads = `${"median".padStart(10)}  ${"min..max".padEnd(18)}${"× limit".padStart(9)}${"× ours".padStart(9)}`;
  const notes = result.rows.flatMap((row) => (row.note === undefined ? [] : [`${row.subject}: ${row.note}`]));
  const remarks = [
    ...(result.limitTitle === undefined ? [] : [`limit:  ${result.limitTitle}`]),
    ...(result.peersLeftOut === undefined ? [] : [result.peersLeftOut]),
    ...notes.map((note) => `note:   ${note}`),
    ...absences(result.rows).map((absence) => `absent: ${absence}`),
  ];
  return [
    "",
    `${result.id}  ${result.title}  [${result.unit}/op]`,
    `${INDENT}${"".padEnd(22)}${heads}`,
    ...ordered(result.rows).map((row) => rowLine(result, row)),
    ...remarks.flatMap(wrapped),
    ...result.verdicts.map(goalLine),
  ];
}

export function goalLine({ text, measured, outcome }: Verdict): string {
  return `${INDENT}goal:   ${text.padEnd(54)} ${measured.padEnd(34)} ${outcome}`;
}

export function summaryLine({ cases }: Summed): string {
  const verdicts = cases.flatMap((result) => result.verdicts);
  const count = (outcome: string) => verdicts.filter((verdict) => verdict.outcome === outcome).length;
  const missed = cases.filter((result) => result.verdicts.some((verdict) => verdict.outcome === "missed"));
  const names = missed.length === 0 ? "" : ` (${missed.map((result) => result.id).join(", ")})`;
  return `goals: ${count("reached")} reached, ${count("missed")} missed${names}, ${count("not measured")} not measured`;
}

/** What has goals by rows: the reports of all benchmarks. */
interface Summed {
  readonly cases: readonly { readonly id: string; readonly verdicts: readonly Verdict[] }[];
}

export function renderTable(report: Report): string {
  const mode = report.isShort
    ? "\nshort mode: a smoke run at a twentieth of the sizes over 1,000, not a measurement"
    : "";
  return [
    `Node ${report.node}, medians of ${report.rounds} interleaved rounds in fresh processes${mode}`,
    "* full peer: owner-safe release, timeout or abort",
    ...report.cases.flatMap(caseLines),
    "",
    summaryLine(report),
  ].join("\n");
}
