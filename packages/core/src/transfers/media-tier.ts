/** One kind of media slot, uploads or chunks: its pool and its current limits. */
import { GovernedLimit, type Pressure } from "./governed-limit.ts";
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
  readonly #limit: GovernedLimit;
  readonly #maxPerUser: number;
  readonly #leastPerUser: number;

  constructor(name: string, { max, maxPerUser, least, leastPerUser }: TierLimits, options: TransferPoolOptions) {
    this.pool = new TransferPool({ ...options, name, max, maxPerKey: maxPerUser });
    // A step is half the minimum, so uploads and chunks keep their proportion.
    this.#limit = new GovernedLimit(least, max, least / 2);
    this.#maxPerUser = maxPerUser;
    this.#leastPerUser = leastPerUser;
  }

  get limit(): number {
    return this.#limit.current;
  }

  /**
   * Follows the global limit in proportion. Otherwise one user could take all of the remaining slots, or fill their
   * queue.
   */
  get perUser(): number {
    const proportional = Math.floor((this.#maxPerUser * this.limit) / this.#limit.most);
    return Math.min(clamp(proportional, this.#leastPerUser, this.limit), this.#maxPerUser);
  }

  get use(): TierUse {
    const { inUse, waiting, keys } = this.pool.stats();
    return { inUse, waiting, users: keys };
  }

  /** Returns whether the limits changed. Holders keep their slots. */
  adapt(pressure: Pressure): boolean {
    const hasChanged = this.#limit.adapt(pressure);
    if (hasChanged) this.pool.resize({ max: this.limit, maxPerKey: this.perUser });
    return hasChanged;
  }
}
