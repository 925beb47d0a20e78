/**
 * Layer 5: how many tries of a hot host may fail in one poll interval. Tries that were granted cost nothing, and a slot
 * known to be free is offered whatever was spent, so that the quota spares the store and never leaves a slot idle.
 */
export class ProbeQuota {
  #startedAt = Number.NEGATIVE_INFINITY;
  #failed = 0;

  /** `knownFree`: slots the store said are free. */
  left(limit: number, knownFree: number, now: number, intervalMs: number): number {
    if (now - this.#startedAt >= intervalMs) {
      this.#startedAt = now;
      this.#failed = 0;
    }
    return Math.max(limit - this.#failed, knownFree);
  }

  addFailed(count: number): void {
    this.#failed += count;
  }
}
