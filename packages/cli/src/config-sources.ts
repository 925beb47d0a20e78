import type { ConfigSources } from "@slotkeeper/server";

/** Flags that say what a service is configured with. */
export interface ConfigFlags {
  readonly config?: string | undefined;
  readonly data?: string | undefined;
  readonly listen?: string | undefined;
  readonly "wait-for-store"?: string | undefined;
}

/** An empty value is a mistake, most likely a variable that is not set: without the flag there is a default. */
export function emptyFlags(flags: ConfigFlags): string | undefined {
  const empty = (["config", "data", "listen", "wait-for-store"] as const).filter((name) => flags[name] === "");
  if (empty.length === 0) return undefined;
  return empty.map((name) => `--${name} is empty: give a value, or leave the flag out.`).join("\n");
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
