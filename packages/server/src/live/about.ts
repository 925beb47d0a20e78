import type { FairQueue, InstanceAbout } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import { VERSION } from "../version.ts";
import { limitsHash } from "./limits-hash.ts";

/** What the fleet is told of this instance with every beat. */
export function aboutOf(
  { settings, version: configVersion }: LoadedConfig,
  address: string,
  heldPolls: number,
  queue: FairQueue,
): InstanceAbout {
  const { instanceId } = settings.identity;
  return {
    ...(instanceId === undefined ? {} : { instanceId }),
    address,
    version: VERSION,
    configVersion,
    configHash: limitsHash(settings.fairQueue),
    upMs: Math.round(performance.now()),
    heldPolls,
    sessions: queue.overview().sessions.pending,
  };
}
