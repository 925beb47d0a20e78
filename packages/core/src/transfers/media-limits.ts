/**
 * Calculates how many media transfers the memory allows.
 *
 *   usable MB = available GB × 1024 × (100 − reservation) / 100
 *   operation = max(max(chunk, direct upload) + 10, 20) MB          a direct upload also counts as one operation
 *   ops       = floor(usable / operation)
 *   uploads   = floor(ops / 8), within 2…50        chunks   = 2 × floor(ops / 8), within 4…100
 *   per user  = floor(global / 10), at least 2 (uploads) or 3 (chunks), at most the global limit
 *
 * MEDIALIMIT1  Less memory, a larger reservation or a larger operation never gives more slots. Each step is monotonic,
 *     also in floating point.
 * MEDIALIMIT2  1 ≤ per user ≤ global at all times.
 *
 * This formula yields all three worked examples of the original system exactly (2 GB and 50 %: 6 and 12; 8 GB and 40 %:
 * 30 and 60; 16 GB and 30 %: 50 and 100). It does not know how much memory other code uses; the governor handles that.
 */
import { Problems } from "../problems.ts";
import { CONFIG_RULES, expectMemory, type MediaConfig, type MediaSettings, resolveSettings } from "./media-config.ts";

/** The limits: how many transfers can run at a time. */
export interface SlotLimits {
  /** Uploads of all users together. */
  readonly globalUploads: number;
  /** Chunks of all users together. */
  readonly globalChunks: number;
  /** Uploads of each user. */
  readonly perUserUploads: number;
  /** Chunks of each user. */
  readonly perUserChunks: number;
}

/** The result of `memoryLimits`: the limits, and the memory from which they are calculated. */
export interface MediaLimits extends SlotLimits {
  /** The available memory, in GB. */
  readonly availableGb: number;
  /** The part of `availableGb` that is not reserved, in GB. */
  readonly usableGb: number;
  /** Whether the limits are calculated from the memory. If not, they are the fallbacks. */
  readonly memoryBased: boolean;
}

/**
 * Why a limit has its value: calculated from the memory, raised to the minimum, cut to the maximum, or the fallback.
 */
export type LimitSource = "memory" | "minimum" | "maximum" | "fallback";

/** The bounds of each kind of slot. They do not depend on the memory. */
export const UPLOADS = { least: 2, most: 50, leastPerUser: 2, perEightOperations: 1 } as const;
export const CHUNKS = { least: 4, most: 100, leastPerUser: 3, perEightOperations: 2 } as const;

const MB_PER_GB = 1024;
const OVERHEAD_MB = 10;
const LEAST_OPERATION_MB = 20;
/** A user gets a tenth, so that ten users can work at the same time. */
const USERS = 10;

/**
 * Calculates the limits from a config. It reads nothing from the host: the memory is part of the config.
 *
 * @throws {RangeError | TypeError} if the config is malformed, or has no memory.
 * @example
 * ```ts
 * import { memoryLimits } from "slotkeeper/transfers";
 *
 * const { globalUploads, globalChunks } = memoryLimits({ availableGb: 8 });
 * console.log(globalUploads, globalChunks); // 30 60
 * ```
 */
export function memoryLimits(config: MediaConfig): MediaLimits {
  const problems = new Problems();
  const given = problems.readAll(config, CONFIG_RULES);
  expectMemory(given, problems);
  problems.throwIfAny();
  return limitsOf(resolveSettings(given));
}

export function limitsOf(settings: MediaSettings): MediaLimits {
  const { memoryBased, availableGb, reservationPercent } = settings;
  const usableGb = (availableGb * (100 - reservationPercent)) / 100;
  const limits = memoryBased ? limitsWithin(usableGb, settings) : fallbackLimits(settings);
  return { ...limits, availableGb, usableGb, memoryBased };
}

/** Why each limit is what it is. */
export function limitSourcesOf(limits: MediaLimits): Record<keyof SlotLimits, LimitSource> {
  const source = (value: number, least: number, most: number): LimitSource => {
    if (!limits.memoryBased) return "fallback";
    if (value <= least) return "minimum";
    return value >= most ? "maximum" : "memory";
  };
  return {
    globalUploads: source(limits.globalUploads, UPLOADS.least, UPLOADS.most),
    globalChunks: source(limits.globalChunks, CHUNKS.least, CHUNKS.most),
    perUserUploads: source(limits.perUserUploads, UPLOADS.leastPerUser, UPLOADS.most / USERS),
    perUserChunks: source(limits.perUserChunks, CHUNKS.leastPerUser, CHUNKS.most / USERS),
  };
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

function limitsWithin(usableGb: number, { maxChunkMb, directUploadMb }: MediaSettings): SlotLimits {
  const operationMb = Math.max(Math.max(maxChunkMb, directUploadMb) + OVERHEAD_MB, LEAST_OPERATION_MB);
  const eighths = Math.floor(Math.floor((usableGb * MB_PER_GB) / operationMb) / 8);
  const globalUploads = clamp(UPLOADS.perEightOperations * eighths, UPLOADS.least, UPLOADS.most);
  const globalChunks = clamp(CHUNKS.perEightOperations * eighths, CHUNKS.least, CHUNKS.most);
  return {
    globalUploads,
    globalChunks,
    perUserUploads: perUser(globalUploads, UPLOADS.leastPerUser),
    perUserChunks: perUser(globalChunks, CHUNKS.leastPerUser),
  };
}

function perUser(global: number, least: number): number {
  return clamp(Math.floor(global / USERS), Math.min(least, global), global);
}

function fallbackLimits(settings: MediaSettings): SlotLimits {
  const { fallbackGlobalUploads, fallbackGlobalChunks, fallbackPerUserUploads, fallbackPerUserChunks } = settings;
  return {
    globalUploads: fallbackGlobalUploads,
    globalChunks: fallbackGlobalChunks,
    perUserUploads: Math.min(fallbackPerUserUploads, fallbackGlobalUploads),
    perUserChunks: Math.min(fallbackPerUserChunks, fallbackGlobalChunks),
  };
}
