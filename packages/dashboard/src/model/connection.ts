import { signal } from "@preact/signals";
import type { LiveState } from "@slotkeeper/protocol";
import { call, DeniedError, RefusedError, token } from "../api/call.ts";
import { readEvents } from "../api/event-stream.ts";
import { pause } from "./clock.ts";
import { applyLive, loadHosts } from "./fleet.ts";

/**
 * The live connection.
 *
 *   connecting → live          the hosts were read, and events arrive
 *   connecting → denied        the API is hidden from us; after a token was entered, back to connecting
 *   live, connecting → lost    nothing answers, or the stream is silent; after a pause, back to connecting
 */
export type Link =
  | { readonly phase: "connecting" }
  | { readonly phase: "live" }
  | { readonly phase: "denied"; readonly wasTokenTried: boolean }
  | { readonly phase: "lost"; readonly reason: string; readonly since: number; readonly retryAt: number };

export const link = signal<Link>({ phase: "connecting" });
/** The version of the service, from the first event of the stream. */
export const version = signal("");

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** The service sends something at least every five seconds. */
const SILENCE_MS = 15_000;
/** How often the rows of unchanged hosts are read again. */
const RELOAD_MS = 30_000;

let wake = new AbortController();

/** Tries again at once, after a click or when a token was entered. */
export function retryNow(): void {
  wake.abort();
  wake = new AbortController();
}

export function signIn(given: string): void {
  token.value = given;
  link.value = { phase: "connecting" };
  retryNow();
}

/** Calls `load` after each change of the connection and every `everyMs`, while it is live. Returns what ends that. */
export function whileLive(everyMs: number, load: (signal: AbortSignal) => void): () => void {
  const stop = new AbortController();
  const loadIfLive = () => {
    if (link.peek().phase === "live") load(stop.signal);
  };
  const timer = setInterval(loadIfLive, everyMs);
  const unsubscribe = link.subscribe(loadIfLive);
  return () => {
    clearInterval(timer);
    unsubscribe();
    stop.abort();
  };
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

/** Half of the pause is random, so that many dashboards do not reconnect at the same time. */
function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + Math.random() / 2);
}

function reasonOf(error: unknown): string {
  return error instanceof RefusedError ? error.message : "The service does not answer.";
}

/** Never returns; it ends only with an error. */
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
