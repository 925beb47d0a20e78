import { SHARED_BUCKET } from "@slotkeeper/protocol";
import { SmallMap } from "../small-map.ts";

export interface SessionLimits {
  /** `globalMaxWaiters`; infinite: no limit. */
  readonly maxSessions: number;
  /** What one bucket may have of them while others wait. */
  readonly maxSessionsPerBucket: number;
}

/**
 * Who may begin a session when many wait.
 *
 * QUOTA1 while others wait, a bucket gets no session beyond its share. QUOTA2 what a bucket took beyond its share while it was
 * alone does not count against others: they are admitted as if it had only its share. So no bucket keeps the others out,
 * and at most twice `maxSessions` wait. QUOTA3 the shared bucket of callers without a name has no limit of its own: it is
 * refused when all is full; QUOTA2 holds for it, too.
 * Cost: O(1); O(buckets) for a newcomer when all is full.
 */
export class SessionQuota {
  readonly #pending = new SmallMap<string, number>();
  #total = 0;

  /** Sessions that wait. */
  get total(): number {
    return this.#total;
  }

  /** A session of this bucket waits from now on. */
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
