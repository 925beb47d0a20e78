import type { FairQueue, HostGlance, HostSnapshot, QueueOverview, StoreGauges, StoreTotals } from "@slotkeeper/queue";
import type { Logger } from "../log/logger.ts";
import type { HostSettings } from "../queue/host-settings.ts";
import type { OpenStore } from "../store/open-store.ts";
import type { HostActivity } from "./activity.ts";
import { clockSkewMs } from "./clock-skew.ts";
import { OTHER_HOSTS } from "./host-metrics.ts";
import type { Metric, Reading, Series } from "./metric.ts";
import { METRICS, type MetricId } from "./metrics.ts";
import type { Readiness } from "./readiness.ts";
import { Histogram, type Telemetry } from "./telemetry.ts";

/** What the metrics are read from. */
export interface ScrapeSources {
  readonly queue: Pick<FairQueue, "glance" | "overview" | "now">;
  readonly telemetry: Pick<Telemetry, "activity" | "instruments" | "reader" | "hub">;
  readonly log: Pick<Logger, "warn"> & { readonly lost: number };
  readonly live: { readonly hosts: HostSettings; readonly config: { readonly version: string } };
  readonly held: { readonly size: number };
  readonly refusals: { readonly counts: { readonly [limit: string]: number } };
  readonly opened: Pick<OpenStore, "gauges">;
  readonly readiness: { read(): Promise<Readiness> };
  readonly version: string;
  /** Open connections. */
  connections(): number;
  isOnFallback(): boolean;
}

/** What one page is made of. */
export interface Scraped {
  readonly sources: ScrapeSources;
  readonly hosts: readonly ShownHost[];
  /** `undefined` if the store does not answer. */
  readonly totals: StoreTotals | undefined;
  readonly overview: QueueOverview;
  readonly readiness: Readiness;
  readonly gauges: StoreGauges;
  readonly skewMs: number;
}

export interface ShownHost {
  readonly label: string;
  readonly activity: HostActivity;
  readonly here: HostGlance | undefined;
  readonly stored: HostSnapshot | undefined;
}

/** The page of metrics in the Prometheus text format 0.0.4, written by hand: see `docs/decisions/0092`. */
export async function scrape(sources: ScrapeSources): Promise<string> {
  const lines = (await readMetrics(sources)).flatMap(({ metric, reading }) => linesOf(metric, reading));
  return `${lines.join("\n")}\n`;
}

/** Reads every metric. If the store does not answer, only its own numbers are missing. */
export async function readMetrics(
  sources: ScrapeSources,
): Promise<{ id: MetricId; metric: Metric; reading: Reading }[]> {
  const { queue, telemetry, opened } = sources;
  const entries = [...telemetry.activity.hosts.entries()];
  const [[totals, stored], readiness] = await Promise.all([
    storeSide(
      sources,
      entries.map(([host]) => host),
    ),
    sources.readiness.read(),
  ]);
  const label = labeller();
  const scraped: Scraped = {
    sources,
    hosts: entries.map(([key, activity]) => {
      const [here, there] = [queue.glance(key), stored.get(key)];
      return { label: label(here?.hostname ?? there?.hostname, key), activity, here, stored: there };
    }),
    totals,
    overview: queue.overview(),
    readiness,
    gauges: opened.gauges?.() ?? {},
    skewMs: telemetry.reader.store.isShared ? clockSkewMs(queue) : 0,
  };
  return (Object.entries(METRICS) as [MetricId, Metric][]).map(([id, metric]) => {
    const { read = () => telemetry.instruments.series(id) } = metric;
    return { id, metric, reading: read(scraped) };
  });
}

async function storeSide(
  { telemetry, log }: ScrapeSources,
  keys: readonly string[],
): Promise<[StoreTotals | undefined, ReadonlyMap<string, HostSnapshot>]> {
  try {
    return await Promise.all([telemetry.reader.store.totals(), telemetry.reader.hosts(keys)]);
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

function linesOf({ name, help, kind, labels }: Metric, reading: Reading): string[] {
  if (reading === undefined) return [];
  const series: Iterable<Series> = typeof reading === "number" ? [["", reading]] : reading;
  const lines = Array.from(series).flatMap(([values, value]) => {
    const pairs = labelled(labels, values).map(([label, text]) => `${label}="${escaped(text)}"`);
    return value instanceof Histogram
      ? histogramLines(name, value, pairs)
      : [`${name}${braced(pairs)} ${numberText(value)}`];
  });
  if (lines.length === 0) return [];
  return [`# HELP ${name} ${help.replaceAll("\\", "\\\\")}`, `# TYPE ${name} ${kind}`, ...lines];
}

/** The labels of a series with their values. */
export function labelled(labels: readonly string[], values: Series[0]): [label: string, value: string][] {
  const texts = [values].flat();
  return labels.map((label, at) => [label, texts[at] ?? ""]);
}

function histogramLines(name: string, { bounds, counts, sum }: Histogram, pairs: readonly string[]): string[] {
  let total = 0;
  const buckets = Array.from(counts, (count, at) => {
    total += count;
    return `${name}_bucket${braced([...pairs, `le="${bounds[at] ?? "+Inf"}"`])} ${total}`;
  });
  return [...buckets, `${name}_sum${braced(pairs)} ${numberText(sum)}`, `${name}_count${braced(pairs)} ${total}`];
}

function braced(pairs: readonly string[]): string {
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : Number.isNaN(value) ? "NaN" : "-Inf";
}
