import { signal } from "@preact/signals";
import type { LiveState } from "@slotkeeper/protocol";
import { call, DeniedError, RefusedError, token } from "../api/call.ts";
import { readEvents } from "../api/event-stream.ts";
import { pause } from "./clock.ts";
import { applyLive, loadHosts } from "./fleet.ts";

/**
 * The live connection.
 *
 *   connecting → live          the hosts were read and events flow
 *   connecting → denied        the API is hidden from us; a token leads back to connecting
 *   live, connecting → lost    nothing answers, or the stream fell silent; a back-off leads back to connecting
 */
export type Link =
  | { readonly phase: "connecting" }
  | { readonly phase: "live" }
  | { readonly phase: "denied"; readonly wasTokenTried: boolean }
  | { readonly phase: "lost"; readonly reason: string; readonly since: number; readonly retryAt: number };

export const link = signal<Link>({ phase: "connecting" });
/** The service's version, from the stream's first event. */
export const version = signal("");

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** The service sends something at least every five seconds. */
const SILENCE_MS = 15_000;
/** Rows of hosts that nothing happens at are read again this often. */
const RELOAD_MS = 30_000;

let wake = new AbortController();

/** Tries again now: after a click, or when a token was given. */
export function retryNow(): void {
  wake.abort();
  wake = new AbortController();
}

export function signIn(given: string): void {
  token.value = given;
  link.value = { phase: "connecting" };
  retryNow();
}

export async function stayConnected(): Promise<never> {
  for (let failures = 0; ; ) {
    try {
      await follow(() => {
        failures = 0;
      });
    } catch (error) {
      if (error instanceof DeniedError) {
        link.value = { phase: "denied", wasTokenTried: token.value !== undefined };
        await new Promise((resolve) => wake.signal.addEventListener("abort", resolve, { once: true }));
        continue;
      }
      const ms = pauseAfter(failures++);
      const since = link.value.phase === "lost" ? link.value.since : performance.now();
      link.value = { phase: "lost", reason: reasonOf(error), since, retryAt: performance.now() + ms };
      await pause(ms, wake.signal);
    }
  }
}

/** Full jitter above one half, so that many dashboards do not come back together. */
function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + Math.random() / 2);
}

function reasonOf(error: unknown): string {
  return error instanceof RefusedError ? error.message : "The service does not answer.";
}

/** Ends only by throwing. */
async function follow(onLive: () => void): Promise<never> {
  const stop = new AbortController();
  const { signal } = stop;
  let watchdog = setTimeout(() => stop.abort(), SILENCE_MS);
  const reload = setInterval(() => void loadHosts(signal).catch(() => {}), RELOAD_MS);
  try {
    const { body } = await call("/events", { signal });
    await loadHosts(signal);
    for await (const { event, data } of readEvents(body as ReadableStream<BufferSource>)) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), SILENCE_MS);
      if (event === "hello") version.value = (JSON.parse(data) as { version: string }).version;
      if (event !== "state") continue;
      applyLive(JSON.parse(data) as LiveState);
      if (link.value.phase !== "live") link.value = { phase: "live" };
      onLive();
    }
    throw new Error("the stream ended");
  } finally {
    clearTimeout(watchdog);
    clearInterval(reload);
    stop.abort();
  }
}
