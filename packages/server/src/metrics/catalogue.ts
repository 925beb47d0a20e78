/**
 * Every metric of the service: its name, its kind, what it says, its labels, and the bounds of its buckets with the
 * reason for each. `docs/reference/metrics.md` is made from this, and the dashboard and the alerts under `deploy/` are
 * held to it.
 *
 * Labels are bounded: `host` has at most `HOSTS_SHOWN` values and `OTHER_HOSTS` for all the rest together; every other
 * label has the few values named here.
 */

/** Enough for the hosts a person can look at; nine series each are a thousand in all, however many hosts there are. */
export const HOSTS_SHOWN = 100;
export const OTHER_HOSTS = "other hosts";

type Kind = "counter" | "gauge" | "histogram";

export interface Metric {
  readonly name: string;
  readonly kind: Kind;
  readonly help: string;
  readonly labels?: readonly string[];
  readonly buckets?: readonly Bucket[];
}

/** An upper bound and why it is one. */
type Bucket = readonly [bound: number, reason: string];

const SECONDS_OF_WAIT: readonly Bucket[] = [
  [0.001, "granted at once: nobody was in the way"],
  [0.005, "one turn of a busy service"],
  [0.01, "the store was asked over a network"],
  [0.025, "idle time of a freed slot that is still good (15 ms) lies below"],
  [0.05, "an offer to a waiter of another instance lapses"],
  [0.1, "a person does not notice"],
  [0.25, "half a poll interval: pushes come through"],
  [0.5, "a whole poll interval (`pollIntervalMs`): above it pushes may be lost"],
  [1, "`collectMs`: slots that nobody fetched came round"],
  [2.5, "a queue, but a short one"],
  [5, "people give up"],
  [10, "half the default `maxWaitMs`"],
  [20, "the default `maxWaitMs`: above it only longer settings and semaphores"],
  [30, "the default lease: holders are dying"],
  [60, "a minute: batch work"],
];

const SECONDS_OF_HOLD: readonly Bucket[] = [
  [0.01, "the slot was hardly used"],
  [0.05, "a fast upstream"],
  [0.1, "an ordinary request"],
  [0.25, "an ordinary request, far away"],
  [0.5, "a slow request"],
  [1, "a slow request; typical `minSlotHoldMs`"],
  [2.5, "a download of some size"],
  [5, "a download of some size"],
  [10, "long for a request"],
  [30, "the default lease (`zombieTimeoutSeconds`): above it holders renew"],
  [60, "two leases"],
  [300, "five minutes: transfers"],
  [3600, "the default `maxHoldSeconds`: nothing is held longer"],
];

const SECONDS_OF_CALL: readonly Bucket[] = [
  [0.0001, "the memory store"],
  [0.0005, "the memory store, a large batch"],
  [0.001, "a journal on a fast disk"],
  [0.0025, "a database on the same machine"],
  [0.005, "a database in the same rack"],
  [0.01, "a database in the same region"],
  [0.025, "a slow disk under the journal; a busy database"],
  [0.05, "a lock was waited for"],
  [0.1, "noticeable in every wait"],
  [0.25, "half a poll interval"],
  [0.5, "a poll interval: the breaker check gives up here"],
  [1, "something is wrong"],
  [5, "a connection was lost or the store hangs"],
];

const RECORDS_OF_A_COMMIT: readonly Bucket[] = [
  [1, "one record: a poll came or went"],
  [2, "a grant on an idle host: the lease and the bucket's account"],
  [4, "a hand-over: the released slot, the next grant, their accounts"],
  [8, "a hand-over with newcomers"],
  [16, "a burst, or several releases decided together"],
  [32, "many callers in one turn of the service"],
  [64, "more than usual: an instance died, or a breaker opened"],
  [256, "the waiters of a whole host changed at once"],
];

const perHost = ["host"] as const;

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
    help: "Grants nobody fetched in time: they went to the next waiter",
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
  unsent: {
    name: "slotkeeper_unsent_calls",
    kind: "gauge",
    help: "Calls the store has not heard yet, releases above all",
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
