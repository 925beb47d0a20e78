/** The report of a run: as JSON, as text, and judged by the goals. */
import type { Verdict } from "../goals.ts";
import { figureRows, renderRows, type ScenarioResult, verdictOf } from "../service/report.ts";
import { goalLine, summaryLine } from "../table.ts";
import type { Figures } from "./judge.ts";
import { SUBJECTS, type SubjectId } from "./subjects.ts";

export interface Report {
  readonly node: string;
  readonly commit: string;
  /** The commit that `-old` subjects have. */
  readonly old?: string;
  readonly isShort: boolean;
  readonly rounds: number;
  readonly s1?: ScenarioResult;
  readonly peers: { readonly [id in SubjectId]?: readonly Figures[] };
  readonly skipped: { readonly [id in SubjectId]?: string };
}

interface Goal {
  readonly figure: string;
  readonly bound: number;
  readonly isLeast?: boolean;
}

const GOALS: readonly Goal[] = [
  { figure: "slots over, one user", bound: 0 },
  { figure: "slots over, one tenant", bound: 0 },
  { figure: "slots over, in all", bound: 0 },
  { figure: "… without under-estimates", bound: 0 },
  { figure: "utilisation", bound: 0.95, isLeast: true },
  { figure: "Jain of cost", bound: 0.99, isLeast: true },
  { figure: "slots leaked", bound: 0 },
];

/** Ours are judged. */
function peerVerdicts({ peers }: Pick<Report, "peers">): Verdict[] {
  return (["slotkeeper", "slotkeeper-fleet"] as const).flatMap((id) =>
    GOALS.map(({ figure, bound, isLeast = false }) => {
      const text = `${id}: ${figure} ${isLeast ? "≥" : "≤"} ${bound}`;
      const values = (peers[id] ?? []).map((figures) => figures[figure] ?? Number.NaN);
      // The worst of the runs, because a median would hide a single violation.
      const worst = isLeast ? Math.min(...values) : Math.max(...values);
      return verdictOf({ text, bound, isLeast }, values.length === 0 ? Number.NaN : worst);
    }),
  );
}

export function casesOf(report: Report): { readonly id: string; readonly verdicts: readonly Verdict[] }[] {
  const peers = Object.keys(report.peers).length === 0 ? [] : [{ id: "peers", verdicts: peerVerdicts(report) }];
  return [...(report.s1 === undefined ? [] : [report.s1]), ...peers];
}

/** What the table cannot say: what a subject cannot do, and why one is missing. */
export function notesOf({ peers, skipped }: Pick<Report, "peers" | "skipped">): string[] {
  return SUBJECTS.flatMap(({ id, about, note }) => {
    if (skipped[id] !== undefined) return [`${id} (${about}): skipped, ${skipped[id]}.`];
    return peers[id] === undefined ? [] : [`${id} (${about})${note === undefined ? "" : `: ${note}`}.`];
  });
}

export function renderReport(report: Report): string {
  const mode = report.isShort ? "; short mode: a smoke run, not a measurement" : "";
  const s1 =
    report.s1 === undefined ? [] : ["", report.s1.id, ...renderRows(report.s1), ...report.s1.verdicts.map(goalLine)];
  const peers =
    figureRows({ samples: report.peers }).length === 0 ? [] : ["", "peers", ...renderRows({ samples: report.peers })];
  return [
    `Node ${report.node}, commit ${report.commit}, ${report.rounds} rounds${mode}`,
    ...s1,
    ...peers,
    ...notesOf(report).map((note) => `    note:   ${note}`),
    ...(peers.length === 0 ? [] : peerVerdicts(report).map(goalLine)),
    "",
    summaryLine({ cases: casesOf(report) }),
  ].join("\n");
}
