import { type Bucket, RECORDS_OF_A_COMMIT, SECONDS_OF_CALL, SECONDS_OF_HOLD, SECONDS_OF_WAIT } from "./buckets.ts";

/**
 * Every metric of the service: its name, kind, help text, labels and buckets (`buckets.ts`).
 * `docs/reference/metrics.md` is generated from this table, and tests compare the dashboard and the alerts of `deploy/`
 * with it.
 *
 * Labels are bounded: `host` has at most `HOSTS_SHOWN` values, and `OTHER_HOSTS` for all other hosts together. Every
 * other label has only the values named here.
 */

/** As many hosts as a person can look at. With nine series each, all hosts together have about a thousand series. */
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

/** All metrics of the service. `docs/reference/metrics.md` is generated from it. */
export const METRICS = {
  slotsInUse: {
    name: "slotkeeper_slots_in_use",
    kind: "gauge",
    labels: perHost,
    help: "Slots in use in the whole fleet. Every instance reports the same value",
  },
  slotsLimit: {
    name: "slotkeeper_slots_limit",
    kind: "gauge",
    labels: perHost,
    help: "Number of slots in the whole fleet. Every instance reports the same value",
  },
  waiters: {
    name: "slotkeeper_waiters",
    kind: "gauge",
    labels: perHost,
    help: "Waiting sessions in the whole fleet. Every instance reports the same value",
  },
  oldestWait: {
    name: "slotkeeper_oldest_wait_seconds",
    kind: "gauge",
    labels: perHost,
    help: "How long the oldest waiting session of this instance has waited",
  },
  breakerState: {
    name: "slotkeeper_breaker_state",
    kind: "gauge",
    labels: perHost,
    help: "State of the circuit breaker: 0 closed, 1 half open, 2 open",
  },
  fairShareLag: {
    name: "slotkeeper_fair_share_lag_seconds",
    kind: "gauge",
    labels: perHost,
    help: "Fair-share error: how many slot-seconds per weight the worst-served waiting bucket is behind the fair share of its host",
  },
  hostGrants: {
    name: "slotkeeper_host_grants_total",
    kind: "counter",
    labels: perHost,
    help: "Slots granted. A grant counts for its host while the host has a series of its own, otherwise for `other hosts`",
  },
  hostRejects: {
    name: "slotkeeper_host_rejects_total",
    kind: "counter",
    labels: perHost,
    help: "Sessions that ended without a slot, by host like the grants",
  },
  breakersOpen: {
    name: "slotkeeper_breakers_open",
    kind: "gauge",
    help: "Hosts whose circuit breaker is open or half open",
  },
  hosts: { name: "slotkeeper_hosts", kind: "gauge", help: "Hosts in the store" },
  sessionsStarted: {
    name: "slotkeeper_sessions_started_total",
    kind: "counter",
    help: "Sessions that began, by a commit of this instance",
  },
  sessionsEnded: {
    name: "slotkeeper_sessions_ended_total",
    kind: "counter",
    labels: ["end"],
    help: "Sessions that ended, by result: granted, throttled, timeout, canceled",
  },
  rejects: {
    name: "slotkeeper_rejects_total",
    kind: "counter",
    labels: ["reason"],
    help: "Requests that got no slot, by reason: overloaded, breaker, deadline, idle, other",
  },
  released: { name: "slotkeeper_slots_released_total", kind: "counter", help: "Slots released by their holders" },
  reclaimed: {
    name: "slotkeeper_slots_reclaimed_total",
    kind: "counter",
    help: "Leases that expired: the holder died, or neither renewed nor released its slot",
  },
  lateReleases: {
    name: "slotkeeper_late_releases_total",
    kind: "counter",
    help: "Releases that had no effect: the lease had expired, or was already released",
  },
  uncollected: {
    name: "slotkeeper_grants_uncollected_total",
    kind: "counter",
    help: "Offered slots that the client did not fetch in time, so that the next waiter got them",
  },
  returned: {
    name: "slotkeeper_grants_returned_total",
    kind: "counter",
    help: "Granted slots that were taken back, because the client had left before the grant was stored",
  },
  wait: {
    name: "slotkeeper_wait_seconds",
    kind: "histogram",
    buckets: SECONDS_OF_WAIT,
    help: "Time from the start of a session to its grant",
  },
  hold: {
    name: "slotkeeper_hold_seconds",
    kind: "histogram",
    buckets: SECONDS_OF_HOLD,
    help: "Time from a grant to its release",
  },
  cycle: {
    name: "slotkeeper_cycle_seconds",
    kind: "histogram",
    buckets: SECONDS_OF_CALL,
    help: "Time of one cycle of a host: from the first input until everything is committed",
  },
  changed: {
    name: "slotkeeper_commit_records",
    kind: "histogram",
    buckets: RECORDS_OF_A_COMMIT,
    help: "Number of records that one commit changes",
  },
  commitRefusals: {
    name: "slotkeeper_commit_refusals_total",
    kind: "counter",
    labels: ["reason"],
    help: "Commits that the store refused, by reason: conflict (another instance committed first), reserved (the next commit is reserved for another instance), clock, slots",
  },
  store: {
    name: "slotkeeper_store_seconds",
    kind: "histogram",
    labels: ["operation"],
    buckets: SECONDS_OF_CALL,
    help: "Time of one call to the store, by operation",
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
    help: "Notifications from the store: another instance committed at a host where sessions wait here",
  },
  notReady: {
    name: "slotkeeper_not_ready",
    kind: "gauge",
    labels: ["reason"],
    help: "1 for the reason why `/readyz` answers 503, 0 for every other reason. All 0: ready",
  },
  listenerUp: {
    name: "slotkeeper_listener_up",
    kind: "gauge",
    help: "1 while notifications of the database arrive, or the store needs none. 0: the last test notification did not arrive, and a slot that another instance frees may reach a waiter here up to a second late",
  },
  listenerLosses: {
    name: "slotkeeper_listener_losses_total",
    kind: "counter",
    help: "Connections for notifications that failed, stopped delivering, or could not be opened",
  },
  poolConnections: {
    name: "slotkeeper_pool_connections",
    kind: "gauge",
    labels: ["state"],
    help: "Connections in the pool to the database, by state: busy, idle",
  },
  poolWaiting: {
    name: "slotkeeper_pool_waiting",
    kind: "gauge",
    help: "Calls to the database that are waiting for a connection of the pool",
  },
  poolWaits: {
    name: "slotkeeper_pool_waits_total",
    kind: "counter",
    help: "Calls to the database that had to wait for a connection of the pool",
  },
  poolWaitSeconds: {
    name: "slotkeeper_pool_wait_seconds_total",
    kind: "counter",
    help: "Total time that calls waited for a connection of the pool. Its rate is the average number of waiting calls",
  },
  laneWaiting: {
    name: "slotkeeper_host_calls_waiting",
    kind: "gauge",
    help: "Calls to the database that are waiting for their turn. A host uses at most two connections of the pool, and all hosts with locked rows together at most three",
  },
  laneWaits: {
    name: "slotkeeper_host_call_waits_total",
    kind: "counter",
    help: "Calls to the database that had to wait for their turn",
  },
  clockSkew: {
    name: "slotkeeper_clock_skew_seconds",
    kind: "gauge",
    help: "How far the clock of the store is ahead of the clock of this instance. The store's clock decides; a wrong clock here affects only the log",
  },
  unsent: {
    name: "slotkeeper_unsent_calls",
    kind: "gauge",
    help: "Inputs that the store does not have yet, mostly releases",
  },
  heldPolls: { name: "slotkeeper_held_polls", kind: "gauge", help: "Calls that are held open" },
  connections: { name: "slotkeeper_connections", kind: "gauge", help: "Open connections" },
  refused: {
    name: "slotkeeper_refused_total",
    kind: "counter",
    labels: ["limit"],
    help: "Connections and calls refused because a limit of the service was reached, by limit: connections, connections_per_address, held_polls, hosts",
  },
  badRequests: {
    name: "slotkeeper_bad_requests_total",
    kind: "counter",
    help: "Connections closed because the client sent invalid HTTP, or sent too slowly",
  },
  logLinesLost: {
    name: "slotkeeper_log_lines_lost_total",
    kind: "counter",
    help: "Log lines that could not be written, because the disk is full or the reader of the log stopped reading",
  },
  listeners: {
    name: "slotkeeper_event_listeners",
    kind: "gauge",
    help: "Clients that are connected to `/api/v0/events`",
  },
  listenersDropped: {
    name: "slotkeeper_event_listeners_dropped_total",
    kind: "counter",
    help: "Clients of `/api/v0/events` that were disconnected because they did not read",
  },
  pushFailures: {
    name: "slotkeeper_controller_failures_total",
    kind: "counter",
    help: "Calls to the control plane that failed: reading the configuration, or pushing counts",
  },
  onFallback: {
    name: "slotkeeper_config_fallback",
    kind: "gauge",
    help: "1 while a control plane is configured but the service does not use its configuration, because it did not get it",
  },
  info: {
    name: "slotkeeper_info",
    kind: "gauge",
    labels: ["version", "config_version"],
    help: "Always 1. The labels carry the versions",
  },
  memory: { name: "process_resident_memory_bytes", kind: "gauge", help: "Resident memory of the process" },
  cpu: { name: "process_cpu_seconds_total", kind: "counter", help: "Processor time of the process, user and system" },
  started: {
    name: "process_start_time_seconds",
    kind: "gauge",
    help: "Start time of the process, in seconds since 1970",
  },
} as const satisfies Record<string, Metric>;

export type MetricId = keyof typeof METRICS;

export function boundsOf(id: "wait" | "hold" | "cycle" | "changed" | "store"): number[] {
  return METRICS[id].buckets.map(([bound]) => bound);
}
