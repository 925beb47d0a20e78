import type { Clock } from "../clock.ts";
import { abortSignal, clockRule, integerFrom, numberFrom, positiveUpTo, type Rule, type Rules } from "../options.ts";
import { Problems } from "../problems.ts";
import { MAX_CELLS, type Sizes } from "./memory.ts";

/** Options of `SharedSemaphore.create`. */
export interface SharedSemaphoreOptions {
  /** The size of the table of holders, and so the limit of `resize`. @defaultValue 1,024, or `slots` if that is more */
  maxHolders?: number;
  /**
   * How long a slot may be held, in milliseconds. After that, a waiting thread may take it back.
   * @defaultValue no limit
   */
  ttlMs?: number;
  /** The largest number of waiters, in all threads together. @defaultValue 16,384 */
  maxWaiters?: number;
  /** The clock for the timeouts and ttls of this thread. @defaultValue the monotonic clock of the process */
  clock?: Clock;
}

/** Options of `SharedSemaphore.attach`. */
export interface AttachOptions {
  /** The id of this thread for `reap`. @defaultValue Node's `threadId`; in a browser, a generated number */
  threadId?: number;
  /** The clock for the timeouts and ttls of this thread. @defaultValue the monotonic clock of the process */
  clock?: Clock;
}

/** Options of `SharedSemaphore.acquire` and `run`. */
export interface SharedAcquireOptions {
  /** Ends the wait: the promise rejects with the signal's own reason. */
  signal?: AbortSignal;
  /** Longest wait, in milliseconds; 0 does not wait. @defaultValue no limit */
  timeoutMs?: number;
}

const DEFAULTS = { maxHolders: 1024, maxWaiters: 16_384 } as const satisfies SharedSemaphoreOptions;
/** Deadlines are 32-bit milliseconds, compared by their difference. */
export const TTL: Rule = positiveUpTo(2 ** 30);
export const THREAD_ID: Rule = integerFrom(0, 2 ** 31 - 2);
const SIZE_RULES: Rules<SharedSemaphoreOptions> = {
  maxHolders: integerFrom(1, MAX_CELLS),
  ttlMs: TTL,
  maxWaiters: integerFrom(0, 2 ** 20),
  clock: clockRule,
};
export const ATTACH_RULES: Rules<AttachOptions> = { threadId: THREAD_ID, clock: clockRule };
export const TIMEOUT: Rule = numberFrom(0);
export const ACQUIRE_RULES: Rules<SharedAcquireOptions> = { signal: abortSignal, timeoutMs: TIMEOUT };

export function resolveSizes(slots: number, options: SharedSemaphoreOptions): Sizes & Pick<AttachOptions, "clock"> {
  const problems = new Problems();
  const given = problems.readAll(options, SIZE_RULES);
  const maxHolders = given.maxHolders ?? Math.max(DEFAULTS.maxHolders, Number.isSafeInteger(slots) ? slots : 0);
  problems.expect("slots", integerFrom(1, Math.min(maxHolders || MAX_CELLS, MAX_CELLS)), slots);
  problems.throwIfAny();
  const { maxWaiters = DEFAULTS.maxWaiters, ttlMs = 0, ...clock } = given;
  return { ...clock, slots, maxHolders, maxWaiters, ttlMs: Math.ceil(ttlMs) };
}
