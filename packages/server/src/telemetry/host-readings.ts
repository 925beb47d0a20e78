import { DEFAULT_CLASS } from "@slotkeeper/protocol";
import { type BudgetView, type ClassView, type HostSnapshot, phaseFor } from "@slotkeeper/queue";
import type { Series } from "./metric.ts";
import type { Scraped } from "./scrape.ts";

/** Readings with one series for each shown host, and one for all others. */

/** The label of all hosts that are not shown, together. */
export const OTHER_HOSTS = "other hosts";

const PHASES = { closed: 0, "half-open": 1, open: 2 } as const;

/** The share of each shown host in a number of the whole fleet, and the rest. */
export function byHost(field: "inFlight" | "slots" | "waiting"): (scraped: Scraped) => Series[] | undefined {
  return ({ totals, hosts }) => {
    if (totals === undefined) return undefined;
    const shown = hosts.map(({ label, stored }) => [label, stored?.[field] ?? 0] as const);
    const rest = shown.reduce((left, [, value]) => left - value, totals[field]);
    return [...shown, [OTHER_HOSTS, Math.max(0, rest)]];
  };
}

/** A count of each shown host, and of all other hosts together. */
export function byActivity(what: "grants" | "rejects" | "excess" | "short" | "shared"): (scraped: Scraped) => Series[] {
  return ({ hosts, sources }) => [
    ...hosts.map(({ label, activity }) => [label, activity[what]] as const),
    [OTHER_HOSTS, sources.telemetry.activity.rest[what]],
  ];
}

export function fairShareLags({ hosts, totals }: Scraped): Series[] | undefined {
  return totals && hosts.map(({ label, stored }) => [label, fairShareLag(stored) / 1000]);
}

/** How far the worst-served waiting bucket is behind the meter, which at a host with classes is that of its class, in slot-milliseconds per weight. */
function fairShareLag(stored: HostSnapshot | undefined): number {
  let worst = 0;
  for (const { waiting, usedMs, weight, class: named = DEFAULT_CLASS } of stored?.buckets ?? []) {
    const ofClass = stored?.classes.find(({ name }) => name === named);
    if (waiting > 0) worst = Math.max(worst, (ofClass?.progressMs ?? stored?.progress ?? 0) - usedMs / weight);
  }
  return worst;
}

export function oldestWaits({ hosts, overview: { at, oldestArrivedAt } }: Scraped): Series[] {
  const secondsSince = (arrivedAt: number) => Math.max(0, at - arrivedAt) / 1000;
  const oldest = oldestArrivedAt ?? at;
  const isShown = hosts.some(({ here }) => (here?.oldestArrivedAt ?? at) <= oldest);
  return [
    ...hosts.map(({ label, here }) => [label, secondsSince(here?.oldestArrivedAt ?? at)] as const),
    // Reported if it is the oldest of all. Otherwise it is younger than one that is shown.
    [OTHER_HOSTS, isShown ? 0 : secondsSince(oldest)],
  ];
}

/** One series for each budget of each shown host. */
export function byBudget(valueOf: (budget: BudgetView) => number): (scraped: Scraped) => Series[] | undefined {
  return ({ hosts, totals }) =>
    totals &&
    hosts.flatMap(({ label, stored }) =>
      (stored?.budgets ?? []).map((budget): Series => [[label, budget.name], valueOf(budget)]),
    );
}

/** One series for each class of each shown host. */
export function byClass(field: "inFlight" | "waiting"): (scraped: Scraped) => Series[] | undefined {
  return ({ hosts, totals }) =>
    totals &&
    hosts.flatMap(({ label, stored }) =>
      (stored?.classes ?? []).map((one: ClassView): Series => [[label, one.name], one[field]]),
    );
}

export function pausedHosts({ hosts, totals }: Scraped): Series[] | undefined {
  return totals && hosts.map(({ label, stored }) => [label, stored?.isPaused === true ? 1 : 0]);
}

export function breakerStates({ hosts, totals, sources }: Scraped): Series[] | undefined {
  if (totals === undefined) return undefined;
  return hosts.map(({ label, stored, here }) => {
    const { openMs } = sources.live.hosts.policyOf(here?.hostname ?? stored?.hostname).breaker;
    return [label, PHASES[stored === undefined ? "closed" : phaseFor(stored.breaker, openMs)]];
  });
}
