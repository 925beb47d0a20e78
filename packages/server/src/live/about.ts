import type { FairQueue, InstanceAbout } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import { VERSION } from "../version.ts";
import { limitsHash } from "./limits-hash.ts";

/** What a beat reports about this instance. */
export function aboutOf(
  { settings, version: configVersion }: LoadedConfig,
  address: string,
  heldPolls: number,
  queue: FairQueue,
): InstanceAbout {
  const { instanceId } = settings.identity;
  const { pending, counts } = queue.overview();
  return {
    ...(instanceId === undefined ? {} : { instanceId }),
    address,
    version: VERSION,
    configVersion,
    configHash: limitsHash(settings.fairQueue),
    upMs: Math.round(performance.now()),
    heldPolls,
    sessions: pending,
    granted: counts.granted,
    rejected: counts.throttled + counts.timeout + counts.overloaded,
  };
}
