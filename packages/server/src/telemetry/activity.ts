import type { QueueEvent } from "@slotkeeper/queue";
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

/**
 * Finds the busiest of any number of hosts, in bounded memory.
 *
 * BUSY1  At most `most` hosts are tracked and at most `candidates` are counted, for any number of hosts.
 * BUSY2  While there is room, a host is tracked from its first use.
 * BUSY3  A host with more than one in `candidates` + 1 of all uses since the last election is counted (Misra and Gries,
 *     "Finding repeated elements", 1982). The `most` largest counts are elected.
 * BUSY4  A tracked host is replaced only by a host that was used at least half as much again, so that two similar hosts
 *     do not alternate.
 * BUSY5  A host that was not used for `PATIENCE` elections is dropped.
 *
 * Cost: O(1) amortised for a use; O(candidates · log) for an election.
 */
export class BusiestHosts<T> {
  readonly #init: BusiestHostsInit<T>;
  readonly #tracked = new Map<string, Tracked<T>>();
  #counts = new Map<string, number>();

  constructor(init: BusiestHostsInit<T>) {
    this.#init = init;
  }

  /** Counts a use. Returns the data of the host, or `undefined` if it is not tracked. */
  use(host: string): T | undefined {
    this.#count(host);
    const tracked = this.#tracked.get(host);
    if (tracked !== undefined) return tracked.kept;
    return this.#tracked.size < this.#init.most ? this.#track(host) : undefined;
  }

  /** Returns the data of the host without counting a use. */
  get(host: string): T | undefined {
    return this.#tracked.get(host)?.kept;
  }

  /** A viewer asks for this host: it is tracked at least until the next election, instead of the least used one. */
  watch(host: string): T {
    const known = this.#tracked.get(host);
    if (known !== undefined) {
      known.isWatched = true;
      return known.kept;
    }
    if (this.#tracked.size >= this.#init.most) this.#dropLeast();
    const kept = this.#track(host);
    (this.#tracked.get(host) as Tracked<T>).isWatched = true;
    return kept;
  }

  *entries(): Iterable<readonly [host: string, kept: T]> {
    for (const [host, { kept }] of this.#tracked) yield [host, kept];
  }

  get size(): number {
    return this.#tracked.size;
  }

  elect(): void {
    const merit = (host: string) => {
      const tracked = this.#tracked.get(host);
      if (tracked?.isWatched === true) return Number.POSITIVE_INFINITY;
      return (this.#counts.get(host) ?? 0) * (tracked === undefined ? 1 : INCUMBENT);
    };
    for (const [host, tracked] of this.#tracked) {
      tracked.idle = tracked.isWatched || this.#counts.has(host) ? 0 : tracked.idle + 1;
      if (tracked.idle >= PATIENCE) this.#tracked.delete(host);
    }
    const standing = [...new Set([...this.#tracked.keys(), ...this.#counts.keys()])];
    const elected = standing.sort((a, b) => merit(b) - merit(a)).slice(0, this.#init.most);
    const isElected = new Set(elected);
    for (const host of this.#tracked.keys()) if (!isElected.has(host)) this.#tracked.delete(host);
    for (const host of elected) if (!this.#tracked.has(host)) this.#track(host);
    for (const tracked of this.#tracked.values()) tracked.isWatched = false;
    this.#counts = new Map();
  }

  #track(host: string): T {
    const kept = this.#init.create(host);
    this.#tracked.set(host, { kept, isWatched: false, idle: 0 });
    return kept;
  }

  #dropLeast(): void {
    let least: { host: string; count: number } | undefined;
    for (const [host, { isWatched }] of this.#tracked) {
      const count = isWatched ? Number.POSITIVE_INFINITY : (this.#counts.get(host) ?? 0);
      if (least === undefined || count < least.count) least = { host, count };
    }
    if (least !== undefined) this.#tracked.delete(least.host);
  }

  #count(host: string): void {
    const count = this.#counts.get(host);
    if (count !== undefined) this.#counts.set(host, count + 1);
    else if (this.#counts.size < this.#init.candidates) this.#counts.set(host, 1);
    else this.#takeOneFromAll();
  }

  /** Amortised: each step removes what an earlier use has added. */
  #takeOneFromAll(): void {
    for (const [host, count] of this.#counts) {
      if (count === 1) this.#counts.delete(host);
      else this.#counts.set(host, count - 1);
    }
  }
}

interface BusiestHostsInit<T> {
  readonly most: number;
  readonly candidates: number;
  /** Creates the data of a tracked host. */
  readonly create: (host: string) => T;
}

interface Tracked<T> {
  readonly kept: T;
  isWatched: boolean;
  /** The number of elections without a use. */
  idle: number;
}

const INCUMBENT = 1.5;
const PATIENCE = 15;
