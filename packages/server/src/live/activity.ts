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

/** Of 100,000 hosts used alike a thousand are counted, and a hundred of them shown: memory is the same as of a hundred. */
const CANDIDATES = 1_000;
const SAMPLES_PER_ELECTION = 12;

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

  constructor(now: () => number) {
    this.#now = now;
    this.#all = new HistoryRing(now());
    const create = () => new HostActivity(now());
    this.hosts = new BusiestHosts({ most: HOSTS_SHOWN, candidates: CANDIDATES, create });
  }

  observe(event: QueueEvent): void {
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

  /** How full the fleet is now, once in every step. Idle hosts are not asked about. */
  async sample(reader: StoreReader): Promise<void> {
    this.#samples++;
    if (this.#samples % SAMPLES_PER_ELECTION === 0) this.hosts.elect();
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

  /** Of all hosts, or of one; undefined: nothing is kept of it, from now on it is. */
  history(host: string | undefined): HistoryColumns | undefined {
    const now = this.#now();
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
