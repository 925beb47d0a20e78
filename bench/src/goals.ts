/**
 * Goals as data, and how the figures of a run are compared with them. Every goal compares figures of one run. "Level"
 * means that the spreads (min..max over the rounds) overlap.
 */

/** Figures of one (case, subject) pair over the rounds. */
export interface Figures {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly extra: Readonly<Record<string, number>>;
}

export type Peers = "all" | "full" | readonly string[];

export type Goal =
  /** ours ≤ factor × the figure of `subject` in `caseId` (this case if left out). */
  | { readonly kind: "at-most"; readonly factor: number; readonly subject: string; readonly caseId?: string }
  /** Each of the peers costs at least factor × ours. */
  | { readonly kind: "faster-than"; readonly factor: number; readonly peers: Peers }
  /** Each of the peers costs more than ours, by more than the spread. */
  | { readonly kind: "ahead-of"; readonly peers: Peers }
  /** No peer is ahead by more than the spread. */
  | { readonly kind: "level-with"; readonly peers: Peers }
  /** ours ≤ factor × the cheapest peer. */
  | { readonly kind: "near-cheapest-peer"; readonly factor: number }
  /** Our growth from `caseId` to this case is at most the growth of the limit, plus the slack. */
  | { readonly kind: "grows-like-limit"; readonly caseId: string; readonly slack: number }
  /** Our growth from `caseId` to this case; the growth of the limit is shown beside it. */
  | { readonly kind: "linear"; readonly factor: number; readonly caseId: string }
  | { readonly kind: "bound"; readonly most: number; readonly unit: string }
  | { readonly kind: "extra-bound"; readonly extra: string; readonly most: number; readonly unit: string };

export interface Verdict {
  readonly text: string;
  readonly measured: string;
  readonly outcome: "reached" | "missed" | "not measured";
}

/** Where `judge` finds the figures. `peers` lists those with figures in the case. */
export interface Scores {
  figures(caseId: string, subject: string): Figures | undefined;
  peers(caseId: string, which: Peers): readonly string[];
  /** Whether the peer exceeded its budget: it is slower than anything measured. */
  overBudget(caseId: string, subject: string): boolean;
}

export const OURS = "slotkeeper";
export const LIMIT = "limit";

const ratio = (value: number): string => `${value.toFixed(2)} ×`;

const peersText = (peers: Peers): string =>
  peers === "all" ? "every peer" : peers === "full" ? "every full peer" : peers.join(", ");

const where = (caseId: string | undefined): string => (caseId === undefined ? "" : ` of ${caseId}`);

/** The goal as a sentence of the table. */
function goalText(goal: Goal): string {
  switch (goal.kind) {
    case "at-most":
      return `≤ ${goal.factor} × ${goal.subject}${where(goal.caseId)}`;
    case "faster-than":
      return `≥ ${goal.factor} × faster than ${peersText(goal.peers)}`;
    case "ahead-of":
      return `ahead of ${peersText(goal.peers)} by more than the spread`;
    case "level-with":
      return `level with or ahead of ${peersText(goal.peers)}`;
    case "near-cheapest-peer":
      return `≤ ${goal.factor} × the cheapest peer`;
    case "grows-like-limit":
      return `growth from ${goal.caseId} ≤ the limit's + ${Math.round(goal.slack * 100)} %`;
    case "linear":
      return `linear: ≤ ${goal.factor} × the cost of ${goal.caseId}`;
    case "bound":
      return `≤ ${goal.most} ${goal.unit}`;
    case "extra-bound":
      return `${goal.extra} ≤ ${goal.most} ${goal.unit}`.trim();
  }
}

const decide = (isReached: boolean): Verdict["outcome"] => (isReached ? "reached" : "missed");

type Judged = Omit<Verdict, "text">;
const unmeasured: Judged = { measured: "–", outcome: "not measured" };

/** The best peer by `score`, lowest first. Peers over budget are left out. */
function strongest(scores: Scores, caseId: string, which: Peers, score: (figures: Figures) => number) {
  let best: { peer: string; figures: Figures } | undefined;
  for (const peer of scores.peers(caseId, which)) {
    const figures = scores.figures(caseId, peer);
    if (figures === undefined) continue;
    if (best === undefined || score(figures) < score(best.figures)) best = { peer, figures };
  }
  return best;
}

function judgeAgainstPeers(
  goal: Extract<Goal, { peers: Peers }>,
  caseId: string,
  ours: Figures,
  scores: Scores,
): Judged {
  const best = strongest(scores, caseId, goal.peers, (figures) => figures.median);
  if (best === undefined) {
    const beaten = scores.peers(caseId, goal.peers).filter((peer) => scores.overBudget(caseId, peer));
    return beaten.length === 0 ? unmeasured : { measured: `${beaten.join(", ")} over budget`, outcome: "reached" };
  }
  const lead = best.figures.median / ours.median;
  return { measured: `${best.peer} ${ratio(lead)}`, outcome: decide(isReachedAgainst(goal, ours, best.figures)) };
}

function isReachedAgainst(goal: Extract<Goal, { peers: Peers }>, ours: Figures, best: Figures): boolean {
  switch (goal.kind) {
    case "faster-than":
      return best.median / ours.median >= goal.factor;
    case "ahead-of":
      return ours.max < best.min;
    case "level-with":
      return ours.min <= best.max;
  }
}

const growth = (scores: Scores, subject: string, from: string, to: string): number | undefined => {
  const small = scores.figures(from, subject);
  const large = scores.figures(to, subject);
  return small === undefined || large === undefined ? undefined : large.median / small.median;
};

function judgeGrowth(
  goal: Extract<Goal, { kind: "grows-like-limit" | "linear" }>,
  caseId: string,
  scores: Scores,
): Judged {
  const ours = growth(scores, OURS, goal.caseId, caseId);
  const limit = growth(scores, LIMIT, goal.caseId, caseId);
  if (ours === undefined || limit === undefined) return unmeasured;
  const most = goal.kind === "linear" ? goal.factor : limit * (1 + goal.slack);
  return { measured: `${ratio(ours)}, limit ${ratio(limit)}`, outcome: decide(ours <= most) };
}

function judgeMeasured(goal: Goal, caseId: string, ours: Figures, scores: Scores): Judged {
  switch (goal.kind) {
    case "at-most": {
      const other = scores.figures(goal.caseId ?? caseId, goal.subject);
      if (other === undefined) return unmeasured;
      const measured = ours.median / other.median;
      return { measured: ratio(measured), outcome: decide(measured <= goal.factor) };
    }
    case "faster-than":
    case "ahead-of":
    case "level-with":
      return judgeAgainstPeers(goal, caseId, ours, scores);
    case "near-cheapest-peer": {
      const best = strongest(scores, caseId, "all", (figures) => figures.median);
      if (best === undefined) return unmeasured;
      const measured = ours.median / best.figures.median;
      return { measured: `${ratio(measured)} ${best.peer}`, outcome: decide(measured <= goal.factor) };
    }
    case "grows-like-limit":
    case "linear":
      return judgeGrowth(goal, caseId, scores);
    case "bound":
      return { measured: `${ours.median.toFixed(0)} ${goal.unit}`, outcome: decide(ours.median <= goal.most) };
    case "extra-bound": {
      const value = ours.extra[goal.extra];
      if (value === undefined) return unmeasured;
      return { measured: `${Number(value.toFixed(2))} ${goal.unit}`.trim(), outcome: decide(value <= goal.most) };
    }
  }
}

export function judge(goal: Goal, caseId: string, scores: Scores): Verdict {
  const ours = scores.figures(caseId, OURS);
  const judged = ours === undefined ? unmeasured : judgeMeasured(goal, caseId, ours, scores);
  return { text: goalText(goal), ...judged };
}

/** Our figures of other cases that the goals of a case refer to. They must be measured in the same run. */
export function referencesOf(goals: readonly Goal[]): readonly { caseId: string; subject: string }[] {
  return goals.flatMap((goal) => {
    if (goal.kind === "at-most" && goal.caseId !== undefined) return [{ caseId: goal.caseId, subject: goal.subject }];
    if (goal.kind !== "grows-like-limit" && goal.kind !== "linear") return [];
    return [OURS, LIMIT].map((subject) => ({ caseId: goal.caseId, subject }));
  });
}
