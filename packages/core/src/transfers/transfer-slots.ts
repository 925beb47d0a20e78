/**
 * Slots for a client that exchanges files with many others: a limit of downloads, a limit of uploads, and a limit of so
 * many uploads for each user (one, where the protocol wants it so).
 *
 * TRANSFER1  Never more than `maxUploads` uploads, `maxDownloads` downloads and `uploadsPerUser` uploads of one user, swept or
 *     not.
 * TRANSFER2  An upload waits for its user's turn first and for a global slot then: a user's backlog holds no global slot.
 * TRANSFER3  A wait that fails in either stage, for whatever reason, leaves nothing taken in the other.
 * TRANSFER4  Only the slot that was handed out releases it, and only once: no caller frees another's.
 *
 * All of it is `SlotPool`'s doing; here it gets the names of the trade.
 */

import { integerFrom, type Rules } from "../options.ts";
import { Problems } from "../problems.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { POOL_RULES, type TransferOptions, TransferPool, type TransferPoolOptions } from "./transfer-pool.ts";

/** Options of `TransferSlots`. */
export interface TransferSlotsOptions extends TransferPoolOptions {
  /** Downloads at a time; 0 for no limit. @defaultValue 10 */
  maxDownloads?: number | undefined;
  /** Uploads at a time, of all users; 0 for no limit. @defaultValue 10 */
  maxUploads?: number | undefined;
  /** Uploads at a time to each user; 0 for no limit. @defaultValue 1 */
  uploadsPerUser?: number | undefined;
}

/** What `TransferSlots.stats()` returns. */
export interface TransferStats {
  readonly downloadsActive: number;
  /** As configured: 0 if unlimited. */
  readonly downloadsMax: number;
  readonly uploadsActive: number;
  /** As configured: 0 if unlimited. */
  readonly uploadsMax: number;
  /** How many users are kept, idle ones included. */
  readonly userSlots: number;
}

const RULES: Rules<TransferSlotsOptions> = {
  ...POOL_RULES,
  maxDownloads: integerFrom(0),
  maxUploads: integerFrom(0),
  uploadsPerUser: integerFrom(0),
};

const DEFAULTS = { maxDownloads: 10, maxUploads: 10, uploadsPerUser: 1 } satisfies TransferSlotsOptions;

/**
 * Slots for a client that exchanges files with many users: limits for downloads, for uploads, and for the uploads of
 * each user.
 *
 * @throws {RangeError | TypeError} if an option is unknown or out of range.
 * @example
 * ```ts
 * import { TransferSlots } from "slotkeeper/transfers";
 *
 * const transfers = new TransferSlots({ maxUploads: 10, uploadsPerUser: 1 });
 * await transfers.runUpload("ann", () => console.log("one upload at a time for ann"));
 * await transfers.runDownload(() => console.log("downloading"), { timeoutMs: 5_000 });
 * transfers.close();
 * ```
 */
export class TransferSlots {
  readonly #downloads: TransferPool;
  readonly #uploads: TransferPool;

  constructor(options: TransferSlotsOptions = {}) {
    const problems = new Problems();
    problems.expectAll(options, RULES);
    problems.throwIfAny();
    const {
      maxDownloads = DEFAULTS.maxDownloads,
      maxUploads = DEFAULTS.maxUploads,
      uploadsPerUser = DEFAULTS.uploadsPerUser,
      ...rest
    } = options;
    this.#downloads = new TransferPool({ ...rest, name: "downloads", max: maxDownloads });
    this.#uploads = new TransferPool({ ...rest, name: "uploads", max: maxUploads, maxPerKey: uploadsPerUser });
  }

  /** Waits for a download slot. */
  acquireDownload(options?: TransferOptions): Promise<Slot> {
    return this.#downloads.acquire(undefined, options);
  }

  /** A download slot now, or `undefined`. */
  tryAcquireDownload(): Slot | undefined {
    return this.#downloads.tryAcquire();
  }

  /** Does the work while holding a download slot. */
  runDownload<T>(work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#downloads.run(undefined, work, options);
  }

  /** Waits for the user's turn, then for an upload slot; `signal` and `timeoutMs` cover both. */
  acquireUpload(user: string, options?: TransferOptions): Promise<Slot> {
    return this.#uploads.acquire(user, options);
  }

  /** An upload slot now, or `undefined`: also while others wait for the same. */
  tryAcquireUpload(user: string): Slot | undefined {
    return this.#uploads.tryAcquire(user);
  }

  /** Does the work while holding an upload slot. */
  runUpload<T>(user: string, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#uploads.run(user, work, options);
  }

  /** Transfers under way, limits, and how many users are kept. */
  stats(): TransferStats {
    const [downloads, uploads] = [this.#downloads.stats(), this.#uploads.stats()];
    return {
      downloadsActive: downloads.inUse,
      downloadsMax: configured(downloads.max),
      uploadsActive: uploads.inUse,
      uploadsMax: configured(uploads.max),
      userSlots: uploads.keys,
    };
  }

  /** Drops the users that have been idle for `idleMs` (default: that of the options); says how many. */
  sweep(idleMs?: number): number {
    return this.#uploads.sweep(idleMs);
  }

  /** Waiters and later callers get a `ClosedError`; holders may still release. Idempotent. */
  close(): void {
    this.#downloads.close();
    this.#uploads.close();
  }
}

function configured(max: number): number {
  return max === Infinity ? 0 : max;
}
