import {
  breakerStates,
  byActivity,
  byBudget,
  byClass,
  byHost,
  fairShareLags,
  oldestWaits,
  pausedHosts,
} from "./host-readings.ts";
import { counter, gauge, type Metric } from "./metric.ts";

/** The metrics with a series for each shown host, or for each of its budgets or classes. */
export const HOST_METRICS = {
  slotsInUse: gauge(
    "slotkeeper_slots_in_use",
    "Slots in use in the whole fleet. Every instance reports the same value",
    byHost("inFlight"),
    "host",
  ),
  slotsLimit: gauge(
    "slotkeeper_slots_limit",
    "Number of slots in the whole fleet. Every instance reports the same value",
    byHost("slots"),
    "host",
  ),
  waiters: gauge(
    "slotkeeper_waiters",
    "Waiting sessions in the whole fleet. Every instance reports the same value",
    byHost("waiting"),
    "host",
  ),
  oldestWait: gauge(
    "slotkeeper_oldest_wait_seconds",
    "How long the oldest waiting session of this instance has waited",
    oldestWaits,
    "host",
  ),
  breakerState: gauge(
    "slotkeeper_breaker_state",
    "State of the circuit breaker: 0 closed, 1 half open, 2 open",
    breakerStates,
    "host",
  ),
  hostPaused: gauge(
    "slotkeeper_host_paused",
    "1 while an operator has paused the host: nothing new is granted",
    pausedHosts,
    "host",
  ),
  fairShareLag: gauge(
    "slotkeeper_fair_share_lag_seconds",
    "Fair-share error: how many slot-seconds per weight the worst-served waiting bucket is behind the fair share of its host",
    fairShareLags,
    "host",
  ),
  hostGrants: counter(
    "slotkeeper_host_grants_total",
    "Slots granted. A grant counts for its host while the host has a series of its own, otherwise for `other hosts`",
    byActivity("grants"),
    "host",
  ),
  hostRejects: counter(
    "slotkeeper_host_rejects_total",
    "Sessions that ended without a slot, by host like the grants",
    byActivity("rejects"),
    "host",
  ),
  budgetAvailable: gauge(
    "slotkeeper_budget_available_units",
    "Units of a budget that can be charged now, in the whole fleet; below 0 while the budget is in debt. Every instance reports the same value",
    byBudget(({ available }) => available),
    "host",
    "budget",
  ),
  budgetBurst: gauge(
    "slotkeeper_budget_burst_units",
    "The most units that a budget holds",
    byBudget(({ burst }) => burst),
    "host",
    "budget",
  ),
  budgetRefill: gauge(
    "slotkeeper_budget_refill_units_per_second",
    "Units that flow into a budget per second",
    byBudget(({ limit, perMs }) => (limit * 1000) / perMs),
    "host",
    "budget",
  ),
  classSlots: gauge(
    "slotkeeper_class_slots_in_use",
    "Slots in use by a class of a host, in the whole fleet. Every instance reports the same value",
    byClass("inFlight"),
    "host",
    "class",
  ),
  classWaiters: gauge(
    "slotkeeper_class_waiters",
    "Waiting sessions of a class of a host, in the whole fleet. Every instance reports the same value",
    byClass("waiting"),
    "host",
    "class",
  ),
  budgetExcess: counter(
    "slotkeeper_budget_excess_units_total",
    "Units of budgets that were used beyond the largest debt of one `limit`, and so were not charged, by host like the grants",
    byActivity("excess"),
    "host",
  ),
  shadowShort: counter(
    "slotkeeper_shadow_short_total",
    "Grants that would have waited or been refused because of a limit in shadow mode, once for each such limit, by host like the grants",
    byActivity("short"),
    "host",
  ),
  sharedState: counter(
    "slotkeeper_shared_key_grants_total",
    "Grants that were charged to the budgets that values of a key share, because the host keeps 10,000 values, by host like the grants",
    byActivity("shared"),
    "host",
  ),
} satisfies Record<string, Metric>;
