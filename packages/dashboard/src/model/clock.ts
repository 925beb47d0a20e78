import { signal } from "@preact/signals";

/** Ticks once a second. Ages and countdowns on screen use it. Milliseconds of the clock of the page. */
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
