/** The goals of row E1: for the same program, the least factor by which ours is faster than the other subject. */
import type { Figure } from "./measure.ts";

export interface Verdict {
  readonly workload: string;
  readonly text: string;
  /** The least processor time of the other subject divided by ours; the ratio of the medians is beside it. */
  readonly ratio: number;
  readonly medianRatio: number;
  readonly outcome: "reached" | "missed" | "not measured";
}

const stepWorkloads = ["contended", "free", "helpers"];

const goals = [
  ...stepWorkloads.map((workload) => ({ workload, against: "effect", atLeast: 5 })),
  ...[...stepWorkloads, "crowd-100000", "crowd-1000000"].map((workload) => ({
    workload,
    against: "promises",
    atLeast: 1,
  })),
];

export function judge(figures: readonly Figure[]): Verdict[] {
  return goals.map(({ workload, against, atLeast }) => {
    const find = (subject: string) => figures.find((one) => one.workload === workload && one.subject === subject);
    const [ours, theirs] = [find("slotkeeper"), find(against)];
    const ratio = (theirs?.least ?? Number.NaN) / (ours?.least ?? Number.NaN);
    const medianRatio = (theirs?.median ?? Number.NaN) / (ours?.median ?? Number.NaN);
    const outcome = Number.isNaN(ratio) ? "not measured" : ratio >= atLeast ? "reached" : "missed";
    return { workload, text: `≥ ${atLeast} × as fast as ${against}`, ratio, medianRatio, outcome };
  });
}
