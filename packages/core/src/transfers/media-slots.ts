/**
 * Slots for a media server: uploads and chunks, each with a limit in all and a limit per user, both from the memory
 * there is; and a governor, if wanted, that lowers them while the memory in use is high.
 *
 * MEDIA1  Never more slots handed out than the limit of the moment, never more of one user than the limit per user.
 * MEDIA2  The governor moves the limits between the least (2 uploads, 4 chunks) and what `memoryLimits` says; no caller that
 *     holds a slot is evicted, so after a fall the number in use comes down as holders release.
 */
import { realClock } from "../clock.ts";
import type { SemaphoreEvent } from "../events.ts";
import { anyObject, callback, isObject, objectWith, type Rules } from "../options.ts";
import { Problems } from "../problems.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { BYTES_PER_GB } from "./detect-memory.ts";
import { callForeign } from "./foreign-call.ts";
import type { Pressure } from "./governed-limit.ts";
import { expectGovernor, Governor, type GovernorOptions, type GovernorState } from "./governor.ts";
import {
  CONFIG_RULES,
  expectMemory,
  type MediaConfig,
  type MediaSettings,
  resolveSettings,
  type SettingSource,
  sourcesOf,
} from "./media-config.ts";
import {
  CHUNKS,
  type LimitSource,
  limitSourcesOf,
  limitsOf,
  type MediaLimits,
  type SlotLimits,
  UPLOADS,
} from "./media-limits.ts";
import { MediaTier, type TierUse } from "./media-tier.ts";
import { hostMemory, type MemoryProbe } from "./memory-probe.ts";
import { POOL_RULES, type TransferOptions, type TransferPoolOptions } from "./transfer-pool.ts";

/** The log record, written once, of what was calculated. The names are those that the dashboards of such servers know. */
export interface LimitsRecord {
  readonly available_memory_gb: number;
  readonly usable_memory_gb: number;
  readonly global_upload_limit: number;
  readonly global_chunk_limit: number;
  readonly per_user_upload_limit: number;
  readonly per_user_chunk_limit: number;
  readonly memory_based_limits: boolean;
  readonly message: "dynamic concurrency limits calculated";
}

/** Any structured logger: the level is the method. */
export interface RecordLogger {
  info(record: LimitsRecord): void;
}

/** The governor changed the limits, or the pressure is another. */
export interface GovernorEvent {
  readonly type: "governed";
  readonly at: number;
  readonly governor: GovernorState;
  readonly from: SlotLimits;
  readonly to: SlotLimits;
}

/** What `onEvent` of `MediaSlots` receives. */
export type MediaEvent = SemaphoreEvent | GovernorEvent;

/** Options of `MediaSlots`. `mediaConfigFromEnv` reads most of them from the environment. */
export type MediaSlotsConfig = MediaConfig &
  Omit<TransferPoolOptions, "onEvent"> & {
    /** Lowers the limits while memory is short. Give `{}` for its defaults. @defaultValue no governor */
    governor?: GovernorOptions | undefined;
    /** Gets one record, on construction. */
    logger?: RecordLogger | undefined;
    /** Of both pools (their names are "uploads" and "chunks") and of the governor. What it throws is ignored. */
    onEvent?: ((event: MediaEvent) => void) | undefined;
    /** Where the governor learns how much memory is in use. @defaultValue this process */
    probe?: MemoryProbe | undefined;
  };

/** What `MediaSlots.config()` returns. */
export interface MediaState {
  /** What was calculated: the most there may be. */
  readonly limits: MediaLimits;
  /** What holds now: less, if the governor says so. */
  readonly current: SlotLimits;
  readonly settings: MediaSettings;
  /** Where each setting and each limit comes from. */
  readonly sources: Record<keyof MediaSettings, SettingSource> & Record<keyof SlotLimits, LimitSource>;
  readonly use: { readonly uploads: TierUse; readonly chunks: TierUse };
  readonly governor: GovernorState | undefined;
}

const RULES: Rules<MediaSlotsConfig> = {
  ...CONFIG_RULES,
  ...POOL_RULES,
  governor: anyObject,
  logger: objectWith("info"),
  onEvent: callback,
  probe: objectWith("rss"),
};

/**
 * Slots for uploads and chunks of a media server, in all and for each user. The limits follow from the memory; a
 * governor may lower them while memory is short.
 *
 * @throws {RangeError | TypeError} if the config is malformed.
 * @example
 * ```ts
 * import { MediaSlots } from "slotkeeper/transfers";
 *
 * const media = new MediaSlots({ availableGb: 8, reservationPercent: 40, governor: {} });
 * await media.runUpload("ann", () => console.log("receiving a file"));
 * console.log(media.config().use.uploads.inUse); // 0
 * media.close();
 * ```
 */
export class MediaSlots {
  readonly #config: MediaSlotsConfig;
  readonly #limits: MediaLimits;
  readonly #uploads: MediaTier;
  readonly #chunks: MediaTier;
  readonly #governor: Governor | undefined;

  constructor(config: MediaSlotsConfig) {
    refuse(config);
    const { ttlMs, acquireTimeoutMs, abortOnExpiry, maxWaiters, clock, onEvent, idleMs, sweepEveryMs } = config;
    const options = { ttlMs, acquireTimeoutMs, abortOnExpiry, maxWaiters, clock, onEvent, idleMs, sweepEveryMs };
    const limits = limitsOf(resolveSettings(config));
    const { globalUploads, globalChunks, perUserUploads, perUserChunks } = limits;
    this.#config = { ...config };
    this.#limits = limits;
    const uploads = { ...UPLOADS, max: globalUploads, maxPerUser: perUserUploads };
    const chunks = { ...CHUNKS, max: globalChunks, maxPerUser: perUserChunks };
    this.#uploads = new MediaTier("uploads", uploads, options);
    this.#chunks = new MediaTier("chunks", chunks, options);
    this.#governor = config.governor && this.#governed(config.governor, limits.availableGb * BYTES_PER_GB);
    callForeign(() => config.logger?.info(recordOf(limits)));
  }

  /** Waits for the user's turn, then for an upload slot; `signal` and `timeoutMs` cover both. */
  acquireUpload(user: string, options?: TransferOptions): Promise<Slot> {
    return this.#uploads.pool.acquire(user, options);
  }

  /** An upload slot now, or `undefined`: also while others wait for the same. */
  tryAcquireUpload(user: string): Slot | undefined {
    return this.#uploads.pool.tryAcquire(user);
  }

  /** Does the work while holding an upload slot. */
  runUpload<T>(user: string, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#uploads.pool.run(user, work, options);
  }

  /** As `acquireUpload`, for a chunk. */
  acquireChunk(user: string, options?: TransferOptions): Promise<Slot> {
    return this.#chunks.pool.acquire(user, options);
  }

  /** As `tryAcquireUpload`, for a chunk. */
  tryAcquireChunk(user: string): Slot | undefined {
    return this.#chunks.pool.tryAcquire(user);
  }

  /** As `runUpload`, for a chunk. */
  runChunk<T>(user: string, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#chunks.pool.run(user, work, options);
  }

  /** Drops the users that have been idle for `idleMs` (default: that of the config); says how many, uploads and chunks. */
  sweep(idleMs?: number): number {
    return this.#uploads.pool.sweep(idleMs) + this.#chunks.pool.sweep(idleMs);
  }

  /** For the person on call: the limits, where they come from, and what is in use. */
  config(): MediaState {
    return {
      limits: this.#limits,
      current: this.#current,
      settings: resolveSettings(this.#config),
      sources: { ...sourcesOf(this.#config), ...limitSourcesOf(this.#limits) },
      use: { uploads: this.#uploads.use, chunks: this.#chunks.use },
      governor: this.#governor?.state,
    };
  }

  /** Waiters and later callers get a `ClosedError`; holders may still release. Idempotent. */
  close(): void {
    this.#governor?.stop();
    this.#uploads.pool.close();
    this.#chunks.pool.close();
  }

  get #current(): SlotLimits {
    return {
      globalUploads: this.#uploads.limit,
      globalChunks: this.#chunks.limit,
      perUserUploads: this.#uploads.perUser,
      perUserChunks: this.#chunks.perUser,
    };
  }

  #governed(options: GovernorOptions, limitBytes: number): Governor {
    const { clock = realClock, probe = hostMemory } = this.#config;
    const onSample = (state: GovernorState, before: Pressure): void => this.#adapt(state, before);
    return new Governor(options, { clock, limitBytes, rss: () => probe.rss(), onSample });
  }

  #adapt(governor: GovernorState, before: Pressure): void {
    const { pressure } = governor;
    const from = this.#current;
    const changes = [this.#uploads, this.#chunks].filter((tier) => tier.adapt(pressure));
    if (changes.length === 0 && pressure === before) return;
    const at = governor.sampledAt ?? 0;
    const event: GovernorEvent = { type: "governed", at, governor, from, to: this.#current };
    callForeign(() => this.#config.onEvent?.(event));
  }
}

function refuse(config: MediaSlotsConfig): void {
  const problems = new Problems();
  problems.expect("config", anyObject, config);
  problems.throwIfAny();
  problems.expectAll(config, RULES);
  expectMemory(config, problems);
  if (isObject(config.governor)) {
    expectGovernor(config.governor, problems);
    expectSight(config, problems);
  }
  problems.throwIfAny();
}

/** A governor that is blind from the start would look like one that finds nothing wrong. */
function expectSight({ availableGb, probe = hostMemory }: MediaSlotsConfig, problems: Problems): void {
  if (availableGb === undefined) problems.add("Expected `availableGb` to be given, for the `governor`", false);
  if (!objectWith("rss")("probe", probe) && probe.rss() === undefined) {
    problems.add("Expected a host or a `probe` that returns its resident memory, for the `governor`", false);
  }
}

function recordOf(limits: MediaLimits): LimitsRecord {
  return {
    available_memory_gb: limits.availableGb,
    usable_memory_gb: limits.usableGb,
    global_upload_limit: limits.globalUploads,
    global_chunk_limit: limits.globalChunks,
    per_user_upload_limit: limits.perUserUploads,
    per_user_chunk_limit: limits.perUserChunks,
    memory_based_limits: limits.memoryBased,
    message: "dynamic concurrency limits calculated",
  };
}
