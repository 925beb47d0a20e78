/**
 * The clock, timers and the delays of retries. Waits and leases use the monotonic clock, because the wall clock can be set
 * while they last.
 */

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;
/** The longest delay of a timer, 24.8 days. A longer one overflows and fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function now(): number {
  return performance.now();
}

/**
 * The delay after the n-th failure in a row (from 1): exponential, half of it random, so that callers that failed
 * together do not retry together. It is never shorter than a `Retry-After` of the service.
 */
export function backoffMs(failures: number, retryAfterMs = 0): number {
  const delay = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
  return retryAfterMs + delay * (0.5 + Math.random() / 2);
}

/** Rejects with the reason of the signal. */
export function sleep(ms: number, isIdle?: boolean, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = startTimer(stop, ms, isIdle);
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
  });
}

/** With `isIdle`, the timer does not keep a Node process alive. In other hosts, timers are numbers. */
export function startTimer(fire: () => unknown, ms: number, isIdle?: boolean): number {
  const timer = setTimeout(fire, Math.min(ms, LONGEST_TIMER_MS));
  if (isIdle) (timer as { unref?: () => void }).unref?.();
  return timer;
}

/** Calls a hook of the user and ignores its errors. */
export function quietly<T>(hook: () => T): T | undefined {
  try {
    return hook();
  } catch {
    return undefined;
  }
}
