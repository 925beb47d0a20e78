import { RECORDS_OF_A_COMMIT, SECONDS_OF_CALL, SECONDS_OF_HOLD, SECONDS_OF_WAIT } from "./buckets.ts";
import { HOST_METRICS } from "./host-metrics.ts";
import { counted, counter, gauge, histogram, type Metric, type Series } from "./metric.ts";
import { NOT_READY_REASONS } from "./readiness.ts";

/** The calls of the port, as label values. */
const STORE_OPERATIONS = ["commit", "read", "beat", "peek", "hostKeys", "totals", "instances", "cleanup"] as const;
export type StoreOperation = (typeof STORE_OPERATIONS)[number];

/**
 * Every metric of the service; a new one is a new row. `docs/reference/metrics.md` is generated from the rows, and tests
 * compare the dashboard and the alerts of `deploy/` with them.
 *
 * Labels are bounded: `host` has at most `HOSTS_SHOWN` values (`activity.ts`), and `OTHER_HOSTS` for all other hosts
 * together. `budget` and `class` have the names of the configured budgets and classes, at most 16 of each at
 * a host. Every other label has only the values named here. Keys of requests are never labels, because their number is not bounded.
 */
export const METRICS = {
  ...HOST_METRICS,
  breakersOpen: gauge(
    "slotkeeper_breakers_open",
    "Hosts whose circuit breaker is open or half open",
    ({ totals }) => totals?.open,
  ),
  hostsPaused: gauge("slotkeeper_hosts_paused", "Hosts that an operator has paused", ({ totals }) => totals?.paused),
  hosts: gauge("slotkeeper_hosts", "Hosts in the store", ({ totals }) => totals?.hosts),
  sessionsStarted: counted("slotkeeper_sessions_started_total", "Sessions that began, by a commit of this instance", {
    "session-created": "",
  }),
  sessionsEnded: counted(
    "slotkeeper_sessions_ended_total",
    "Sessions that ended, by result: granted, throttled, timeout, canceled",
    {
      granted: "granted",
      // A call that is refused as overloaded has no session.
      throttled: ({ session }) => (session === undefined ? undefined : "throttled"),
      timeout: "timeout",
      canceled: "canceled",
    },
    "end",
    ["granted", "throttled", "timeout", "canceled"],
  ),
  rejects: counted(
    "slotkeeper_rejects_total",
    "Requests that got no slot, by reason: overloaded, breaker, deadline, idle, other",
    {
      overloaded: "overloaded",
      throttled: "breaker",
      timeout: ({ reason }) => (reason === "deadline" || reason === "idle" ? reason : "other"),
    },
    "reason",
    ["overloaded", "breaker", "deadline", "idle", "other"],
  ),
  released: counted("slotkeeper_slots_released_total", "Slots released by their holders", { released: "" }),
  reclaimed: counted(
    "slotkeeper_slots_reclaimed_total",
    "Leases that expired: the holder died, or neither renewed nor released its slot",
    { reclaimed: "" },
  ),
  lateReleases: counted(
    "slotkeeper_late_releases_total",
    "Releases that had no effect: the lease had expired, or was already released",
    { "late-release": "" },
  ),
  uncollected: counted(
    "slotkeeper_grants_uncollected_total",
    "Offered slots that the client did not fetch in time, so that the next waiter got them",
    { uncollected: "" },
  ),
  returned: counted(
    "slotkeeper_grants_returned_total",
    "Granted slots that were taken back, because the client had left before the grant was stored",
    { returned: "" },
  ),
  wait: histogram("slotkeeper_wait_seconds", "Time from the start of a session to its grant", SECONDS_OF_WAIT, {
    granted: "waitedMs",
  }),
  hold: histogram("slotkeeper_hold_seconds", "Time from a grant to its release", SECONDS_OF_HOLD, {
    released: "heldMs",
  }),
  cycle: histogram(
    "slotkeeper_cycle_seconds",
    "Time of one cycle of a host: from the first input until everything is committed",
    SECONDS_OF_CALL,
    { cycle: "tookMs" },
  ),
  changed: histogram("slotkeeper_commit_records", "Number of records that one commit changes", RECORDS_OF_A_COMMIT),
  commitRefusals: counted(
    "slotkeeper_commit_refusals_total",
    "Commits that the store refused, by reason: conflict (another instance committed first), reserved (the next commit is reserved for another instance), clock, slots",
    {},
    "reason",
    ["conflict", "reserved", "clock", "slots"],
  ),
  store: histogram(
    "slotkeeper_store_seconds",
    "Time of one call to the store, by operation",
    SECONDS_OF_CALL,
    {},
    "operation",
  ),
  storeErrors: counted(
    "slotkeeper_store_errors_total",
    "Calls to the store that failed, by operation",
    {},
    "operation",
    STORE_OPERATIONS,
  ),
  notifications: counted(
    "slotkeeper_store_notifications_total",
    "Notifications from the store: another instance committed at a host where sessions wait here",
  ),
  notReady: gauge(
    "slotkeeper_not_ready",
    "1 for the reason why `/readyz` answers 503, 0 for every other reason. All 0: ready",
    ({ readiness }) =>
      NOT_READY_REASONS.map((reason): Series => [reason, !readiness.isReady && readiness.reason === reason ? 1 : 0]),
    "reason",
  ),
  listenerUp: gauge(
    "slotkeeper_listener_up",
    "1 while notifications of the database arrive, or the store needs none. 0: the last test notification did not arrive, and a slot that another instance frees may reach a waiter here up to a second late",
    ({ gauges }) => (gauges.listener?.isUp === false ? 0 : 1),
  ),
  listenerLosses: counter(
    "slotkeeper_listener_losses_total",
    "Connections for notifications that failed, stopped delivering, or could not be opened",
    ({ gauges }) => gauges.listener?.losses ?? 0,
  ),
  poolConnections: gauge(
    "slotkeeper_pool_connections",
    "Connections in the pool to the database, by state: busy, idle",
    ({ gauges: { pool } }) => [
      ["busy", (pool?.size ?? 0) - (pool?.idle ?? 0)],
      ["idle", pool?.idle ?? 0],
    ],
    "state",
  ),
  poolWaiting: gauge(
    "slotkeeper_pool_waiting",
    "Calls to the database that are waiting for a connection of the pool",
    ({ gauges }) => gauges.pool?.waiting ?? 0,
  ),
  poolWaits: counter(
    "slotkeeper_pool_waits_total",
    "Calls to the database that had to wait for a connection of the pool",
    ({ gauges }) => gauges.pool?.waits ?? 0,
  ),
  poolWaitSeconds: counter(
    "slotkeeper_pool_wait_seconds_total",
    "Total time that calls waited for a connection of the pool. Its rate is the average number of waiting calls",
    ({ gauges }) => (gauges.pool?.waitedMs ?? 0) / 1000,
  ),
  laneWaiting: gauge(
    "slotkeeper_host_calls_waiting",
    "Calls to the database that are waiting for their turn. A host uses at most two connections of the pool, and all hosts with locked rows together at most three",
    ({ gauges }) => gauges.lanes?.waiting ?? 0,
  ),
  laneWaits: counter(
    "slotkeeper_host_call_waits_total",
    "Calls to the database that had to wait for their turn",
    ({ gauges }) => gauges.lanes?.waits ?? 0,
  ),
  clockSkew: gauge(
    "slotkeeper_clock_skew_seconds",
    "How far the clock of the store is ahead of the clock of this instance. The store's clock decides; a wrong clock here affects only the log",
    ({ skewMs }) => skewMs / 1000,
  ),
  unsent: gauge(
    "slotkeeper_unsent_calls",
    "Inputs that the store does not have yet, mostly releases",
    ({ overview }) => overview.unsent,
  ),
  heldPolls: gauge("slotkeeper_held_polls", "Calls that are held open", ({ sources }) => sources.held.size),
  connections: gauge("slotkeeper_connections", "Open connections", ({ sources }) => sources.connections()),
  refused: counter(
    "slotkeeper_refused_total",
    "Connections and calls refused because a limit of the service was reached, by limit: connections, connections_per_address, held_polls, hosts",
    ({ sources }) => Object.entries(sources.refusals.counts),
    "limit",
  ),
  badRequests: counted(
    "slotkeeper_bad_requests_total",
    "Connections closed because the client sent invalid HTTP, or sent too slowly",
  ),
  logLinesLost: counter(
    "slotkeeper_log_lines_lost_total",
    "Log lines that could not be written, because the disk is full or the reader of the log stopped reading",
    ({ sources }) => sources.log.lost,
  ),
  listeners: gauge(
    "slotkeeper_event_listeners",
    "Clients that are connected to `/api/v0/events`",
    ({ sources }) => sources.telemetry.hub.size,
  ),
  listenersDropped: counted(
    "slotkeeper_event_listeners_dropped_total",
    "Clients of `/api/v0/events` that were disconnected because they did not read",
  ),
  pushFailures: counted(
    "slotkeeper_controller_failures_total",
    "Calls to the control plane that failed: reading the configuration, or pushing counts",
  ),
  onFallback: gauge(
    "slotkeeper_config_fallback",
    "1 while a control plane is configured but the service does not use its configuration, because it did not get it",
    ({ sources }) => (sources.isOnFallback() ? 1 : 0),
  ),
  info: gauge(
    "slotkeeper_info",
    "Always 1. The labels carry the versions",
    ({ sources: { version, live } }) => [[[version, live.config.version], 1]],
    "version",
    "config_version",
  ),
  memory: gauge("process_resident_memory_bytes", "Resident memory of the process", () => process.memoryUsage.rss()),
  cpu: counter("process_cpu_seconds_total", "Processor time of the process, user and system", processorSeconds),
  started: gauge(
    "process_start_time_seconds",
    "Start time of the process, in seconds since 1970",
    () => Math.round(performance.timeOrigin) / 1000,
  ),
} satisfies Record<string, Metric>;

export type MetricId = keyof typeof METRICS;

function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
