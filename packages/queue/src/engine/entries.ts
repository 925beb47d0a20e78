import { SmallMap } from "../small-map.ts";
import { DrainMeter } from "./drain-meter.ts";
import type { Entry } from "./entry.ts";
import { SessionQuota } from "./session-quota.ts";

/** The entries of this instance by session. `globalMaxWaiters` counts them. */
export class Entries {
  readonly #byId = new SmallMap<string, Entry>();
  readonly #drain = new DrainMeter();
  /** Decides whether a bucket may begin another session. */
  readonly quota = new SessionQuota();

  get size(): number {
    return this.#byId.size;
  }

  /** The average time between two sessions that leave, while sessions wait. */
  get drainIntervalMs(): number | undefined {
    return this.#drain.intervalMs;
  }

  values(): Iterable<Entry> {
    return this.#byId.values();
  }

  find(id: string): Entry | undefined {
    return this.#byId.get(id);
  }

  has(entry: Entry): boolean {
    return this.#byId.get(entry.id) === entry;
  }

  add(entry: Entry): void {
    this.#byId.set(entry.id, entry);
    this.quota.add(entry.claims.bucket);
    entry.host.add(entry);
  }

  drop(entry: Entry, now: number): void {
    this.#byId.delete(entry.id);
    this.quota.remove(entry.claims.bucket);
    entry.host.remove(entry);
    this.#drain.step(now);
    if (this.quota.total === 0) this.#drain.rest();
  }
}
