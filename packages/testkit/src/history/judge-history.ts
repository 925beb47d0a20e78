import { type Counts, countsOf } from "./counts.ts";
import { History } from "./history.ts";
import type { HistoryLine } from "./line.ts";
import { HistoryReader, type Lines } from "./read-history.ts";
import type { Rule, RuleName, Violation } from "./rule.ts";
import { arrivalOrder } from "./rules/arrival-order.ts";
import { budgets } from "./rules/budgets.ts";
import { cooldowns } from "./rules/cooldowns.ts";
import { ends } from "./rules/ends.ts";
import { fairShares } from "./rules/fair-shares.ts";
import { fences } from "./rules/fences.ts";
import { handOver } from "./rules/hand-over.ts";
import { heldBack } from "./rules/held-back.ts";
import { limits } from "./rules/limits.ts";
import { openBreaker } from "./rules/open-breaker.ts";
import { ownership } from "./rules/ownership.ts";
import { probes } from "./rules/probes.ts";
import { reasons } from "./rules/reasons.ts";
import { uses } from "./rules/uses.ts";

export const RULES: readonly Rule[] = [
  limits,
  ownership,
  fences,
  ends,
  reasons,
  handOver,
  arrivalOrder,
  fairShares,
  uses,
  cooldowns,
  heldBack,
  openBreaker,
  probes,
  budgets,
];

/** What the checker says about a history. */
export interface Verdict {
  readonly calls: number;
  readonly sessions: number;
  readonly grants: number;
  /** Calls that continue a session whose first call is not in the history. They are not judged. */
  readonly unknown: number;
  /** What all instances together must have counted. */
  readonly counts: Counts;
  readonly rules: readonly RuleVerdict[];
  /** Of all rules, in the order of time. */
  readonly violations: readonly Violation[];
}

export interface RuleVerdict {
  readonly rule: RuleName;
  readonly title: string;
  /** How many things the rule judged: 0 means that it could not have found anything. */
  readonly judged: number;
  readonly violations: number;
  /** Why it did not judge others. */
  readonly unjudged: readonly string[];
}

/** Decides whether every answer of a history is allowed by the documentation of the service. */
export function judgeHistory(lines: Iterable<HistoryLine | string>): Verdict {
  const reader = new HistoryReader();
  for (const line of lines) reader.add(line);
  return judgeLines(reader.lines);
}

export function judgeLines(lines: Lines): Verdict {
  const history = new History(lines);
  const findings = RULES.map((rule) => ({ rule, ...rule.judge(history) }));
  return {
    calls: lines.calls.length,
    sessions: history.sessions.length,
    grants: history.slots.size,
    unknown: history.unknown,
    counts: countsOf(history),
    rules: findings.map(({ rule: { name, title }, judged, violations, unjudged }) => ({
      rule: name,
      title,
      judged,
      violations: violations.length,
      unjudged: [...unjudged],
    })),
    violations: findings.flatMap(({ violations }) => violations).sort((a, b) => a.at - b.at),
  };
}
