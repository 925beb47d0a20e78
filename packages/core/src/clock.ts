/**
 * Where time comes from. The only file of the library that touches the host's clock and timers: everything else is
 * given a `Clock`, so that tests and simulations run in virtual time.
 */
export interface Clock {
  /** Milliseconds since the epoch. Must not run backwards. */
  now(): number;
  /**
   * Calls `callback` once, after `delayMs`. Where the host can tell timers that keep a process alive from those that
   * do not, the handle has Node's `ref()` and `unref()`; a handle without them is fine.
   */
  setTimer(callback: () => void, delayMs: number): unknown;
  clearTimer(timer: unknown): void;
}

/** Looked up once: in Node the global is a getter, which can cost half as much as the clock itself (W7, W8). */
const host = performance;
const hostTimer = setTimeout;
const origin = host.timeOrigin;

/**
 * Real time. `performance` and not `Date`: a lease must not last an hour longer because somebody set the wall clock
 * back, and the origin makes the numbers comparable with `Date.now()` all the same. Fake timers of test runners replace
 * `setTimeout` and `performance` together. Then the clock follows them: with the host's own, a faked timer would fire
 * before its time again and again.
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
