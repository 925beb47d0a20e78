import type { Verdict } from "../goals.ts";
import { goalLine, summaryLine } from "../table.ts";
import { median } from "../timing.ts";
import type { Goal, Metrics, Scenario, SubjectId } from "./scenario.ts";

/** The result of a run, as JSON. */
export interface Report {
  readonly node: string;
  readonly rounds: number;
  readonly isShort: boolean;
  readonly cases: readonly ScenarioResult[];
}

export interface ScenarioResult {
  readonly id: string;
  readonly title: string;
  readonly samples: Readonly<Partial<Record<SubjectId, readonly Metrics[]>>>;
  readonly violations: number;
  readonly verdicts: readonly Verdict[];
}

export function resultOf(scenario: Scenario, samples: ScenarioResult["samples"]): ScenarioResult {
  const { id, title, goals } = scenario;
  const figures = (subject: SubjectId, metric: string) => {
    const values = valuesOf(samples[subject], metric);
    // The sum, because a median would hide a single violation.
    return metric === "violations" ? sum(values) : median(values);
  };
  const all = Object.values(samples).flat();
  return {
    id,
    title,
    samples,
    violations: sum(all.map((sample) => sample["violations"] ?? 0)),
    verdicts: goals.map((goal) => verdictOf(goal, goal.measured(figures))),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

export function verdictOf({ text, bound, isLeast }: Omit<Goal, "measured">, value: number): Verdict {
  if (Number.isNaN(value)) return { text, measured: "–", outcome: "not measured" };
  return { text, measured: shown(value), outcome: (isLeast ? value >= bound : value <= bound) ? "reached" : "missed" };
}

/** JSON has no NaN: a round without grants has no waits, and its value is null. */
function valuesOf(samples: readonly Metrics[] | undefined, metric: string): number[] {
  const values = (samples ?? []).map((sample) => sample[metric] ?? Number.NaN);
  return values.every((value) => Number.isNaN(value)) ? values : values.filter((value) => !Number.isNaN(value));
}

const shown = (value: number): string =>
  Number.isNaN(value) ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toFixed(3)));

/** Figures by subject: those of each round. */
export interface Sampled {
  readonly samples: { readonly [subject: string]: readonly Metrics[] | undefined };
}

/** The figures of a scenario: a row for each metric, a cell for each subject, median with the spread in brackets. */
export function figureRows({ samples }: Sampled): { metric: string; cells: string[] }[] {
  const subjects = Object.values(samples);
  const metrics = Object.keys(subjects[0]?.[0] ?? {});
  return metrics.map((metric) => ({
    metric,
    cells: subjects.map((taken) => {
      const values = valuesOf(taken, metric);
      const spread = values.length > 1 ? ` (${shown(Math.min(...values))}..${shown(Math.max(...values))})` : "";
      return shown(median(values)) + spread;
    }),
  }));
}

export function renderReport(report: Report): string {
  const mode = report.isShort ? "; short mode: a smoke run, not a measurement" : "";
  return [
    `Node ${report.node}, medians of ${report.rounds} rounds, server and clients in fresh processes${mode}`,
    ...report.cases.flatMap(scenarioLines),
    "",
    summaryLine(report),
  ].join("\n");
}

function scenarioLines(result: ScenarioResult): string[] {
  return ["", `${result.id}  ${result.title}`, ...renderRows(result), ...result.verdicts.map(goalLine)];
}

/** The table of the figures as text. */
export function renderRows(sampled: Sampled): string[] {
  const heads = Object.keys(sampled.samples).map((name) => name.padStart(30));
  const rows = figureRows(sampled).map(
    ({ metric, cells }) => `    ${metric.padEnd(26)}${cells.map((cell) => cell.padStart(30)).join("")}`,
  );
  return [`    ${"".padEnd(26)}${heads.join("")}`, ...rows];
}
