/**
 * Slots for a media server. Uploads and chunks each have a limit for all users and a limit for each user, calculated
 * from the memory. An optional governor lowers the limits while the memory in use is high.
 *
 * MEDIA1  The slots handed out never exceed the current limit, and those of one user never exceed the limit per user.
 * MEDIA2  The governor moves the limits between the minimum (2 uploads, 4 chunks) and the result of `memoryLimits`.
 *     Holders keep their slots, so after a decrease the number in use goes down as holders release.
 */
import { realClock } from "../clock.ts";
import type { SemaphoreEvent } from "../events.ts";
import { callForeign } from "../foreign-call.ts";
import { anyObject, callback, check, isObject, objectWith, type Rules } from "../options.ts";
import { Problems } from "../problems.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { BYTES_PER_GB } from "./detect-memory.ts";
import {
  Governor,
  type GovernorOptions,
  type GovernorSettings,
  type GovernorState,
  type Pressure,
  readGovernor,
} from "./governor.ts";
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

/**
 * The log record that reports the calculated limits once. Existing dashboards of such servers use these field names.
 */
export interface LimitsRecord {
  /** `availableGb`: the available memory, in GB. */
  readonly available_memory_gb: number;
  /** `usableGb`: the memory that is not reserved, in GB. */
  readonly usable_memory_gb: number;
  /** `globalUploads`. */
  readonly global_upload_limit: number;
  /** `globalChunks`. */
  readonly global_chunk_limit: number;
  /** `perUserUploads`. */
  readonly per_user_upload_limit: number;
  /** `perUserChunks`. */
  readonly per_user_chunk_limit: number;
  /** `memoryBased`: whether the limits are calculated from the memory. */
  readonly memory_based_limits: boolean;
  /** Always the same text. */
  readonly message: "dynamic concurrency limits calculated";
}

/** A structured logger, such as pino. */
export interface RecordLogger {
  /** Called once with the calculated limits. */
  info(record: LimitsRecord): void;
}

/** The event of a change of the limits or of the pressure. */
export interface GovernorEvent {
  /** Distinguishes this event from a `SemaphoreEvent`. */
  readonly type: "governed";
  /** When it happened, in milliseconds of the clock. */
  readonly at: number;
  /** The sample that led to the event. */
  readonly governor: GovernorState;
  /** The limits before. */
  readonly from: SlotLimits;
  /** The limits now. */
  readonly to: SlotLimits;
}

/** The events that `onEvent` of `MediaSlots` receives. */
export type MediaEvent = SemaphoreEvent | GovernorEvent;

/** Options of `MediaSlots`. `mediaConfigFromEnv` reads most of them from the environment. */
export type MediaSlotsConfig = MediaConfig &
  Omit<TransferPoolOptions, "onEvent"> & {
    /** Lowers the limits while memory is short. `{}` uses the defaults. @defaultValue no governor */
    governor?: GovernorOptions | undefined;
    /** Receives one record when the slots are created. @defaultValue none */
    logger?: RecordLogger | undefined;
    /**
     * Called with every event of both pools (named "uploads" and "chunks") and of the governor. Errors that it throws
     * are ignored.
     * @defaultValue none
     */
    onEvent?: ((event: MediaEvent) => void) | undefined;
    /** Measures the memory in use, for the governor. @defaultValue this process */
    probe?: MemoryProbe | undefined;
  };

/** What `MediaSlots.config()` returns. */
export interface MediaState {
  /** The calculated limits. They are the upper bounds of `current`. */
  readonly limits: MediaLimits;
  /** The limits that apply now. The governor may have lowered them. */
  readonly current: SlotLimits;
  /** The settings with all defaults. */
  readonly settings: MediaSettings;
  /** Where each setting and each limit comes from. */
  readonly sources: Record<keyof MediaSettings, SettingSource> & Record<keyof SlotLimits, LimitSource>;
  /** The slots in use and the waiters, for uploads and for chunks. */
  readonly use: { readonly uploads: TierUse; readonly chunks: TierUse };
  /** The state of the governor; `undefined` without one. */
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
 * Slots for uploads and chunks of a media server, with limits for all users and for each user. The limits are
 * calculated from the memory. A governor can lower them while memory is short.
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

  constructor(options: MediaSlotsConfig) {
    const config = readConfig(options);
    const names = Object.keys(POOL_RULES) as (keyof typeof POOL_RULES)[];
    const ofPools: TransferPoolOptions = Object.fromEntries(names.map((name) => [name, config[name]]));
    const limits = limitsOf(resolveSettings(config));
    const { globalUploads, globalChunks, perUserUploads, perUserChunks } = limits;
    this.#config = config;
    this.#limits = limits;
    const uploads = { ...UPLOADS, max: globalUploads, maxPerUser: perUserUploads };
    const chunks = { ...CHUNKS, max: globalChunks, maxPerUser: perUserChunks };
    this.#uploads = new MediaTier("uploads", uploads, ofPools);
    this.#chunks = new MediaTier("chunks", chunks, ofPools);
    this.#governor = config.governor && this.#governed(config.governor, limits.availableGb * BYTES_PER_GB);
    callForeign(() => config.logger?.info(recordOf(limits)));
  }

  /** Waits for the user's turn, then for an upload slot; `signal` and `timeoutMs` cover both. */
  acquireUpload(user: string, options?: TransferOptions): Promise<Slot> {
    return this.#uploads.pool.acquire(user, options);
  }

  /** Returns an upload slot, or `undefined` if none is free or others wait for one. */
  tryAcquireUpload(user: string): Slot | undefined {
    return this.#uploads.pool.tryAcquire(user);
  }

  /** Runs the work while holding an upload slot. */
  runUpload<T>(user: string, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#uploads.pool.run(user, work, options);
  }

  /** Like `acquireUpload`, for a chunk. */
  acquireChunk(user: string, options?: TransferOptions): Promise<Slot> {
    return this.#chunks.pool.acquire(user, options);
  }

  /** Like `tryAcquireUpload`, for a chunk. */
  tryAcquireChunk(user: string): Slot | undefined {
    return this.#chunks.pool.tryAcquire(user);
  }

  /** Like `runUpload`, for a chunk. */
  runChunk<T>(user: string, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    return this.#chunks.pool.run(user, work, options);
  }

  /**
   * Removes users that have been idle for `idleMs` (default: `idleMs` of the config), and returns how many it removed
   * from uploads and chunks together.
   */
  sweep(idleMs?: number): number {
    return this.#uploads.pool.sweep(idleMs) + this.#chunks.pool.sweep(idleMs);
  }

  /** Returns the limits, where they come from, and what is in use. */
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

  /** Rejects waiters and later callers with `ClosedError`. Holders can still release. A second call does nothing. */
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

  #governed(settings: GovernorSettings, limitBytes: number): Governor {
    const { clock = realClock, probe = hostMemory } = this.#config;
    const onSample = (state: GovernorState, before: Pressure): void => this.#adapt(state, before);
    return new Governor(settings, { clock, limitBytes, rss: () => probe.rss(), onSample });
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

function readConfig(options: MediaSlotsConfig): MediaSlotsConfig & { governor: GovernorSettings | undefined } {
  check("config", anyObject, options);
  const problems = new Problems();
  const config = problems.readAll(options, RULES);
  expectMemory(config, problems);
  const governor = isObject(config.governor) ? readGovernor(config.governor, problems) : undefined;
  if (governor) expectSight(config, problems);
  problems.throwIfAny();
  return { ...config, governor };
}

/** Refuses a governor that cannot read the memory: it would look as if the memory were never short. */
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
