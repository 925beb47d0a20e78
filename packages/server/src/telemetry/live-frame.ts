import type { LiveState } from "@slotkeeper/protocol";
import { type FairQueue, type HostGlance, type HostSnapshot, phaseFor } from "@slotkeeper/queue";
import type { HostSettings } from "../queue/host-settings.ts";
import type { StoreReader } from "./store-reader.ts";

/** Where a live frame comes from. */
export interface FrameSources {
  readonly instance: string;
  readonly live: { readonly hosts: HostSettings; readonly config: { readonly version: string } };
  readonly queue: FairQueue;
  readonly reader: StoreReader;
}

/** The state that listeners of the events get, with the rows of these hosts. */
export async function liveFrame(
  keys: readonly string[],
  more: number,
  { instance, live, queue, reader }: FrameSources,
): Promise<LiveState> {
  const [totals, stored] = await Promise.all([reader.store.totals(), reader.hosts(keys)]);
  const { at, counts } = queue.overview();
  return {
    at,
    instance,
    configVersion: live.config.version,
    sessions: { ...queue.sessions() },
    counts: { ...counts },
    slots: { inFlight: totals.inFlight, limit: totals.slots, waiting: totals.waiting },
    hosts: keys.map((key) => {
      const [here, there] = [queue.glance(key), stored.get(key)];
      const { openMs } = live.hosts.policyOf(here?.hostname ?? there?.hostname).breaker;
      return hostRow(key, here, there, { now: at, openMs });
    }),
    more,
  };
}

export type HostRow = LiveState["hosts"][number];

/**
 * Combines what this instance and the store know about a host into one row. `openMs` is how long its breaker stays
 * open.
 */
export function hostRow(
  host: string,
  here: HostGlance | undefined,
  stored: HostSnapshot | undefined,
  { now, openMs }: { readonly now: number; readonly openMs: number },
): HostRow {
  const hostname = here?.hostname ?? stored?.hostname;
  return {
    host,
    ...(hostname === undefined ? {} : { hostname }),
    ...(stored === undefined ? {} : { limit: stored.slots }),
    inFlight: stored?.inFlight ?? 0,
    waiting: stored?.waiting ?? 0,
    pending: here?.pending ?? 0,
    // Of its own sessions that the store does not have yet, and of those that an instance had before a restart.
    oldestWaitMs: Math.round(Math.max(0, now - (here?.oldestArrivedAt ?? now), stored?.oldestWaitMs ?? 0)),
    avgWaitMs: Math.round(stored?.avgWaitMs ?? 0),
    isHot: stored?.isHot ?? false,
    isPaused: stored?.isPaused ?? false,
    ...breakerOf(stored, openMs),
  };
}

function breakerOf(
  stored: HostSnapshot | undefined,
  openMs: number,
): Pick<HostRow, "breaker" | "breakerCode" | "breakerEndsInMs"> {
  const view = stored?.breaker;
  if (view === undefined || view.phase === "closed") return { breaker: "closed" };
  const breaker = phaseFor(view, openMs);
  const left = openMs - view.openForMs;
  return { breaker, breakerCode: view.code, ...(left > 0 ? { breakerEndsInMs: left } : {}) };
}
