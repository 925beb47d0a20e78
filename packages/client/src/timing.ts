/** Delays of retries, and sleeping through them. */

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;

/**
 * The delay after the n-th failure in a row (from 1): exponential, half of it random, so that callers that failed
 * together do not come back together. A `Retry-After` of the service is never undercut.
 */
export function backoffMs(failures: number, retryAfterMs = 0): number {
  const delay = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
  return retryAfterMs + delay * (0.5 + Math.random() / 2);
}

export interface SleepOptions {
  readonly signal?: AbortSignal | undefined;
  /** The sleep does not keep a Node process alive. */
  readonly isIdle?: boolean;
}

/** Rejects with the signal's reason. */
export function sleep(ms: number, { signal, isIdle = false }: SleepOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    if (isIdle) keepNothingAlive(timer);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Node's timers are objects with `unref`; elsewhere they are numbers. */
export function keepNothingAlive(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}
