import { signal } from "@preact/signals";

/** Ticks once a second: what counts down or grows on screen reads it. Milliseconds of the page's own clock. */
export const now = signal(performance.now());

setInterval(() => {
  now.value = performance.now();
}, 1_000);

/** Resolves after this time, or as soon as the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
