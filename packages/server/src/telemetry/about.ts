import { createHash } from "node:crypto";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { FairQueue, InstanceAbout } from "@slotkeeper/queue";
import { isTree } from "../config/layers.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { VERSION } from "../version.ts";

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

/** By configuration: a beat needs it every second. */
const hashes = new WeakMap<FairQueueConfig, string>();

/**
 * Equal limits have the same hash, wherever each of them comes from. Secrets and addresses are not included, because
 * they may differ between instances.
 */
export function limitsHash(limits: FairQueueConfig): string {
  let hash = hashes.get(limits);
  if (hash === undefined) {
    const text = JSON.stringify(limits, (_, value: unknown) => (isTree(value) ? sorted(value) : value));
    hash = createHash("sha256").update(text).digest("hex").slice(0, 12);
    hashes.set(limits, hash);
  }
  return hash;
}

function sorted(tree: object): object {
  return Object.fromEntries(Object.entries(tree).sort(([a], [b]) => (a < b ? -1 : 1)));
}
