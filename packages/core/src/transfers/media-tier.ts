/**
 * One kind of media slot, uploads or chunks: its pool, and its limits, which follow the memory pressure. They decrease by a
 * factor and increase by steps, as in the congestion control of TCP. The fast decrease ends the pressure in a few steps. The
 * slow increase finds the level that the memory allows.
 *
 * GOVLIMIT1  least ≤ limit ≤ max at all times. If `max` is below `least`, the limit is always `max`.
 * GOVLIMIT2  High pressure halves the limit, rounded down. Low pressure adds one step. Otherwise the limit stays the
 *     same.
 */
import type { Pressure } from "./governor.ts";
import { clamp } from "./media-limits.ts";
import { TransferPool, type TransferPoolOptions } from "./transfer-pool.ts";

interface TierLimits {
  readonly max: number;
  readonly maxPerUser: number;
  /** The minimum that the governor never goes below. */
  readonly least: number;
  readonly leastPerUser: number;
}

/** The use of one kind of slot. */
export interface TierUse {
  /** The number of slots that are held. */
  readonly inUse: number;
  /** The number of waiters. */
  readonly waiting: number;
  /** The number of users in memory, including idle ones. */
  readonly users: number;
}

export class MediaTier {
  readonly pool: TransferPool;
  readonly #limits: TierLimits;
  #limit: number;

  constructor(name: string, limits: TierLimits, options: TransferPoolOptions) {
    const { max, maxPerUser } = limits;
    this.pool = new TransferPool({ ...options, name, max, maxPerKey: maxPerUser });
    this.#limits = limits;
    this.#limit = max;
  }

  get limit(): number {
    return this.#limit;
  }

  /**
   * Follows the global limit in proportion. Otherwise one user could take all of the remaining slots, or fill their
   * queue.
   */
  get perUser(): number {
    const { max, maxPerUser, leastPerUser } = this.#limits;
    const proportional = Math.floor((maxPerUser * this.#limit) / max);
    return Math.min(clamp(proportional, leastPerUser, this.#limit), maxPerUser);
  }

  get use(): TierUse {
    const { inUse, waiting, keys } = this.pool.stats();
    return { inUse, waiting, users: keys };
  }

  /** Returns whether the limits changed. Holders keep their slots. */
  adapt(pressure: Pressure): boolean {
    const before = this.#limit;
    const { least, max } = this.#limits;
    if (pressure === "high") this.#limit = Math.max(Math.min(least, max), Math.floor(before / 2));
    // A step is half the minimum, so uploads and chunks keep their proportion.
    if (pressure === "low") this.#limit = Math.min(max, before + least / 2);
    if (this.#limit === before) return false;
    this.pool.resize({ max: this.#limit, maxPerKey: this.perUser });
    return true;
  }
}
