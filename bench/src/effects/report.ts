/** The figures as text for a terminal, and as `docs/reference/benchmarks-effects.md`. */
import type { Verdict } from "./goals.ts";
import type { Figure } from "./measure.ts";
import type { Workload } from "./workload.ts";

export interface Report {
  readonly node: string;
  readonly rounds: number;
  readonly isShort: boolean;
  readonly figures: readonly Figure[];
  readonly verdicts: readonly Verdict[];
}

/** Subject, least, median, most, least wall time, and how many times as much as ours it takes. */
function cellsOf(figure: Figure, figures: readonly Figure[]): string[] {
  const ours = figures.find(({ subject }) => subject === "slotkeeper")?.least ?? Number.NaN;
  const { subject, unit, least, median, most, leastWall } = figure;
  const wall = unit === "ns per step" ? leastWall.toFixed(0) : "";
  return [subject, least.toFixed(0), median.toFixed(0), most.toFixed(0), wall, (least / ours).toFixed(2)];
}

const heads = (unit: string): string[] => ["subject", `least, ${unit}`, "median", "most", "wall", "× ours"];

const leftOut = ({ without }: Workload): string[] =>
  Object.entries(without ?? {}).map(([subject, reason]) => `${subject} is left out: ${reason}.`);

export function workloadText(workload: Workload, figures: readonly Figure[]): string {
  const lines = [heads(figures[0]?.unit ?? ""), ...figures.map((figure) => cellsOf(figure, figures))].map(
    ([subject = "", least = "", ...rest]) =>
      `  ${subject.padEnd(12)}${least.padStart(22)}${rest.map((cell) => cell.padStart(10)).join("")}`,
  );
  return ["", `${workload.name}: ${workload.what}`, ...lines, ...leftOut(workload).map((line) => `  ${line}`)].join(
    "\n",
  );
}

function goalCells({ workload, text, ratio, medianRatio, outcome }: Verdict): string[] {
  const times = (value: number): string => (Number.isNaN(value) ? "–" : `${value.toFixed(2)} ×`);
  return [workload, text, times(ratio), times(medianRatio), outcome];
}

const goalHeads = ["row", "goal", "by least", "by median", "verdict"];

export function verdictsText(verdicts: readonly Verdict[]): string {
  const lines = [goalHeads, ...verdicts.map(goalCells)].map(
    ([row = "", goal = "", least = "", median = "", outcome = ""]) =>
      `  ${row.padEnd(15)}${goal.padEnd(30)}${least.padStart(9)}${median.padStart(11)}  ${outcome}`,
  );
  return ["", "Goals of row E1, judged by the least processor time", ...lines].join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map((_, index) => (index === 0 ? "---" : "---:")).join("|")}|`, ...rows.map(line), ""];
}

function section(workload: Workload, all: readonly Figure[]): string[] {
  const figures = all.filter((figure) => figure.workload === workload.name);
  const rows = figures.map((figure) => cellsOf(figure, figures));
  const remarks = leftOut(workload).flatMap((line) => [line, ""]);
  return [
    `### ${workload.name}`,
    "",
    `${workload.what}.`,
    "",
    ...table(heads(figures[0]?.unit ?? ""), rows),
    ...remarks,
  ];
}

export function renderDocs(report: Report, workloads: readonly Workload[]): string {
  return [
    "# Benchmarks of effects",
    "",
    "Written by `node bench/dist/effects/main.js --write-docs` (after `npm run build`); do not edit. `--short` gives a quick",
    "look.",
    "",
    `Node ${report.node}, ${report.rounds} rounds. Each figure comes from a fresh process, and the subjects of a row take turns round by`,
    "round. A _step_ is one operation asked of the scheduler or the semaphore. What is compared is processor time, that of",
    "the compiler's and the collector's threads included, and the least of it: other programs on the machine only ever add.",
    "All subjects run the same program with the same number of suspensions; what each does is in `bench/src/effects`. The",
    "plain promises have the barest semaphore there is, a counter and a queue of resolvers: no timeout, no cancellation, no",
    "report of a deadlock.",
    "",
    "A crowd is measured cold, since a program starts a million tasks once, not repeatedly. The scheduler is JavaScript and has to be",
    "compiled first, which promises, being part of the engine, have not: that is a constant of some 0.1 s of processor time,",
    "mostly on the compiler's own thread. It weighs on 100,000 tasks and is hardly seen in 1,000,000.",
    "",
    "## Goals",
    "",
    ...table(goalHeads, report.verdicts.map(goalCells)),
    "## Rows",
    "",
    ...workloads.flatMap((workload) => section(workload, report.figures)),
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}
