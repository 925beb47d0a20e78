import type { Verdict } from "../history/judge-history.ts";
import type { RuleName, Violation } from "../history/rule.ts";
import type { FaultName } from "./faults.ts";
import type { History } from "./history.ts";
import type { ComparedCounts } from "./instance-counts.ts";
import type { ChaosOptions } from "./run-chaos.ts";

/** The outcome of one fault. Instants are those of the clients' clock. */
export interface FaultRun {
  readonly name: FaultName;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly watchedUntil: number;
  /** How long the hot host was used too little. */
  readonly recoveredMs: number;
  readonly recoversWithinMs: number;
  /** For how long the process of the clients could not run. It is added to the bound on the recovery. */
  readonly lagMs: number;
  /** The longest wait at hosts with a free slot; `undefined` if nothing can be granted during this fault. */
  readonly stallMs: number | undefined;
  readonly failedCalls: number;
  /** Whether no call may fail. */
  readonly isFailingFree: boolean;
  /** The number of lines of the history before the fault. */
  readonly linesSince: number;
}

export interface FaultFigures {
  readonly name: FaultName;
  readonly count: number;
  readonly recoveryP50Ms: number;
  readonly recoveryMaxMs: number;
  /** The number of runs that took longer than allowed. */
  readonly slow: number;
  readonly stallMaxMs: number | undefined;
  readonly failedCalls: number;
  readonly violations: number;
}

export interface ChaosReport {
  readonly seed: number;
  readonly seconds: number;
  /** The load average of the machine at the end. */
  readonly loadAverage: number;
  readonly baselineUtilisation: number;
  readonly sessions: number;
  readonly grants: number;
  readonly calls: number;
  readonly failedCalls: number;
  /** The number of sessions that got the answer `blockedBy: "store"`. */
  readonly blockedByStore: number;
  readonly faults: readonly FaultFigures[];
  /** How often the rarest fault happened. */
  readonly fewest: number;
  readonly skipped: readonly { readonly name: FaultName; readonly reason: string }[];
  readonly violations: readonly Violation[];
  /** How many things each rule judged: with 0 it could not have found anything. */
  readonly judged: readonly { readonly rule: RuleName; readonly judged: number }[];
  /**
   * The counters of the instances beside what the clients saw. A figure, not a goal: the metric of sessions that started also
   * counts those that moved to the instance.
   */
  readonly counts: ComparedCounts;
  /** The goals that were missed, as text. Empty if the run passed. */
  readonly misses: readonly string[];
}

interface Findings {
  readonly options: ChaosOptions;
  readonly history: History;
  /** The faults that were requested. */
  readonly asked: readonly FaultName[];
  readonly runs: readonly FaultRun[];
  readonly skipped: ChaosReport["skipped"];
  /** Why no more faults could be caused. */
  readonly failure: string | undefined;
  readonly verdict: Verdict;
  readonly counts: ComparedCounts;
  readonly seconds: number;
  readonly baseline: number;
  readonly loadAverage: number;
}

export function reportOf({
  options,
  history,
  asked,
  runs,
  skipped,
  failure,
  verdict: { violations, rules },
  counts,
  seconds,
  baseline,
  loadAverage,
}: Findings): ChaosReport {
  const names = [...(options.each === undefined ? new Set(runs.map(({ name }) => name)) : asked)].sort();
  const faults = names.map((name) => figuresOf(name, runs, violations));
  return {
    seed: options.seed,
    seconds,
    loadAverage,
    baselineUtilisation: baseline,
    sessions: history.sessions.length,
    grants: history.grants,
    calls: history.calls,
    failedCalls: history.failedCalls.length,
    blockedByStore: history.sessions.filter(({ wasBlockedByStore }) => wasBlockedByStore).length,
    faults,
    fewest: Math.min(...faults.map(({ count }) => count)),
    skipped,
    violations,
    judged: rules.map(({ rule, judged }) => ({ rule, judged })),
    counts,
    misses: [
      ...missesOf(runs),
      ...seldomMade(faults, options),
      ...(failure === undefined ? [] : [failure]),
      ...lossesOf(history),
      ...(violations.length === 0 ? [] : [`${violations.length} violations`]),
    ],
  };
}

function figuresOf(name: FaultName, all: readonly FaultRun[], violations: readonly Violation[]): FaultFigures {
  const runs = all.filter((run) => run.name === name);
  const recoveries = runs.map(({ recoveredMs }) => recoveredMs).sort((a, b) => a - b);
  const stalls = runs.flatMap(({ stallMs }) => stallMs ?? []);
  return {
    name,
    count: runs.length,
    recoveryP50Ms: recoveries[Math.floor((recoveries.length - 1) / 2)] ?? 0,
    recoveryMaxMs: recoveries.at(-1) ?? 0,
    slow: runs.filter(isSlow).length,
    stallMaxMs: stalls.length === 0 ? undefined : Math.max(...stalls),
    failedCalls: runs.reduce((sum, { failedCalls }) => sum + failedCalls, 0),
    violations: violations.filter(({ at }) => runs.some((run) => at >= run.startedAt && at <= run.watchedUntil)).length,
  };
}

function isSlow({ recoveredMs, recoversWithinMs, lagMs }: FaultRun): boolean {
  return recoveredMs > recoversWithinMs + lagMs;
}

function missesOf(runs: readonly FaultRun[]): string[] {
  return runs.flatMap((run) => {
    const { name, recoveredMs, recoversWithinMs, lagMs, failedCalls, isFailingFree } = run;
    const bound = `${recoversWithinMs / 1000} s${lagMs > 0 ? ` and the ${seconds(lagMs)} s that the machine stood still` : ""}`;
    return [
      ...(isSlow(run) ? [`${name} took ${seconds(recoveredMs)} s to recover, expected at most ${bound}`] : []),
      ...(isFailingFree && failedCalls > 0 ? [`${name} failed ${failedCalls} calls, expected none`] : []),
    ];
  });
}

/** HIST4 and HIST5 judge answers; these are also about answers that never came. */
function lossesOf({ losses: { sessions, leases } }: History): string[] {
  return [
    ...(sessions === 0 ? [] : [`${sessions} sessions of living clients got no slot`]),
    ...(leases === 0 ? [] : [`${leases} clients lost a lease that they had renewed in time`]),
  ];
}

/** The faults that happened less often than requested. */
function seldomMade(faults: readonly FaultFigures[], { each = 0 }: ChaosOptions): string[] {
  return faults.flatMap(({ name, count }) =>
    count < each ? [`${name} was made ${count} times, expected at least ${each}`] : [],
  );
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
