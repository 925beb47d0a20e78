/** Lengths and prefixes every part of the service agrees on. */
export const LIMITS = {
  hostnameLength: 255,
  bucketLength: 255,
  hostnameHashLength: 128,
  requestIdLength: 64,
} as const;

/** Hosts named so are named semaphores: the first live user fixes their capacity, per-bucket limits do not apply. */
export const SEMAPHORE_PREFIX = "sem:";

/** The bucket of callers that name none: shared by all of them, without per-bucket limit or cooldown. */
export const SHARED_BUCKET = "";
