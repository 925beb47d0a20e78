import type { ConfigSources } from "@slotkeeper/server";
import type { FlagsOf } from "./commands/command.ts";
import type { SERVE } from "./commands/serving.ts";

/** Used by every command, so that `doctor` checks the configuration that `serve` uses. */
export function sourcesOf({ config, data, listen, "wait-for-store": wait }: FlagsOf<typeof SERVE>): ConfigSources {
  const backend = {
    ...(data === undefined ? {} : { memory: { journal: data } }),
    // A value that is not a number is refused with the rest of the configuration, by its name and value.
    ...(wait === undefined ? {} : { startWaitSeconds: Number.isFinite(Number(wait)) ? Number(wait) : wait }),
  };
  return { file: config, environment: process.env, flags: { ...(listen === undefined ? {} : { listen }), backend } };
}
