import type { QueueEvent } from "@slotkeeper/queue";
import { BusiestHosts } from "./busiest-hosts.ts";
import { type Counted, type HistoryColumns, HistoryRing, STEP_MS } from "./history-ring.ts";
import type { StoreReader } from "./store-reader.ts";

/** As many hosts as a person can look at. With nine series each, all hosts together have about a thousand series. */
const HOSTS_SHOWN = 100;

/** What happened since the start, for the metrics. */
class HostCounts {
  grants = 0;
  rejects = 0;
  excess = 0;
  short = 0;
  shared = 0;
}

/** The data that is kept for each of the busiest hosts. */
export class HostActivity extends HostCounts {
  readonly ring: HistoryRing;
  /** Whether something happened since the last sample. */
  isStirred = true;

  constructor(now: number) {
    super();
    this.ring = new HistoryRing(now);
  }
}

/** The events that may change how full the fleet is. */
const STIRRING = { "session-created": true, granted: true, released: true, timeout: true, canceled: true } as const;

/**
 * If 100,000 hosts are used equally, a thousand are counted and a hundred of them are shown. Memory does not grow with
 * their number.
 */
const CANDIDATES = 1_000;
const SAMPLES_PER_ELECTION = 12;
/**
 * The number of steps between two reads of the store while nothing happens at this instance and no viewer asks: `busy`
 * if slots are in use or sessions wait in the fleet, otherwise `idle`. An idle fleet must cost its database very
 * little.
 */
const STEPS_BETWEEN_READINGS = { busy: 4, idle: 6 } as const;
/** A viewer asks again within this number of steps. */
const LOOKED_STEPS = 12;

/**
 * The recent activity of all hosts together and of each of the busiest. Memory: `HOSTS_SHOWN` + 1 rings, for any number
 * of hosts. Every grant and reject is counted once: at its host if that is shown, otherwise at the rest.
 */
export class Activity {
  readonly #now: () => number;
  readonly #all: HistoryRing;
  readonly hosts: BusiestHosts<HostActivity>;
  readonly rest = new HostCounts();
  #samples = 0;
  #readAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isStirred = false;

  constructor(now: () => number) {
    this.#now = now;
    this.#all = new HistoryRing(now());
    const create = () => new HostActivity(now());
    this.hosts = new BusiestHosts({ most: HOSTS_SHOWN, candidates: CANDIDATES, create });
  }

  observe(event: QueueEvent): void {
    if (event.type in STIRRING) this.#isStirred = true;
    switch (event.type) {
      case "session-created":
        this.hosts.use(event.host);
        this.#stir(event.host);
        return;
      case "granted":
        this.hosts.use(event.host);
        this.#countsOf(event.host).grants++;
        this.#record(event.host, "granted", event.waitedMs);
        return;
      case "timeout":
      case "throttled":
      case "overloaded":
        this.hosts.use(event.host);
        this.#countsOf(event.host).rejects++;
        this.#record(event.host, event.type);
        return;
      case "canceled":
      case "released":
        this.#record(event.host, event.type);
        return;
      case "budget-excess":
        this.#countsOf(event.host).excess += event.units;
        return;
      case "shadow-short":
        this.#countsOf(event.host).short++;
        return;
      case "shared-state":
        this.#countsOf(event.host).shared++;
        return;
      case "cycle":
      case "late-release":
      case "probe-decision":
      case "reclaimed":
      case "returned":
      case "store-error":
      case "uncollected":
    }
  }

  /**
   * Samples how full the fleet is, once in every step. It does not ask about idle hosts, and does not ask at all while
   * nothing happens. A step without a sample has the numbers of the previous one.
   */
  async sample(reader: StoreReader): Promise<void> {
    this.#samples++;
    if (this.#samples % SAMPLES_PER_ELECTION === 0) this.hosts.elect();
    if (!this.#isDue()) return;
    this.#readAt = this.#samples;
    this.#isStirred = false;
    const { inFlight, slots, waiting } = await reader.store.totals();
    this.#all.sample({ inFlight, limit: slots, waiters: waiting }, this.#now());
    const stirred = [...this.hosts.entries()].filter(([, { isStirred, ring }]) => {
      const { inFlight: held, waiters } = ring.gauges;
      return isStirred || held > 0 || waiters > 0;
    });
    const stored = await reader.hosts(stirred.map(([host]) => host));
    for (const [host, activity] of stirred) {
      const { inFlight = 0, waiting = 0, slots = activity.ring.gauges.limit } = stored.get(host) ?? {};
      activity.isStirred = false;
      activity.ring.sample({ inFlight, limit: slots, waiters: waiting }, this.#now());
    }
  }

  #isDue(): boolean {
    if (this.#isStirred || this.#samples - this.#lookedAt < LOOKED_STEPS) return true;
    const { inFlight, waiters } = this.#all.gauges;
    const steps = STEPS_BETWEEN_READINGS[inFlight > 0 || waiters > 0 ? "busy" : "idle"];
    return this.#samples - this.#readAt >= steps;
  }

  /**
   * The history of all hosts, or of one. Returns `undefined` for a host that is not tracked, which is tracked from now
   * on.
   */
  history(host: string | undefined): HistoryColumns | undefined {
    const now = this.#now();
    this.#lookedAt = this.#samples;
    if (host === undefined) return this.#all.read(now);
    const known = this.hosts.get(host);
    this.hosts.watch(host);
    return known?.ring.read(now);
  }

  get stepMs(): number {
    return STEP_MS;
  }

  #countsOf(host: string): HostCounts {
    return this.hosts.get(host) ?? this.rest;
  }

  #stir(host: string): HostActivity | undefined {
    const activity = this.hosts.get(host);
    if (activity !== undefined) activity.isStirred = true;
    return activity;
  }

  #record(host: string, what: Counted, waitedMs?: number): void {
    const now = this.#now();
    for (const ring of [this.#all, this.#stir(host)?.ring]) {
      ring?.count(what, now);
      if (waitedMs !== undefined) ring?.addWait(waitedMs, now);
    }
  }
}
