import { judgeHistory, type Verdict } from "../history/judge-history.ts";
import type { FairQueueFacts, FaultLine, HistoryLine } from "../history/line.ts";
import type { FaultRun } from "./report.ts";

/** What the run knows about the service that its clients use. */
export interface RunFacts {
  readonly fairQueue: FairQueueFacts;
  readonly instances: number;
  /** Without it, nothing is judged that depends on time. */
  readonly promptMs?: number;
}

/** How long a call takes on this machine beside the fleet, at most. */
const TRANSIT_MS = 500;

/** The history of a run with its faults, as the checker reads it (`../history`). */
export function linesOf(
  calls: readonly HistoryLine[],
  { fairQueue, instances, promptMs }: RunFacts,
  runs: readonly FaultRun[] = [],
): HistoryLine[] {
  const known = { instances, isFresh: true, transitMs: TRANSIT_MS, ...(promptMs !== undefined && { promptMs }) };
  const faults = runs.map(({ name, startedAt, endedAt, recoversWithinMs, lagMs }): FaultLine => {
    const until = endedAt + recoversWithinMs + lagMs;
    return { kind: "fault", fault: "delay", from: startedAt, until, note: name };
  });
  return [{ kind: "facts", at: 0, fairQueue, ...known }, ...faults, ...calls];
}

/** Lets the independent checker judge what the clients saw. */
export function judgeRun(calls: readonly HistoryLine[], facts: RunFacts, runs?: readonly FaultRun[]): Verdict {
  return judgeHistory(linesOf(calls, facts, runs));
}
