import type { FairQueue } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import type { StoreReader } from "../live/store-reader.ts";
import { VERSION } from "../version.ts";
import type { PushContext } from "./metrics-push.ts";

/** What a push reports about this instance; `undefined` if no controller is configured. */
export async function pushContextOf(
  { settings, version: configVersion }: LoadedConfig,
  instance: string,
  queue: FairQueue,
  reader: StoreReader,
): Promise<PushContext | undefined> {
  const { controller: address, identity } = settings;
  if (address === undefined) return undefined;
  // If the store does not answer, the counts are sent anyway.
  const smoothHosts = await reader.totals().then(
    ({ spaced }) => spaced,
    () => 0,
  );
  const [overview, sessions] = [queue.overview(), queue.sessions()];
  return { address, identity, instance, version: VERSION, configVersion, overview, sessions, smoothHosts };
}
