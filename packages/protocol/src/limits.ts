/** Lengths, bounds and prefixes every part of the service agrees on. */
export const LIMITS = {
  hostnameLength: 255,
  bucketLength: 255,
  hostnameHashLength: 128,
  requestIdLength: 64,
  /** A signed token carries names of up to the lengths above; four bytes a character and base64 on top. */
  tokenLength: 8192,
  bodyBytes: 64 * 1024,
  /** The longest time that a caller may request: a day. */
  durationMs: 86_400_000,
  slots: 1_000_000,
  /** Budgets of one host. */
  budgets: 16,
  /** Keys of one host, and the length of their values. */
  keys: 4,
  keyValueLength: 128,
  /** Values of one key with limits of their own. */
  keyValues: 100,
  /** Classes of one host, and the length of their names. */
  classes: 16,
  classLength: 32,
} as const;

/** Hosts with this prefix are named semaphores: the first live user fixes the capacity; per-bucket limits do not apply. */
export const SEMAPHORE_PREFIX = "sem:";

/** The bucket of callers that name none: shared by all of them, without per-bucket limit or cooldown. */
export const SHARED_BUCKET = "";

/** The prefix of all paths of the API. */
export const API_PREFIX = "/api/v0";
