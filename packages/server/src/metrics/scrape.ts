import { NO_CONNECTIONS } from "@slotkeeper/postgres";
import { type HostGlance, type HostSnapshot, phaseFor, type StoreTotals } from "@slotkeeper/queue";
import type { Live, ServiceContext } from "../http/service-context.ts";
import type { HostActivity } from "../live/activity.ts";
import { clockSkewMs } from "../live/clock-skew.ts";
import { NOT_READY_REASONS, type Readiness } from "../readiness/readiness.ts";
import { type MetricId, OTHER_HOSTS } from "./catalogue.ts";
import { Exposition } from "./exposition.ts";
import type { Instruments } from "./instruments.ts";

/** The sources of the page. */
export interface ScrapeContext
  extends Pick<
    ServiceContext,
    "queue" | "telemetry" | "log" | "version" | "isOnFallback" | "refusals" | "connections" | "opened" | "readiness"
  > {
  readonly held: { readonly size: number };
  readonly live: Pick<Live, "hosts"> & { readonly config: { readonly version: string } };
}

interface Shown {
  readonly label: string;
  readonly activity: HostActivity;
  readonly here: HostGlance | undefined;
  readonly stored: HostSnapshot | undefined;
}

const PHASES = { closed: 0, "half-open": 1, open: 2 } as const;

/** The page of metrics. If the store does not answer, only its own numbers are missing. */
export async function scrape(context: ScrapeContext): Promise<string> {
  const page = new Exposition();
  const { queue, telemetry } = context;
  const entries = [...telemetry.activity.hosts.entries()];
  const hostKeys = entries.map(([host]) => host);
  const [[totals, stored], readiness] = await Promise.all([storeSide(context, hostKeys), context.readiness.read()]);
  const label = labeller();
  const hosts = entries.map(([key, activity]): Shown => {
    const [here, there] = [queue.glance(key), stored.get(key)];
    return { label: label(here?.hostname ?? there?.hostname, key), activity, here, stored: there };
  });
  if (totals !== undefined) addStored(page, hosts, totals, context);
  addOldestWait(page, hosts, context);
  addHostCounts(page, hosts, context);
  addCounters(page, telemetry.instruments);
  addConnections(page, readiness, context);
  addService(page, context);
  addRefusals(page, context);
  addProcess(page);
  return page.toString();
}

async function storeSide(
  { telemetry, log }: ScrapeContext,
  keys: readonly string[],
): Promise<[StoreTotals | undefined, ReadonlyMap<string, HostSnapshot>]> {
  try {
    return await Promise.all([telemetry.reader.totals(), telemetry.reader.hosts(keys)]);
  } catch (error) {
    log.warn("the metrics are incomplete: the store could not be read", { error });
    return [undefined, new Map()];
  }
}

/** Keys are unique, but names need not be, and callers choose both. If a label is in use, the key becomes the label. */
function labeller(): (hostname: string | undefined, key: string) => string {
  const taken = new Set<string>([OTHER_HOSTS]);
  return (hostname, key) => {
    let label = hostname ?? key;
    while (taken.has(label)) label += ` (${key})`;
    taken.add(label);
    return label;
  };
}

function addStored(page: Exposition, hosts: readonly Shown[], totals: StoreTotals, { live }: ScrapeContext): void {
  const perHost = (id: MetricId, all: number, valueOf: (stored: HostSnapshot) => number) => {
    let rest = all;
    for (const { label, stored } of hosts) {
      const value = stored === undefined ? 0 : valueOf(stored);
      rest -= value;
      page.add(id, value, { host: label });
    }
    page.add(id, Math.max(0, rest), { host: OTHER_HOSTS });
  };
  perHost("slotsInUse", totals.inFlight, ({ inFlight }) => inFlight);
  perHost("slotsLimit", totals.slots, ({ slots }) => slots);
  perHost("waiters", totals.waiting, ({ waiting }) => waiting);
  for (const { label, stored, here } of hosts) {
    const { openMs } = live.hosts.policyOf(here?.hostname ?? stored?.hostname).breaker;
    const phase = stored === undefined ? "closed" : phaseFor(stored.breaker, openMs);
    page.add("breakerState", PHASES[phase], { host: label });
  }
  for (const { label, stored } of hosts) page.add("fairShareLag", fairShareLag(stored) / 1000, { host: label });
  page.add("breakersOpen", totals.open);
  page.add("hosts", totals.hosts);
}

/** How far the worst-served waiting bucket is behind the meter, in slot-milliseconds per weight. */
function fairShareLag(stored: HostSnapshot | undefined): number {
  let worst = 0;
  for (const { waiting, usedMs, weight } of stored?.buckets ?? []) {
    if (waiting > 0) worst = Math.max(worst, (stored?.progress ?? 0) - usedMs / weight);
  }
  return worst;
}

function addOldestWait(page: Exposition, hosts: readonly Shown[], { queue }: ScrapeContext): void {
  const { at, oldestArrivedAt } = queue.overview();
  const oldest = oldestArrivedAt ?? at;
  let isShown = false;
  for (const { label, here } of hosts) {
    const arrivedAt = here?.oldestArrivedAt ?? at;
    isShown ||= arrivedAt <= oldest;
    page.add("oldestWait", Math.max(0, at - arrivedAt) / 1000, { host: label });
  }
  // Reported if it is the oldest of all. Otherwise it is younger than one that is shown.
  page.add("oldestWait", isShown ? 0 : Math.max(0, at - oldest) / 1000, { host: OTHER_HOSTS });
}

function addHostCounts(page: Exposition, hosts: readonly Shown[], { telemetry }: ScrapeContext): void {
  const { rest } = telemetry.activity;
  for (const { label, activity } of hosts) page.add("hostGrants", activity.grants, { host: label });
  page.add("hostGrants", rest.grants, { host: OTHER_HOSTS });
  for (const { label, activity } of hosts) page.add("hostRejects", activity.rejects, { host: label });
  page.add("hostRejects", rest.rejects, { host: OTHER_HOSTS });
}

function addCounters(page: Exposition, instruments: Instruments): void {
  page.add("sessionsStarted", instruments.started);
  for (const [end, count] of Object.entries(instruments.ended)) page.add("sessionsEnded", count, { end });
  for (const [reason, count] of Object.entries(instruments.rejects)) page.add("rejects", count, { reason });
  page.add("released", instruments.released);
  page.add("reclaimed", instruments.reclaimed);
  page.add("lateReleases", instruments.lateReleases);
  page.add("uncollected", instruments.uncollected);
  page.add("returned", instruments.returned);
  for (const id of ["wait", "hold", "cycle", "changed"] as const) page.histogram(id, instruments[id]);
  for (const [reason, count] of Object.entries(instruments.commitRefusals))
    page.add("commitRefusals", count, { reason });
  for (const [operation, histogram] of instruments.store) page.histogram("store", histogram, { operation });
  for (const operation of new Set([...instruments.store.keys(), ...instruments.storeErrors.keys()])) {
    page.add("storeErrors", instruments.storeErrors.get(operation) ?? 0, { operation });
  }
  page.add("notifications", instruments.notifications);
  page.add("listenersDropped", instruments.listenersDropped);
  page.add("pushFailures", instruments.controllerFailures);
}

function addConnections(page: Exposition, readiness: Readiness, { opened, queue, telemetry }: ScrapeContext): void {
  const { pool, lanes, listener } = opened.gauges?.() ?? NO_CONNECTIONS;
  const found = readiness.isReady ? undefined : readiness.reason;
  for (const reason of NOT_READY_REASONS) page.add("notReady", reason === found ? 1 : 0, { reason });
  page.add("listenerUp", listener.isUp === false ? 0 : 1);
  page.add("listenerLosses", listener.losses);
  page.add("poolConnections", pool.size - pool.idle, { state: "busy" });
  page.add("poolConnections", pool.idle, { state: "idle" });
  page.add("poolWaiting", pool.waiting);
  page.add("poolWaits", pool.waits);
  page.add("poolWaitSeconds", pool.waitedMs / 1000);
  page.add("laneWaiting", lanes.waiting);
  page.add("laneWaits", lanes.waits);
  page.add("clockSkew", telemetry.reader.isShared ? clockSkewMs(queue) / 1000 : 0);
}

function addService(page: Exposition, { queue, held, telemetry, version, live, isOnFallback }: ScrapeContext): void {
  page.add("unsent", queue.overview().unsent);
  page.add("heldPolls", held.size);
  page.add("listeners", telemetry.hub.size);
  page.add("onFallback", isOnFallback() ? 1 : 0);
  page.add("info", 1, { version, config_version: live.config.version });
}

function addRefusals(page: Exposition, { refusals, connections, telemetry, log }: ScrapeContext): void {
  page.add("connections", connections());
  for (const [limit, count] of Object.entries(refusals.counts)) page.add("refused", count, { limit });
  page.add("badRequests", telemetry.instruments.badRequests);
  page.add("logLinesLost", log.lost);
}

function addProcess(page: Exposition): void {
  const { user, system } = process.cpuUsage();
  page.add("memory", process.memoryUsage.rss());
  page.add("cpu", (user + system) / 1e6);
  page.add("started", Math.round(performance.timeOrigin) / 1000);
}
