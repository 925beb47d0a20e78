import type { LiveState } from "@slotkeeper/protocol";
import type { FairQueue } from "@slotkeeper/queue";
import type { HostSettings } from "../queue/host-settings.ts";
import { hostRow } from "./host-row.ts";
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
  const [totals, stored] = await Promise.all([reader.totals(), reader.hosts(keys)]);
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
