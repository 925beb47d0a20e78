import { median } from "./load/statistics.ts";
import type { Goal, Metrics, Scenario, SubjectId } from "./scenario.ts";

/** What a run leaves behind, as JSON. */
export interface Report {
  readonly node: string;
  readonly rounds: number;
  readonly isShort: boolean;
  readonly scenarios: readonly ScenarioReport[];
}

export interface ScenarioReport {
  readonly id: string;
  readonly title: string;
  readonly samples: Readonly<Partial<Record<SubjectId, readonly Metrics[]>>>;
  readonly verdicts: readonly Verdict[];
}

export interface Verdict {
  readonly text: string;
  readonly measured: number;
  readonly outcome: "reached" | "missed" | "not measured";
}

export function judge({ goals }: Scenario, samples: ScenarioReport["samples"]): Verdict[] {
  const figures = (subject: SubjectId, metric: string) => {
    const values = valuesOf(samples[subject], metric);
    // One violation in one round is one too many: the median would hide it.
    return metric === "violations" ? values.reduce((sum, value) => sum + value, 0) : median(values);
  };
  return goals.map((goal) => verdict(goal, goal.measured(figures)));
}

function verdict({ text, bound, isLeast }: Goal, measured: number): Verdict {
  if (Number.isNaN(measured)) return { text, measured, outcome: "not measured" };
  return { text, measured, outcome: (isLeast ? measured >= bound : measured <= bound) ? "reached" : "missed" };
}

/** JSON has no NaN: a round in which nobody was granted anything has no waits, and comes as null. */
function valuesOf(samples: readonly Metrics[] | undefined, metric: string): number[] {
  const values = (samples ?? []).map((sample) => sample[metric] ?? Number.NaN);
  return values.every((value) => Number.isNaN(value)) ? values : values.filter((value) => !Number.isNaN(value));
}

const shown = (value: number): string =>
  Number.isNaN(value) ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toFixed(3)));

/** A table for each scenario: subjects down, metrics across, median with the spread under it in brackets. */
export function renderReport({ node, rounds, isShort, scenarios }: Report): string {
  const mode = isShort ? "; short mode: a smoke run, not a measurement" : "";
  const lines = [`Node ${node}, medians of ${rounds} interleaved rounds, server and clients in fresh processes${mode}`];
  for (const scenario of scenarios) lines.push("", ...scenarioLines(scenario));
  const outcomes = scenarios.flatMap(({ verdicts }) => verdicts.map(({ outcome }) => outcome));
  const count = (wanted: string) => outcomes.filter((outcome) => outcome === wanted).length;
  lines.push(
    "",
    `goals: ${count("reached")} reached, ${count("missed")} missed, ${count("not measured")} not measured`,
  );
  return lines.join("\n");
}

function scenarioLines({ id, title, samples, verdicts }: ScenarioReport): string[] {
  const subjects = Object.entries(samples);
  const metrics = Object.keys(subjects[0]?.[1]?.[0] ?? {});
  const rows = metrics.map((metric) => {
    const cells = subjects.map(([, taken]) => {
      const values = valuesOf(taken, metric);
      return `${shown(median(values))} (${shown(Math.min(...values))}..${shown(Math.max(...values))})`.padStart(30);
    });
    return `    ${metric.padEnd(26)}${cells.join("")}`;
  });
  const goals = verdicts.map(
    ({ text, measured, outcome }) => `    goal:  ${text.padEnd(50)} ${shown(measured).padEnd(12)} ${outcome}`,
  );
  return [
    `${id}  ${title}`,
    `    ${"".padEnd(26)}${subjects.map(([name]) => name.padStart(30)).join("")}`,
    ...rows,
    ...goals,
  ];
}
