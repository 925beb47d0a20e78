import type { Histogram, Meter, MetricOptions, Observable } from "@opentelemetry/api";
import { VERSION } from "../version.ts";
import type { Metric, Reading } from "./metric.ts";
import { METRICS, type MetricId } from "./metrics.ts";
import { labelled, readMetrics, type ScrapeSources } from "./scrape.ts";

/**
 * Gives the metrics of `/metrics` to OpenTelemetry, under the same names, if an SDK registered a meter provider in this
 * process before the service started. Otherwise it does nothing, and no event costs anything. Returns what ends it.
 */
export async function exportMetrics(sources: ScrapeSources): Promise<() => void> {
  const meter = await findMeter(sources);
  if (meter === undefined) return () => {};
  const { instruments } = sources.telemetry;
  const histograms = new Map<MetricId, Histogram>();
  const observables = new Map<MetricId, Observable>();
  for (const [id, metric] of Object.entries(METRICS) as [MetricId, Metric][]) {
    if (metric.kind === "histogram") histograms.set(id, meter.createHistogram(metric.name, optionsOf(metric)));
    else observables.set(id, observableOf(meter, metric));
  }
  instruments.recorded = (id, value, label) =>
    histograms.get(id)?.record(value, Object.fromEntries(labelled(METRICS[id].labels, label)));
  const all = [...observables.values()];
  const observe: Parameters<Meter["addBatchObservableCallback"]>[0] = async (result) => {
    for (const { id, metric, reading } of await readMetrics(sources)) {
      const observable = observables.get(id);
      if (observable === undefined) continue;
      for (const [value, attributes] of valuesOf(metric, reading)) result.observe(observable, value, attributes);
    }
  };
  meter.addBatchObservableCallback(observe, all);
  return () => {
    instruments.recorded = undefined;
    meter.removeBatchObservableCallback(observe, all);
  };
}

/** Returns `undefined` if `@opentelemetry/api` is not installed, or no SDK has registered a provider. */
async function findMeter({ log }: Pick<ScrapeSources, "log">): Promise<Meter | undefined> {
  try {
    const { createNoopMeter, metrics } = await import("@opentelemetry/api");
    const meter = metrics.getMeter("@slotkeeper/server", VERSION);
    return meter === createNoopMeter() ? undefined : meter;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND")
      log.warn("`@opentelemetry/api` could not be loaded, so it gets no metrics", { error });
    return undefined;
  }
}

function observableOf(meter: Meter, metric: Metric): Observable {
  const options = optionsOf(metric);
  return metric.kind === "counter"
    ? meter.createObservableCounter(metric.name, options)
    : meter.createObservableGauge(metric.name, options);
}

function optionsOf({ name, help, buckets }: Metric): MetricOptions {
  const explicitBucketBoundaries = buckets?.map(([bound]) => bound);
  return {
    description: help,
    unit: /_seconds(?:_total)?$/.test(name) ? "s" : "",
    ...(explicitBucketBoundaries && { advice: { explicitBucketBoundaries } }),
  };
}

function* valuesOf({ labels }: Metric, reading: Reading = []): Iterable<[number, { [label: string]: string }]> {
  if (typeof reading === "number") yield [reading, {}];
  else
    for (const [values, value] of reading)
      if (typeof value === "number") yield [value, Object.fromEntries(labelled(labels, values))];
}
