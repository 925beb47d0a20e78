/** Delays of retries, and sleeping through them. */

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;

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
    const timer = (isIdle ? idleTimer : setTimeout)(stop, ms);
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
  });
}

/** A timer that does not keep a Node process alive. In other hosts, timers are numbers. */
export function idleTimer(fire: () => unknown, ms: number): number {
  const timer = setTimeout(fire, ms);
  (timer as { unref?: () => void }).unref?.();
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
