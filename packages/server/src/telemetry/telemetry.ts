import type { CommitNotice, CommitReply, FairQueue, HostStore, QueueEvent } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { Logger } from "../log/logger.ts";
import type { HostSettings } from "../queue/host-settings.ts";
import { Activity } from "./activity.ts";
import type { Bucket } from "./buckets.ts";
import { SkewWarning } from "./clock-skew.ts";
import { liveFrame } from "./live-frame.ts";
import { LiveHub } from "./live-hub.ts";
import type { Metric, Series } from "./metric.ts";
import { METRICS, type MetricId, type StoreOperation } from "./metrics.ts";
import { StoreReader } from "./store-reader.ts";

export interface TelemetryInit {
  readonly store: HostStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instance: string;
  readonly live: () => { readonly hosts: HostSettings; readonly config: { readonly version: string } };
  /** Default: events are not logged. */
  readonly eventLog?: EventLog;
}

/** Everything that observes the service. It gets events and reads the store, and nothing waits for it. */
export class Telemetry {
  readonly instruments = new Instruments();
  readonly reader: StoreReader;
  readonly activity: Activity;
  readonly hub: LiveHub;
  /** The store for the engine, with timing. */
  readonly store: HostStore;
  readonly #init: TelemetryInit;
  readonly #skew: SkewWarning;
  #queue: FairQueue | undefined;
  #isStoreSilent = false;

  constructor(init: TelemetryInit) {
    this.#init = init;
    const { store, clock, log } = init;
    this.store = new MeteredStore(store, this.instruments);
    this.reader = new StoreReader(this.store, () => this.#queue?.now() ?? clock.now());
    this.activity = new Activity(() => clock.now());
    this.#skew = new SkewWarning(log);
    this.hub = new LiveHub({
      clock,
      frame: (hosts, more) => {
        const { instance, live } = this.#init;
        return liveFrame(hosts, more, { instance, live: live(), queue: this.#queue as FairQueue, reader: this.reader });
      },
      onDropped: () => {
        this.instruments.count("listenersDropped");
        log.info("disconnected a client of /events that did not read");
      },
      onError: (error) => log.warn("events could not be sent", { error }),
    });
  }

  readonly observe = (event: QueueEvent): void => {
    this.instruments.observe(event);
    this.activity.observe(event);
    if (event.type !== "cycle" && "host" in event && event.host !== undefined) this.hub.stir(event.host);
    this.#init.eventLog?.add(event);
  };

  /** Starts to take samples. */
  start(queue: FairQueue): void {
    this.#queue = queue;
    const { clock } = this.#init;
    clock.setTimer(() => {
      void this.#sample();
      if (this.reader.store.isShared) this.#skew.check(queue);
      this.start(queue);
    }, this.activity.stepMs);
  }

  async #sample(): Promise<void> {
    try {
      await this.activity.sample(this.reader);
      this.#isStoreSilent = false;
    } catch (error) {
      // Logged once, not every five seconds: callers that need the store report its failure themselves.
      if (!this.#isStoreSilent) this.#init.log.warn("the history has a gap: the store could not be read", { error });
      this.#isStoreSilent = true;
    }
  }
}

/** Counts of values by upper bound. The bounds are fixed; observing allocates nothing. */
export class Histogram {
  readonly bounds: readonly number[];
  /** One count for each bound, and one for all larger values; not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(buckets: readonly Bucket[]) {
    this.bounds = buckets.map(([bound]) => bound);
    this.counts = new Float64Array(buckets.length + 1);
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
class Instruments {
  readonly #series = new Map<MetricId, Map<string, number | Histogram>>();
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
    const counts = this.#series.get(id) as Map<string, number>;
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }

  record(id: MetricId, value: number, label = ""): void {
    const histograms = this.#series.get(id) as Map<string, Histogram>;
    let histogram = histograms.get(label);
    if (histogram === undefined) {
      histogram = new Histogram(METRICS[id].buckets ?? []);
      histograms.set(label, histogram);
    }
    histogram.observe(value);
    this.recorded?.(id, value, label);
  }

  series(id: MetricId): Iterable<Series> {
    return this.#series.get(id) ?? [];
  }

  #prepare(id: MetricId, { kind, labels, values = [], read, counts = {}, times = {}, buckets = [] }: Metric): void {
    if (read !== undefined) return;
    const shown = labels.length === 0 ? [""] : values;
    this.#series.set(id, new Map(shown.map((label) => [label, kind === "histogram" ? new Histogram(buckets) : 0])));
    for (const [type, label] of Object.entries(counts)) {
      const labelOf = typeof label === "string" ? () => label : (label as (event: QueueEvent) => string | undefined);
      this.#on(type, (event) => {
        const found = labelOf(event);
        if (found !== undefined) this.count(id, found);
      });
    }
    for (const [type, field] of Object.entries(times))
      this.#on(type, (event) => {
        const ms = event[field as keyof QueueEvent] as number | undefined;
        if (ms !== undefined) this.record(id, ms / 1000);
      });
  }

  #on(type: string, observer: Observer): void {
    this.#observers.set(type, [...(this.#observers.get(type) ?? []), observer]);
  }
}

/** The store with timing. It returns the answers of the store, and measuring delays nothing. */
class MeteredStore implements HostStore {
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
    return this.#timed("commit", () => this.#store.commit(commit), this.#countRefusal);
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

  #timed<A>(operation: StoreOperation, call: () => A, onAnswer?: (answer: Awaited<A>) => void): A {
    const startedAt = performance.now();
    const answered = (answer: Awaited<A>) => {
      this.#instruments.record("store", (performance.now() - startedAt) / 1000, operation);
      onAnswer?.(answer);
    };
    const answer = call();
    if (answer instanceof Promise) answer.then(answered, () => this.#instruments.count("storeErrors", operation));
    else answered(answer as Awaited<A>);
    return answer;
  }
}

/** What an `EventLog` needs. */
export interface EventLogInit {
  readonly log: Logger;
  /** The name of a host, if a caller sent it. */
  readonly nameOf: (host: string) => string | undefined;
  readonly now: () => number;
}

/** How often a host may report refused buckets. */
const WINDOWS_EVERY_MS = 60_000;
/** The hosts whose windows are counted. Of more hosts, the count of the one that was reported first is lost. */
const MOST_HOSTS = 10_000;

interface Windows {
  reportedAt: number;
  /** Since the last report. */
  count: number;
}

/** Events of single sessions are logged at debug level; events that an operator must notice are logged above it. */
export class EventLog {
  readonly #init: EventLogInit;
  readonly #windows = new Map<string, Windows>();

  constructor(init: EventLogInit) {
    this.#init = init;
  }

  add(event: QueueEvent): void {
    const { log } = this.#init;
    const { type } = event;
    if (type === "store-error") {
      log.warn("store call failed", { host: event.host, operation: event.operation, error: event.error });
    } else if (type === "probe-decision") {
      this.#addWindow(event);
    } else if (type === "reclaimed") {
      const { host, bucket, fence } = event;
      log.info("a lease expired without a release", { host: this.#shown(host), bucket, fence });
    } else if (type !== "cycle" && log.isOn("debug")) {
      const { type: _type, ...fields } = event;
      log.debug(type.replaceAll("-", " "), fields);
    }
  }

  /**
   * A busy host has many windows in a second. At info it reports one of them, with the number since the last report; at
   * debug all of them are logged.
   */
  #addWindow({ host, bucket, isAllowed, reason }: QueueEvent & { type: "probe-decision" }): void {
    const { log, now } = this.#init;
    const decision = { host: this.#shown(host), ip: bucket, allowed: isAllowed, reason };
    const windows = this.#windows.get(host);
    if (windows !== undefined && now() < windows.reportedAt + WINDOWS_EVERY_MS) {
      windows.count++;
      log.debug("probe decision", decision);
      return;
    }
    log.info("probe decision", { ...decision, windows: (windows?.count ?? 0) + 1 });
    // Moved to the end: the first entry is the one that was reported first.
    this.#windows.delete(host);
    this.#windows.set(host, { reportedAt: now(), count: 0 });
    const [oldest] = this.#windows.keys();
    if (this.#windows.size > MOST_HOSTS && oldest !== undefined) this.#windows.delete(oldest);
  }

  #shown(host: string): string {
    return this.#init.nameOf(host) ?? host;
  }
}
