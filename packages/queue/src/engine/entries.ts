import { SHARED_BUCKET } from "@slotkeeper/protocol";
import { SmallMap } from "../small-map.ts";
import type { Entry } from "./entry.ts";

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

interface SessionLimits {
  /** `globalMaxWaiters`. Infinity: no limit. */
  readonly maxSessions: number;
  /** How many of these sessions one bucket may have while others wait. */
  readonly maxSessionsPerBucket: number;
}

/**
 * Limits how many sessions may wait, and how many of one bucket.
 *
 * QUOTA1 While other buckets wait, a bucket gets no session beyond its share.
 * QUOTA2 A bucket that was alone may have taken more than its share. That excess does not count against others: they
 *   are admitted as if the bucket had only its share. So no bucket keeps the others out, and at most twice
 *   `maxSessions` wait.
 * QUOTA3 The shared bucket of callers without a name has no limit of its own. It is refused when all places are taken.
 *   QUOTA2 applies to it, too.
 * Cost: O(1); O(buckets) for a new session when all places are taken.
 */
class SessionQuota {
  readonly #pending = new SmallMap<string, number>();
  #total = 0;

  /** Sessions that wait. */
  get total(): number {
    return this.#total;
  }

  /** A session of this bucket starts to wait. */
  add(bucket: string): void {
    this.#total++;
    this.#pending.set(bucket, (this.#pending.get(bucket) ?? 0) + 1);
  }

  remove(bucket: string): void {
    this.#total--;
    const left = (this.#pending.get(bucket) ?? 1) - 1;
    if (left === 0) this.#pending.delete(bucket);
    else this.#pending.set(bucket, left);
  }

  admits(bucket: string, { maxSessions, maxSessionsPerBucket }: SessionLimits): boolean {
    const own = this.#pending.get(bucket) ?? 0;
    const isBeyondShare = own >= maxSessionsPerBucket;
    if (isBeyondShare && bucket !== SHARED_BUCKET && this.#total > own) return false;
    if (this.#total < maxSessions) return true;
    return !isBeyondShare && this.#withinShares(maxSessionsPerBucket) < maxSessions;
  }

  #withinShares(share: number): number {
    let sum = 0;
    for (const count of this.#pending.values()) sum += Math.min(count, share);
    return sum;
  }
}

/**
 * How fast a queue moves: the average time between two steps, as an EWMA. Only time during which a session waits
 * counts. The pause before a rush does not show how fast the queue moves.
 */
export class DrainMeter {
  #lastAt: number | undefined;
  #intervalMs: number | undefined;

  /** Undefined until two steps happened while a session waited. */
  get intervalMs(): number | undefined {
    return this.#intervalMs;
  }

  /** One waiter left the queue. */
  step(now: number): void {
    if (this.#lastAt !== undefined) {
      const sampleMs = now - this.#lastAt;
      this.#intervalMs =
        this.#intervalMs === undefined ? sampleMs : OLD_SHARE * this.#intervalMs + (1 - OLD_SHARE) * sampleMs;
    }
    this.#lastAt = now;
  }

  /** No session waits. The time until the next step does not count. */
  rest(): void {
    this.#lastAt = undefined;
  }
}

const OLD_SHARE = 0.8;
