/** One kind of media slot, uploads or chunks: its pool, and the limits it has now. */
import { GovernedLimit, type Pressure } from "./governed-limit.ts";
import { clamp } from "./media-limits.ts";
import { TransferPool, type TransferPoolOptions } from "./transfer-pool.ts";

interface TierLimits {
  readonly max: number;
  readonly maxPerUser: number;
  /** What the governor leaves, whatever the pressure. */
  readonly least: number;
  readonly leastPerUser: number;
}

/** How many slots of one kind are in use. */
export interface TierUse {
  readonly inUse: number;
  readonly waiting: number;
  /** How many users are kept, idle ones included. */
  readonly users: number;
}

export class MediaTier {
  readonly pool: TransferPool;
  readonly #limit: GovernedLimit;
  readonly #maxPerUser: number;
  readonly #leastPerUser: number;

  constructor(name: string, { max, maxPerUser, least, leastPerUser }: TierLimits, options: TransferPoolOptions) {
    this.pool = new TransferPool({ ...options, name, max, maxPerKey: maxPerUser });
    // Steps of half the least: uploads and chunks come up in the proportion that they have.
    this.#limit = new GovernedLimit(least, max, least / 2);
    this.#maxPerUser = maxPerUser;
    this.#leastPerUser = leastPerUser;
  }

  get limit(): number {
    return this.#limit.current;
  }

  /** In proportion: with fewer slots in all, one user must not be left with all of them, nor fill the queue for them. */
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
