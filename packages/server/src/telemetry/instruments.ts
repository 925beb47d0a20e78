import type { CommitNotice, CommitReply, HostStore, QueueEvent } from "@slotkeeper/queue";
import type { Metric, Series } from "./metric.ts";
import { METRICS, type MetricId, type StoreOperation } from "./metrics.ts";

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

/** The store with timing. It returns the answers of the store, and measuring delays nothing. */
export class MeteredStore implements HostStore {
  readonly isShared: boolean;
  readonly #store: HostStore;
  readonly #instruments: Instruments;

  constructor(store: HostStore, instruments: Instruments) {
    this.isShared = store.isShared;
    this.#store = store;
    this.#instruments = instruments;
  }

  commit: HostStore["commit"] = (commit) => {
    const { puts, dels } = commit.changes;
    this.#instruments.record("changed", puts.length + dels.length);
    const answer = this.#timed("commit", () => this.#store.commit(commit));
    if (answer instanceof Promise) answer.then(this.#countRefusal, () => {});
    else this.#countRefusal(answer);
    return answer;
  };

  read: HostStore["read"] = (host, since) => this.#timed("read", () => this.#store.read(host, since));
  beat: HostStore["beat"] = (beat) => this.#timed("beat", () => this.#store.beat(beat));
  peek: HostStore["peek"] = (hosts) => this.#timed("peek", () => this.#store.peek(hosts));
  hostKeys: HostStore["hostKeys"] = () => this.#timed("hostKeys", () => this.#store.hostKeys());
  totals: HostStore["totals"] = () => this.#timed("totals", () => this.#store.totals());
  instances: HostStore["instances"] = () => this.#timed("instances", () => this.#store.instances());
  cleanup: HostStore["cleanup"] = (request) => this.#timed("cleanup", () => this.#store.cleanup(request));

  watch(instance: string, listener: (notice: CommitNotice) => void): () => void {
    return this.#store.watch(instance, (notice) => {
      this.#instruments.count("notifications");
      listener(notice);
    });
  }

  readonly #countRefusal = (reply: CommitReply): void => {
    if (!reply.isOk) this.#instruments.count("commitRefusals", reply.reason);
  };

  #timed<A>(operation: StoreOperation, call: () => A): A {
    const startedAt = performance.now();
    const answered = () => this.#instruments.record("store", (performance.now() - startedAt) / 1000, operation);
    const answer = call();
    if (answer instanceof Promise) answer.then(answered, () => this.#instruments.count("storeErrors", operation));
    else answered();
    return answer;
  }
}
