/** What row E1 asks for: the same program, at least so many times as fast as the other subject runs it. */
export interface Goal {
  readonly workload: string;
  readonly against: string;
  readonly atLeast: number;
}

export interface Verdict {
  readonly goal: Goal;
  readonly ratio: number;
  readonly isMet: boolean;
}

interface Measured {
  readonly workload: string;
  readonly subject: string;
  readonly least: number;
}

const stepWorkloads = ["contended", "free", "helpers"];

export const goals: readonly Goal[] = [
  ...stepWorkloads.map((workload) => ({ workload, against: "effect", atLeast: 5 })),
  ...[...stepWorkloads, "crowd"].map((workload) => ({ workload, against: "promises", atLeast: 1 })),
];

/** A figure that is missing misses the goal. */
export function verdictOf(goal: Goal, figures: readonly Measured[]): Verdict {
  const least = (subject: string): number =>
    figures.find((figure) => figure.workload === goal.workload && figure.subject === subject)?.least ?? Number.NaN;
  const ratio = least(goal.against) / least("slotkeeper");
  return { goal, ratio, isMet: ratio >= goal.atLeast };
}
