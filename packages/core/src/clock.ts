/**
 * The source of time and timers of a semaphore. Pass one to run in virtual time, such as `FakeClock` of
 * `slotkeeper/testing`.
 *
 * @example
 * ```ts
 * import { type Clock, realClock, Semaphore } from "slotkeeper";
 *
 * const slowedDown: Clock = {
 *   now: () => realClock.now(),
 *   setTimer: (callback, delayMs) => realClock.setTimer(callback, delayMs * 2),
 *   clearTimer: (timer) => realClock.clearTimer(timer),
 * };
 * const db = new Semaphore(5, { clock: slowedDown, acquireTimeoutMs: 1_000 });
 * ```
 */
export interface Clock {
  /** Milliseconds since the epoch. Must not run backwards. */
  now(): number;
  /**
   * Calls `callback` once, after `delayMs` milliseconds. If timers of the host can keep a process alive, the handle should
   * have the methods `ref()` and `unref()`, as in Node. A handle without them works too.
   */
  setTimer(callback: () => void, delayMs: number): unknown;
  /** Cancels a timer that `setTimer` returned. Does nothing if it has fired, or for `undefined`. */
  clearTimer(timer: unknown): void;
}

/** Read only once: in Node the global is a getter, which can cost half as much as the clock itself (W7, W8). */
const host = performance;
const hostTimer = setTimeout;
export const origin = host.timeOrigin;

/**
 * Real time. It uses `performance` and not `Date`: a lease must not last an hour longer because the wall clock was set
 * back. It adds the time origin, so its times are comparable with `Date.now()`. If fake timers of a test runner have
 * replaced `setTimeout`, the clock uses the fake `performance`, or `Date` if `performance` is still the real one: with real
 * time, a fake timer would fire early again and again.
 *
 * @example
 * ```ts
 * import { realClock } from "slotkeeper";
 *
 * const startedAt = realClock.now();
 * console.log(`took ${Math.round(realClock.now() - startedAt)} ms`);
 * ```
 */
export const realClock: Clock = {
  now: () => {
    if (setTimeout === hostTimer) return origin + host.now();
    return performance === host ? Date.now() : origin + performance.now();
  },
  setTimer: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimer: (timer) => clearTimeout(timer as number),
};

/** The longest delay that timers of a host support. A longer one needs several timers. */
export const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** Starts a timer. It fires early if the delay is longer than hosts support. It keeps the process alive if `isAwaited`. */
export function startTimer(clock: Clock, callback: () => void, delayMs: number, isAwaited: boolean): unknown {
  const timer = clock.setTimer(callback, Math.min(Math.ceil(delayMs), LONGEST_DELAY_MS));
  keepAlive(timer, isAwaited);
  return timer;
}

/** Sets whether a timer keeps the process alive. Does nothing if the timer has no `ref()` and `unref()`. */
export function keepAlive(timer: unknown, alive: boolean): void {
  (timer as { ref?(): void; unref?(): void } | undefined)?.[alive ? "ref" : "unref"]?.();
}
