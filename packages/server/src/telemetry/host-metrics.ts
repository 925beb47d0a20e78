import { DEFAULT_CLASS } from "@slotkeeper/protocol";
import { type HostSnapshot, phaseFor } from "@slotkeeper/queue";
import { counter, gauge, type Metric, type Read, type Series } from "./metric.ts";
import type { Scraped, ShownHost } from "./scrape.ts";

/** The label of all hosts that are not shown, together. */
export const OTHER_HOSTS = "other hosts";

const PHASES = { closed: 0, "half-open": 1, open: 2 } as const;

/** The metrics with a series for each shown host, or for each of its budgets or classes. */
export const HOST_METRICS = {
  slotsInUse: hostGauge(
    "slotkeeper_slots_in_use",
    "Slots in use in the whole fleet. Every instance reports the same value",
    byHost("inFlight"),
  ),
  slotsLimit: hostGauge(
    "slotkeeper_slots_limit",
    "Number of slots in the whole fleet. Every instance reports the same value",
    byHost("slots"),
  ),
  waiters: hostGauge(
    "slotkeeper_waiters",
    "Waiting sessions in the whole fleet. Every instance reports the same value",
    byHost("waiting"),
  ),
  oldestWait: hostGauge(
    "slotkeeper_oldest_wait_seconds",
    "How long the oldest waiting session of this instance has waited",
    oldestWaits,
  ),
  breakerState: hostGauge(
    "slotkeeper_breaker_state",
    "State of the circuit breaker: 0 closed, 1 half open, 2 open",
    ofStore(breakerState),
  ),
  hostPaused: hostGauge(
    "slotkeeper_host_paused",
    "1 while an operator has paused the host: nothing new is granted",
    ofStore(({ stored }) => (stored?.isPaused === true ? 1 : 0)),
  ),
  fairShareLag: hostGauge(
    "slotkeeper_fair_share_lag_seconds",
    "Fair-share error: how many slot-seconds per weight the worst-served waiting bucket is behind the fair share of its host",
    ofStore(({ stored }) => fairShareLag(stored) / 1000),
  ),
  hostGrants: hostCounter(
    "slotkeeper_host_grants_total",
    "Slots granted. A grant counts for its host while the host has a series of its own, otherwise for `other hosts`",
    byActivity("grants"),
  ),
  hostRejects: hostCounter(
    "slotkeeper_host_rejects_total",
    "Sessions that ended without a slot, by host like the grants",
    byActivity("rejects"),
  ),
  budgetAvailable: hostGauge(
    "slotkeeper_budget_available_units",
    "Units of a budget that can be charged now, in the whole fleet; below 0 while the budget is in debt. Every instance reports the same value",
    byPart("budgets", ({ available }) => available),
    "budget",
  ),
  budgetBurst: hostGauge(
    "slotkeeper_budget_burst_units",
    "The most units that a budget holds",
    byPart("budgets", ({ burst }) => burst),
    "budget",
  ),
  budgetRefill: hostGauge(
    "slotkeeper_budget_refill_units_per_second",
    "Units that flow into a budget per second",
    byPart("budgets", ({ limit, perMs }) => (limit * 1000) / perMs),
    "budget",
  ),
  classSlots: hostGauge(
    "slotkeeper_class_slots_in_use",
    "Slots in use by a class of a host, in the whole fleet. Every instance reports the same value",
    byPart("classes", ({ inFlight }) => inFlight),
    "class",
  ),
  classWaiters: hostGauge(
    "slotkeeper_class_waiters",
    "Waiting sessions of a class of a host, in the whole fleet. Every instance reports the same value",
    byPart("classes", ({ waiting }) => waiting),
    "class",
  ),
  budgetExcess: hostCounter(
    "slotkeeper_budget_excess_units_total",
    "Units of budgets that were used beyond the largest debt of one `limit`, and so were not charged, by host like the grants",
    byActivity("excess"),
  ),
  shadowShort: hostCounter(
    "slotkeeper_shadow_short_total",
    "Grants that would have waited or been refused because of a limit in shadow mode, once for each such limit, by host like the grants",
    byActivity("short"),
  ),
  sharedState: hostCounter(
    "slotkeeper_shared_key_grants_total",
    "Grants that were charged to the budgets that values of a key share, because the host keeps 10,000 values, by host like the grants",
    byActivity("shared"),
  ),
} satisfies Record<string, Metric>;

/** The label of the host comes first, then that of its part. */
function hostGauge(name: string, help: string, read: Read, ...part: string[]): Metric {
  return gauge(name, help, read, "host", ...part);
}

function hostCounter(name: string, help: string, read: Read): Metric {
  return counter(name, help, read, "host");
}

/** The share of each shown host in a number of the whole fleet, and the rest. */
function byHost(field: "inFlight" | "slots" | "waiting"): (scraped: Scraped) => Series[] | undefined {
  return ({ totals, hosts }) => {
    if (totals === undefined) return undefined;
    const shown = hosts.map(({ label, stored }) => [label, stored?.[field] ?? 0] as const);
    const rest = shown.reduce((left, [, value]) => left - value, totals[field]);
    return [...shown, [OTHER_HOSTS, Math.max(0, rest)]];
  };
}

/** A count of each shown host, and of all other hosts together. */
function byActivity(what: "grants" | "rejects" | "excess" | "short" | "shared"): (scraped: Scraped) => Series[] {
  return ({ hosts, sources }) => [
    ...hosts.map(({ label, activity }) => [label, activity[what]] as const),
    [OTHER_HOSTS, sources.telemetry.activity.rest[what]],
  ];
}

/** A value of each shown host from the store. */
function ofStore(valueOf: (host: ShownHost, scraped: Scraped) => number): (scraped: Scraped) => Series[] | undefined {
  return (scraped) => scraped.totals && scraped.hosts.map((host) => [host.label, valueOf(host, scraped)]);
}

/** One series for each budget or class of each shown host. */
function byPart<P extends "budgets" | "classes">(
  parts: P,
  valueOf: (part: HostSnapshot[P][number]) => number,
): (scraped: Scraped) => Series[] | undefined {
  return ({ hosts, totals }) =>
    totals &&
    hosts.flatMap(({ label, stored }) =>
      (stored?.[parts] ?? []).map((part): Series => [[label, part.name], valueOf(part)]),
    );
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

function oldestWaits({ hosts, overview: { at, oldestArrivedAt } }: Scraped): Series[] {
  const secondsSince = (arrivedAt: number) => Math.max(0, at - arrivedAt) / 1000;
  const oldest = oldestArrivedAt ?? at;
  const isShown = hosts.some(({ here }) => (here?.oldestArrivedAt ?? at) <= oldest);
  return [
    ...hosts.map(({ label, here }) => [label, secondsSince(here?.oldestArrivedAt ?? at)] as const),
    // Reported if it is the oldest of all. Otherwise it is younger than one that is shown.
    [OTHER_HOSTS, isShown ? 0 : secondsSince(oldest)],
  ];
}

function breakerState({ stored, here }: ShownHost, { sources }: Scraped): number {
  const { openMs } = sources.live.hosts.policyOf(here?.hostname ?? stored?.hostname).breaker;
  return PHASES[stored === undefined ? "closed" : phaseFor(stored.breaker, openMs)];
}
