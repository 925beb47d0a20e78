import type { QueueEvent } from "@slotkeeper/queue";
import { HOSTS_SHOWN } from "../metrics/catalogue.ts";
import { BusiestHosts } from "./busiest-hosts.ts";
import { type Counted, type HistoryColumns, HistoryRing, STEP_MS } from "./history-ring.ts";
import type { StoreReader } from "./store-reader.ts";

/** What is kept for each of the busiest hosts. */
export class HostActivity {
  readonly ring: HistoryRing;
  grants = 0;
  rejects = 0;
  /** Something happened since the last sample. */
  isStirred = true;

  constructor(now: number) {
    this.ring = new HistoryRing(now);
  }
}

/** What may change how full the fleet is. */
const STIRRING = { "session-created": true, granted: true, released: true, timeout: true, canceled: true } as const;

/** Of 100,000 hosts used alike a thousand are counted, and a hundred of them shown: memory is the same as of a hundred. */
const CANDIDATES = 1_000;
const SAMPLES_PER_ELECTION = 12;
/**
 * Steps from one reading of the store to the next while nothing happens at this instance and no viewer asks: with slots in use or
 * sessions waiting in the fleet, and without. An idle fleet must cost its database next to nothing.
 */
const STEPS_BETWEEN_READINGS = { busy: 4, idle: 6 } as const;
/** A viewer asks again within this many steps. */
const LOOKED_STEPS = 12;

/**
 * What happened lately, of all hosts together and of the busiest each. Memory: `HOSTS_SHOWN` + 1 rings, however many
 * hosts there are. Every grant and reject is counted in one place: at its host while that is shown, else at the rest.
 */
export class Activity {
  readonly #now: () => number;
  readonly #all: HistoryRing;
  readonly hosts: BusiestHosts<HostActivity>;
  readonly rest = { grants: 0, rejects: 0 };
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
        this.#stir(event.host);
        return;
      case "granted":
        this.#count(event.host, "granted", "grants", event.waitedMs);
        return;
      case "timeout":
      case "throttled":
      case "overloaded":
        this.#count(event.host, event.type, "rejects", undefined);
        return;
      case "canceled":
      case "released":
        this.#count(event.host, event.type, undefined, undefined);
        return;
      case "cycle":
      case "late-release":
      case "moved":
      case "probe-decision":
      case "reclaimed":
      case "store-error":
      case "uncollected":
    }
  }

  /**
   * How full the fleet is now, once in every step. Idle hosts are not asked about, and nothing is while all is still: a step
   * that was not sampled has the numbers of the one before.
   */
  async sample(reader: StoreReader): Promise<void> {
    this.#samples++;
    if (this.#samples % SAMPLES_PER_ELECTION === 0) this.hosts.elect();
    if (!this.#isDue()) return;
    this.#readAt = this.#samples;
    this.#isStirred = false;
    const { inFlight, slots, waiting } = await reader.totals();
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

  /** Of all hosts, or of one; undefined: nothing is kept of it, from now on it is. */
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

  #stir(host: string): HostActivity | undefined {
    const activity = this.hosts.use(host);
    if (activity !== undefined) activity.isStirred = true;
    return activity;
  }

  #count(host: string, what: Counted, also: "grants" | "rejects" | undefined, waitedMs: number | undefined): void {
    const now = this.#now();
    const activity = also === undefined ? this.hosts.get(host) : this.#stir(host);
    if (activity !== undefined && also === undefined) activity.isStirred = true;
    if (also !== undefined) (activity ?? this.rest)[also]++;
    this.#all.count(what, now);
    activity?.ring.count(what, now);
    if (waitedMs === undefined) return;
    this.#all.addWait(waitedMs, now);
    activity?.ring.addWait(waitedMs, now);
  }
}
