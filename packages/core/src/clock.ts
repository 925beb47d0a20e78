/**
 * Where a semaphore reads the time and sets its timers. Give one to run in virtual time; `FakeClock` of
 * `slotkeeper/testing` is one.
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
   * Calls `callback` once, after `delayMs`. Where the host distinguishes timers that keep a process alive from those that
   * do not, the handle has Node's `ref()` and `unref()`; a handle without them is fine.
   */
  setTimer(callback: () => void, delayMs: number): unknown;
  /** Drops a timer that `setTimer` returned. Does nothing if it has fired, or for `undefined`. */
  clearTimer(timer: unknown): void;
}

/** Looked up once: in Node the global is a getter, which can cost half as much as the clock itself (W7, W8). */
const host = performance;
const hostTimer = setTimeout;
const origin = host.timeOrigin;

/**
 * Real time. `performance` and not `Date`: a lease must not last an hour longer because the wall clock was set
 * back, and the origin makes the numbers comparable with `Date.now()` all the same. Fake timers of test runners replace
 * `setTimeout` and `performance` together. Then the clock follows them: with the host's own, a faked timer would fire
 * before its time again and again.
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
  now: () => origin + (setTimeout === hostTimer ? host : performance).now(),
  setTimer: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimer: (timer) => clearTimeout(timer as number),
};

/** The longest delay that hosts take; a longer one must be waited for in steps. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** Sets a timer that may fire early if the delay is longer than hosts take. */
export function startTimer(clock: Clock, callback: () => void, delayMs: number, isAwaited: boolean): unknown {
  const timer = clock.setTimer(callback, Math.min(Math.ceil(delayMs), LONGEST_DELAY_MS));
  keepAlive(timer, isAwaited);
  return timer;
}

/** Says whether a timer may keep the process alive; does nothing where the host has no such notion. */
export function keepAlive(timer: unknown, alive: boolean): void {
  (timer as { ref?(): void; unref?(): void } | undefined)?.[alive ? "ref" : "unref"]?.();
}
