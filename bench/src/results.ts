/** The result of a run: the format of the JSON file, and the lookups that goals need. */
import { type Figures, judge, OURS, type Peers, type Scores, type Verdict } from "./goals.ts";
import { median } from "./timing.ts";
import type { Case, Measurement } from "./workload.ts";

export type Standing =
  | { readonly state: "measured"; readonly samples: readonly Measurement[] }
  | { readonly state: "over-budget"; readonly budgetMs: number }
  | { readonly state: "failed"; readonly message: string }
  | { readonly state: "absent"; readonly reason: string };

export interface Row {
  readonly subject: string;
  readonly isFull: boolean;
  readonly isYardstick: boolean;
  readonly note?: string;
  readonly standing: Standing;
}

export interface CaseResult {
  readonly id: string;
  readonly title: string;
  readonly unit: "ns" | "B";
  readonly limitTitle?: string;
  readonly peersLeftOut?: string;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
}

export interface Report {
  readonly node: string;
  readonly rounds: number;
  readonly isShort: boolean;
  readonly cases: readonly CaseResult[];
}

/** What a report has measured, by `case subject`. */
export function standingsOf({ cases }: Report): Map<string, Standing> {
  const present = cases.flatMap(({ id, rows }) =>
    rows.flatMap(({ subject, standing }) =>
      standing.state === "absent" ? [] : [[`${id} ${subject}`, standing] as const],
    ),
  );
  return new Map(present);
}

export function figuresOf(standing: Standing): Figures | undefined {
  if (standing.state !== "measured" || standing.samples.length === 0) return undefined;
  const values = standing.samples.map((sample) => sample.value);
  const names = Object.keys(standing.samples[0]?.extra ?? {});
  const extra = names.map((name) => [name, median(standing.samples.map((sample) => sample.extra?.[name] ?? 0))]);
  return {
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
    extra: Object.fromEntries(extra) as Record<string, number>,
  };
}

const isPeer = (row: Row): boolean => row.subject !== OURS && !row.isYardstick;

const isAmong = (row: Row, which: Peers): boolean =>
  isPeer(row) && (which === "all" || (which === "full" ? row.isFull : which.includes(row.subject)));

function scoresOf(rows: ReadonlyMap<string, readonly Row[]>): Scores {
  const find = (caseId: string, subject: string) => rows.get(caseId)?.find((row) => row.subject === subject);
  return {
    figures: (caseId, subject) => {
      const row = find(caseId, subject);
      return row === undefined ? undefined : figuresOf(row.standing);
    },
    peers: (caseId, which) => (rows.get(caseId) ?? []).filter((row) => isAmong(row, which)).map((row) => row.subject),
    overBudget: (caseId, subject) => find(caseId, subject)?.standing.state === "over-budget",
  };
}

/** Joins the cases with the rows measured for them, and judges the goals. */
export function caseResults(cases: readonly Case[], rows: ReadonlyMap<string, readonly Row[]>): CaseResult[] {
  const scores = scoresOf(rows);
  return cases.map((chosen) => ({
    id: chosen.id,
    title: chosen.title,
    unit: chosen.unit,
    ...(chosen.limitTitle === undefined ? {} : { limitTitle: chosen.limitTitle }),
    ...(chosen.peersLeftOut === undefined ? {} : { peersLeftOut: chosen.peersLeftOut }),
    rows: rows.get(chosen.id) ?? [],
    verdicts: chosen.goals.map((goal) => judge(goal, chosen.id, scores)),
  }));
}
