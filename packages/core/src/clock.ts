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

const origin = performance.timeOrigin;

/**
 * Real time. `performance` and not `Date`: a lease must not last an hour longer because somebody set the wall clock
 * back, and the origin makes the numbers comparable with `Date.now()` all the same.
 */
export const realClock: Clock = {
  now: () => origin + performance.now(),
  setTimer: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimer: (timer) => clearTimeout(timer as number),
};

/** Says whether a timer may keep the process alive; does nothing where the host has no such notion. */
export function keepAlive(timer: unknown, alive: boolean): void {
  const handle = timer as { ref?(): void; unref?(): void } | undefined;
  if (alive) handle?.ref?.();
  else handle?.unref?.();
}
