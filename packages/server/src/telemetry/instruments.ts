import type { QueueEvent } from "@slotkeeper/queue";
import type { Metric, Series } from "./metric.ts";
import { METRICS, type MetricId } from "./metrics.ts";

/** Counts of values by upper bound. The bounds are fixed; observing allocates nothing. */
export class Histogram {
  readonly bounds: readonly number[];
  /** One count for each bound, and one for all larger values; not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += value;
  }
}

type Observer = (event: QueueEvent) => void;

/**
 * Counts as things happen, for the metrics that are not read from elsewhere. Each has a count or a histogram for each
 * value of its label, and `""` if it has none. Observing an event costs a few additions and allocates nothing.
 */
export class Instruments {
  readonly #counts = new Map<MetricId, Map<string, number>>();
  readonly #histograms = new Map<MetricId, Map<string, Histogram>>();
  readonly #observers = new Map<string, Observer[]>();
  /** Gets every value of a histogram, too. */
  recorded: ((id: MetricId, value: number, label: string) => void) | undefined;

  constructor() {
    for (const [id, metric] of Object.entries<Metric>(METRICS)) this.#prepare(id as MetricId, metric);
  }

  observe(event: QueueEvent): void {
    for (const observe of this.#observers.get(event.type) ?? []) observe(event);
  }

  count(id: MetricId, label = ""): void {
    const counts = this.#counts.get(id) as Map<string, number>;
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }

  record(id: MetricId, value: number, label = ""): void {
    const histograms = this.#histograms.get(id) as Map<string, Histogram>;
    let histogram = histograms.get(label);
    if (histogram === undefined) {
      histogram = new Histogram((METRICS[id].buckets ?? []).map(([bound]) => bound));
      histograms.set(label, histogram);
    }
    histogram.observe(value);
    this.recorded?.(id, value, label);
  }

  series(id: MetricId): Iterable<Series> {
    return this.#counts.get(id) ?? this.#histograms.get(id) ?? [];
  }

  #prepare(id: MetricId, { kind, labels, values = [], read, on = {}, buckets = [] }: Metric): void {
    if (read !== undefined) return;
    const shown = labels.length === 0 ? [""] : values;
    if (kind !== "histogram") this.#counts.set(id, new Map(shown.map((label) => [label, 0])));
    else
      this.#histograms.set(id, new Map(shown.map((label) => [label, new Histogram(buckets.map(([bound]) => bound))])));
    for (const [type, reading] of Object.entries(on)) {
      const observers = this.#observers.get(type) ?? [];
      this.#observers.set(type, [...observers, (event) => this.#add(id, (reading as Reader)(event))]);
    }
  }

  #add(id: MetricId, found: string | number | undefined): void {
    if (typeof found === "number") this.record(id, found);
    else if (found !== undefined) this.count(id, found);
  }
}

type Reader = (event: QueueEvent) => string | number | undefined;
