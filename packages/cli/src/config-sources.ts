import type { ConfigSources } from "@slotkeeper/server";

/** Flags that say what a service is configured with. */
export interface ConfigFlags {
  readonly config?: string | undefined;
  readonly data?: string | undefined;
  readonly listen?: string | undefined;
  readonly "wait-for-store"?: string | undefined;
}

/** The same for every command, so that `doctor` looks at what `serve` uses. */
export function sourcesOf({ config, data, listen, "wait-for-store": wait }: ConfigFlags): ConfigSources {
  const backend = {
    ...(data === undefined ? {} : { memory: { journal: data } }),
    // What is no number is refused with the rest of the configuration, by its name and value.
    ...(wait === undefined ? {} : { startWaitSeconds: /^[\d.]+$/.test(wait) ? Number(wait) : wait }),
  };
  return { file: config, environment: process.env, flags: { ...(listen === undefined ? {} : { listen }), backend } };
}
