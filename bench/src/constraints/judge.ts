/** Judges a run by what the recorder saw. */
import { jain } from "../service/load/statistics.ts";
import { LIMITS, TENANTS } from "./job.ts";
import type { Run } from "./recorder.ts";

export type Figures = { readonly [name: string]: number };

/** Intervals count as longer by this: a grant and its report travel, and two may come closer together than they were. */
const TRAVEL_MS = 50;

/** `from`, `to`: the time for which use and shares are judged. The limits are judged for the whole run. */
export function judge(runs: readonly Run[], from: number, to: number): Figures {
  const inside = runs.filter(({ startedAt }) => startedAt >= from && startedAt < to);
  const costs = TENANTS.map(({ name }) => sum(inside.filter(({ tenant }) => tenant === name).map(({ cost }) => cost)));
  return {
    "slots over, one user": mostOver(runs, ({ user }) => user, LIMITS.user),
    "slots over, one tenant": mostOver(runs, ({ tenant }) => tenant, LIMITS.tenant),
    "slots over, in all": mostOver(runs, () => "", LIMITS.total),
    "tokens over": tokensOver(runs, ({ cost }) => cost),
    "… without under-estimates": tokensOver(runs, ({ cost, estimate }) => Math.min(cost, estimate)),
    utilisation: (sum(costs) * 1000) / (LIMITS.tokensPerSecond * (to - from)),
    "Jain of cost": jain(costs),
    "Jain of slot time": jain(TENANTS.map(({ name }) => slotTimeOf(runs, name, from, to))),
    "requests per second": (inside.length * 1000) / (to - from),
  };
}

function slotTimeOf(runs: readonly Run[], name: string, from: number, to: number): number {
  const own = runs.filter(({ tenant }) => tenant === name);
  return sum(own.map(({ startedAt, endedAt }) => Math.max(0, Math.min(endedAt, to) - Math.max(startedAt, from))));
}

/** The most that ran at the same time under one name, above the limit. */
function mostOver(runs: readonly Run[], nameOf: (run: Run) => string, limit: number): number {
  const changes = runs.flatMap((run) => [
    { at: run.startedAt, by: 1, name: nameOf(run) },
    { at: run.endedAt, by: -1, name: nameOf(run) },
  ]);
  const held = new Map<string, number>();
  let most = 0;
  for (const { by, name } of changes.toSorted((a, b) => a.at - b.at || a.by - b.by)) {
    const now = (held.get(name) ?? 0) + by;
    held.set(name, now);
    most = Math.max(most, now);
  }
  return Math.max(0, most - limit);
}

/** The most that the work of any interval cost above burst + rate × its length: what a leaky bucket holds too much. */
function tokensOver(runs: readonly Run[], costOf: (run: Run) => number): number {
  let [level, at, most] = [0, 0, 0];
  for (const run of runs.toSorted((a, b) => a.startedAt - b.startedAt)) {
    level = Math.max(0, level - (LIMITS.tokensPerSecond * (run.startedAt - at)) / 1000) + costOf(run);
    at = run.startedAt;
    most = Math.max(most, level);
  }
  return Math.max(0, most - LIMITS.burst - (LIMITS.tokensPerSecond * TRAVEL_MS) / 1000);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
