/**
 * How many media transfers the memory allows.
 *
 *   usable MB = available GB × 1024 × (100 − reservation) / 100
 *   operation = max(max(chunk, direct upload) + 10, 20) MB          a direct upload counts as one operation, too
 *   ops       = floor(usable / operation)
 *   uploads   = floor(ops / 8), within 2…50        chunks   = 2 × floor(ops / 8), within 4…100
 *   per user  = floor(global / 10), at least 2 (uploads) or 3 (chunks), at most the global limit
 *
 * MEDIALIMIT1  Less memory, a larger reservation or a larger operation never gives more slots: each step is monotonic, in
 *     floating point as on paper.
 * MEDIALIMIT2  1 ≤ per user ≤ global, always.
 *
 * It is the one rule that yields all three worked examples of the original system exactly (2 GB and 50 %: 6 and 12;
 * 8 GB and 40 %: 30 and 60; 16 GB and 30 %: 50 and 100). It promises nothing about memory that is used by others: see
 * the governor.
 */
import { Problems } from "../problems.ts";
import { CONFIG_RULES, expectMemory, type MediaConfig, type MediaSettings, resolveSettings } from "./media-config.ts";

/** How many at a time. */
export interface SlotLimits {
  readonly globalUploads: number;
  readonly globalChunks: number;
  readonly perUserUploads: number;
  readonly perUserChunks: number;
}

/** What `memoryLimits` returns: the limits, and the memory that they follow from. */
export interface MediaLimits extends SlotLimits {
  readonly availableGb: number;
  /** Of it, what is not reserved. */
  readonly usableGb: number;
  /** Whether the limits follow from the memory; else they are the fallbacks. */
  readonly memoryBased: boolean;
}

/** Why a limit is what it is: the sum over the memory, the least or the most that there may be, or the fallback. */
export type LimitSource = "memory" | "minimum" | "maximum" | "fallback";

/** What holds for one kind of slot, whatever the memory. */
export const UPLOADS = { least: 2, most: 50, leastPerUser: 2, perEightOperations: 1 } as const;
export const CHUNKS = { least: 4, most: 100, leastPerUser: 3, perEightOperations: 2 } as const;

const MB_PER_GB = 1024;
const OVERHEAD_MB = 10;
const LEAST_OPERATION_MB = 20;
/** A user gets a tenth, so that ten users can work side by side. */
const USERS = 10;

/**
 * Pure: the memory is given.
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
  problems.expectAll(config, CONFIG_RULES);
  expectMemory(config, problems);
  problems.throwIfAny();
  return limitsOf(resolveSettings(config));
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
