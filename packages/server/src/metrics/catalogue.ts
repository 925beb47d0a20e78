import { type Bucket, RECORDS_OF_A_COMMIT, SECONDS_OF_CALL, SECONDS_OF_HOLD, SECONDS_OF_WAIT } from "./buckets.ts";

/**
 * Every metric of the service: its name, its kind, what it says, its labels, and its buckets
 * (`buckets.ts`). `docs/reference/metrics.md` is made from this, and the dashboard and the alerts under `deploy/` are
 * held to it.
 *
 * Labels are bounded: `host` has at most `HOSTS_SHOWN` values and `OTHER_HOSTS` for all the rest together; every other
 * label has the few values named here.
 */

/** Enough for the hosts a person can look at; nine series each are a thousand in all, however many hosts there are. */
export const HOSTS_SHOWN = 100;
export const OTHER_HOSTS = "other hosts";

type Kind = "counter" | "gauge" | "histogram";

/** A metric with its help text and labels. */
export interface Metric {
  readonly name: string;
  readonly kind: Kind;
  readonly help: string;
  readonly labels?: readonly string[];
  readonly buckets?: readonly Bucket[];
}

const perHost = ["host"] as const;

/** All metrics of the service. `docs/reference/metrics.md` is made from it. */
export const METRICS = {
  slotsInUse: {
    name: "slotkeeper_slots_in_use",
    kind: "gauge",
    labels: perHost,
    help: "Slots in use, in the whole fleet: every instance says the same",
  },
  slotsLimit: {
    name: "slotkeeper_slots_limit",
    kind: "gauge",
    labels: perHost,
    help: "Slots there are, in the whole fleet: every instance says the same",
  },
  waiters: {
    name: "slotkeeper_waiters",
    kind: "gauge",
    labels: perHost,
    help: "Sessions waiting, in the whole fleet: every instance says the same",
  },
  oldestWait: {
    name: "slotkeeper_oldest_wait_seconds",
    kind: "gauge",
    labels: perHost,
    help: "How long the longest-waiting session of this instance has waited",
  },
  breakerState: {
    name: "slotkeeper_breaker_state",
    kind: "gauge",
    labels: perHost,
    help: "0 closed, 1 half open, 2 open",
  },
  fairShareLag: {
    name: "slotkeeper_fair_share_lag_seconds",
    kind: "gauge",
    labels: perHost,
    help: "Fair-share error: slot-seconds per weight by which the worst-served waiting bucket lies behind the host's fair meter",
  },
  hostGrants: {
    name: "slotkeeper_host_grants_total",
    kind: "counter",
    labels: perHost,
    help: "Slots granted; a grant counts for its host while that is shown, else for the other hosts",
  },
  hostRejects: {
    name: "slotkeeper_host_rejects_total",
    kind: "counter",
    labels: perHost,
    help: "Sessions that got no slot, counted as grants are",
  },
  breakersOpen: { name: "slotkeeper_breakers_open", kind: "gauge", help: "Hosts whose breaker is not closed" },
  hosts: { name: "slotkeeper_hosts", kind: "gauge", help: "Hosts the store knows" },
  sessionsStarted: {
    name: "slotkeeper_sessions_started_total",
    kind: "counter",
    help: "Sessions begun or taken over at this instance",
  },
  sessionsEnded: {
    name: "slotkeeper_sessions_ended_total",
    kind: "counter",
    labels: ["end"],
    help: "Sessions ended, by how: granted, throttled, timeout, canceled",
  },
  rejects: {
    name: "slotkeeper_rejects_total",
    kind: "counter",
    labels: ["reason"],
    help: "Callers that got no slot, by why: overloaded, breaker, deadline, idle, other",
  },
  released: { name: "slotkeeper_slots_released_total", kind: "counter", help: "Slots given back" },
  reclaimed: {
    name: "slotkeeper_slots_reclaimed_total",
    kind: "counter",
    help: "Leases that ran out unreleased: their holders died, or hold on without renewing",
  },
  lateReleases: {
    name: "slotkeeper_late_releases_total",
    kind: "counter",
    help: "Releases that found nothing: the lease was over, or given back before",
  },
  uncollected: {
    name: "slotkeeper_grants_uncollected_total",
    kind: "counter",
    help: "Grants that were not fetched in time and went to the next waiter",
  },
  wait: {
    name: "slotkeeper_wait_seconds",
    kind: "histogram",
    buckets: SECONDS_OF_WAIT,
    help: "From a session's beginning to its grant",
  },
  hold: {
    name: "slotkeeper_hold_seconds",
    kind: "histogram",
    buckets: SECONDS_OF_HOLD,
    help: "From a grant to its release",
  },
  cycle: {
    name: "slotkeeper_cycle_seconds",
    kind: "histogram",
    buckets: SECONDS_OF_CALL,
    help: "A host's cycle: from being woken until it has nothing more to ask",
  },
  changed: {
    name: "slotkeeper_commit_records",
    kind: "histogram",
    buckets: RECORDS_OF_A_COMMIT,
    help: "Records that one commit changes",
  },
  commitRefusals: {
    name: "slotkeeper_commit_refusals_total",
    kind: "counter",
    labels: ["reason"],
    help: "Commits the store refused, by reason: conflict (another instance came first), reserved (the next commit is another's), clock, slots. Over the count of commits it is the conflicts per commit",
  },
  store: {
    name: "slotkeeper_store_seconds",
    kind: "histogram",
    labels: ["operation"],
    buckets: SECONDS_OF_CALL,
    help: "Calls to the store, by operation",
  },
  storeErrors: {
    name: "slotkeeper_store_errors_total",
    kind: "counter",
    labels: ["operation"],
    help: "Calls to the store that failed, by operation",
  },
  notifications: {
    name: "slotkeeper_store_notifications_total",
    kind: "counter",
    help: "Messages from the store: another instance offered a slot to a waiter here",
  },
  notReady: {
    name: "slotkeeper_not_ready",
    kind: "gauge",
    labels: ["reason"],
    help: "1 for the reason why `/readyz` is 503, 0 for every other; all 0: ready",
  },
  listenerUp: {
    name: "slotkeeper_listener_up",
    kind: "gauge",
    help: "1 while notifications of the database arrive, as its last echo shows, or the store needs none; 0: hand-overs between instances wait for the beat",
  },
  listenerLosses: {
    name: "slotkeeper_listener_losses_total",
    kind: "counter",
    help: "Listening connections that ended, fell silent or could not be made",
  },
  poolConnections: {
    name: "slotkeeper_pool_connections",
    kind: "gauge",
    labels: ["state"],
    help: "Connections of the pool to the database, by state: busy, idle",
  },
  poolWaiting: {
    name: "slotkeeper_pool_waiting",
    kind: "gauge",
    help: "Calls to the database that wait for a connection of the pool now",
  },
  poolWaits: {
    name: "slotkeeper_pool_waits_total",
    kind: "counter",
    help: "Calls to the database that had to wait for a connection of the pool",
  },
  poolWaitSeconds: {
    name: "slotkeeper_pool_wait_seconds_total",
    kind: "counter",
    help: "Time that calls waited for a connection of the pool; its rate is how many wait on average",
  },
  laneWaiting: {
    name: "slotkeeper_host_calls_waiting",
    kind: "gauge",
    help: "Calls to the database that wait for their turn now: a host gets two connections of the pool at most, and all hosts that another program keeps locked get three together",
  },
  laneWaits: {
    name: "slotkeeper_host_call_waits_total",
    kind: "counter",
    help: "Calls to the database that had to wait for their turn",
  },
  clockSkew: {
    name: "slotkeeper_clock_skew_seconds",
    kind: "gauge",
    help: "How far the store's clock is ahead of this instance's. The store's decides; a wrong clock of the instance shows in logs only",
  },
  unsent: {
    name: "slotkeeper_unsent_calls",
    kind: "gauge",
    help: "Calls that have not reached the store yet, mostly releases",
  },
  heldPolls: { name: "slotkeeper_held_polls", kind: "gauge", help: "Calls held open" },
  connections: { name: "slotkeeper_connections", kind: "gauge", help: "Open connections" },
  refused: {
    name: "slotkeeper_refused_total",
    kind: "counter",
    labels: ["limit"],
    help: "Refused because a limit of the service was reached, by which: connections, connections_per_address, held_polls, hosts",
  },
  badRequests: {
    name: "slotkeeper_bad_requests_total",
    kind: "counter",
    help: "Connections cut because what they sent is not HTTP, or came too slowly",
  },
  logLinesLost: {
    name: "slotkeeper_log_lines_lost_total",
    kind: "counter",
    help: "Log lines that could not be written: the disk is full, or the reader is gone or does not read",
  },
  listeners: { name: "slotkeeper_event_listeners", kind: "gauge", help: "Listeners of the events" },
  listenersDropped: {
    name: "slotkeeper_event_listeners_dropped_total",
    kind: "counter",
    help: "Listeners cut off because they did not read",
  },
  pushFailures: {
    name: "slotkeeper_controller_failures_total",
    kind: "counter",
    help: "Pushes and bootstraps the control plane did not take",
  },
  onFallback: {
    name: "slotkeeper_config_fallback",
    kind: "gauge",
    help: "1 while a controller is configured and its configuration is not in force",
  },
  info: { name: "slotkeeper_info", kind: "gauge", labels: ["version", "config_version"], help: "Always 1" },
  memory: { name: "process_resident_memory_bytes", kind: "gauge", help: "Memory of the process" },
  cpu: { name: "process_cpu_seconds_total", kind: "counter", help: "Processor time of the process, user and system" },
  started: { name: "process_start_time_seconds", kind: "gauge", help: "When the process started, since the epoch" },
} as const satisfies Record<string, Metric>;

export type MetricId = keyof typeof METRICS;

export function boundsOf(id: "wait" | "hold" | "cycle" | "changed" | "store"): number[] {
  return METRICS[id].buckets.map(([bound]) => bound);
}
