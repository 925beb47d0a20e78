/**
 * Slots for a client that exchanges files with many users: a limit for downloads, a limit for uploads, and a limit for
 * the uploads of each user (1 if the protocol requires that).
 *
 * TRANSFER1  There are never more than `maxUploads` uploads, `maxDownloads` downloads, and `uploadsPerUser` uploads of
 *     one user. `sweep` does not change that.
 * TRANSFER2  An upload first waits for the turn of its user, then for a global slot. The backlog of one user therefore
 *     holds no global slot.
 * TRANSFER3  A wait that fails in either stage, for any reason, holds nothing in the other stage.
 * TRANSFER4  Only the slot itself can release it, and only once. No caller can free the slot of another caller.
 *
 * `SlotPool` does the work. This class adds the names that fit transfers.
 */

import { integerFrom, type Rules, readOptions } from "../options.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { POOL_RULES, type TransferOptions, TransferPool, type TransferPoolOptions } from "./transfer-pool.ts";

/** Options of `TransferSlots`. */
export interface TransferSlotsOptions extends TransferPoolOptions {
  /** Downloads at a time; 0 for no limit. @defaultValue 10 */
  maxDownloads?: number | undefined;
  /** Uploads at a time, of all users; 0 for no limit. @defaultValue 10 */
  maxUploads?: number | undefined;
  /** Uploads at a time for each user; 0 for no limit. @defaultValue 1 */
  uploadsPerUser?: number | undefined;
}

/** What `TransferSlots.stats()` returns. */
export interface TransferStats {
  /** The number of downloads that hold a slot. */
  readonly downloadsActive: number;
  /** The `maxDownloads` option; 0 if unlimited. */
  readonly downloadsMax: number;
  /** The number of uploads that hold a slot. */
  readonly uploadsActive: number;
  /** The `maxUploads` option; 0 if unlimited. */
  readonly uploadsMax: number;
  /** The number of users in memory, including idle ones. */
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
    const given = { ...DEFAULTS, ...readOptions(options, RULES) } as typeof DEFAULTS & TransferPoolOptions;
    const { maxDownloads, maxUploads, uploadsPerUser, ...rest } = given;
    this.#downloads = new TransferPool({ ...rest, name: "downloads", max: maxDownloads });
    this.#uploads = new TransferPool({ ...rest, name: "uploads", max: maxUploads, maxPerKey: uploadsPerUser });
  }

  /** Waits for a download slot. */
  acquireDownload(options?: TransferOptions): Promise<Slot> {
    return this.#downloads.acquire(undefined, options);
  }

  /** Returns a download slot, or `undefined` if none is free or others wait for one. */
  tryAcquireDownload(): Slot | undefined {
    return this.#downloads.tryAcquire();
  }

  /** Runs the work while holding a download slot. */
  runDownload<T>(work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#downloads.run(undefined, work, options);
  }

  /** Waits for the user's turn, then for an upload slot; `signal` and `timeoutMs` cover both. */
  acquireUpload(user: string, options?: TransferOptions): Promise<Slot> {
    return this.#uploads.acquire(user, options);
  }

  /** Returns an upload slot, or `undefined` if none is free or others wait for one. */
  tryAcquireUpload(user: string): Slot | undefined {
    return this.#uploads.tryAcquire(user);
  }

  /** Runs the work while holding an upload slot. */
  runUpload<T>(user: string, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#uploads.run(user, work, options);
  }

  /** Returns the running transfers, the limits, and the number of users in memory. */
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

  /** Removes users that have been idle for `idleMs` (default: `idleMs` of the options), and returns how many. */
  sweep(idleMs?: number): number {
    return this.#uploads.sweep(idleMs);
  }

  /** Rejects waiters and later callers with `ClosedError`. Holders can still release. A second call does nothing. */
  close(): void {
    this.#downloads.close();
    this.#uploads.close();
  }
}

function configured(max: number): number {
  return max === Infinity ? 0 : max;
}
