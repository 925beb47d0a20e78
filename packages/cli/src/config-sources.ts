import type { ConfigSources } from "@slotkeeper/server";

/** The flags that select the configuration of a service. */
export interface ConfigFlags {
  readonly config?: string | undefined;
  readonly data?: string | undefined;
  readonly listen?: string | undefined;
  readonly "wait-for-store"?: string | undefined;
}

/** Used by every command, so that `doctor` checks the configuration that `serve` uses. */
export function sourcesOf({ config, data, listen, "wait-for-store": wait }: ConfigFlags): ConfigSources {
  const backend = {
    ...(data === undefined ? {} : { memory: { journal: data } }),
    // A value that is not a number is refused with the rest of the configuration, by its name and value.
    ...(wait === undefined ? {} : { startWaitSeconds: Number.isFinite(Number(wait)) ? Number(wait) : wait }),
  };
  return { file: config, environment: process.env, flags: { ...(listen === undefined ? {} : { listen }), backend } };
}
