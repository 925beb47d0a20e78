import type { LoadedConfig } from "../config/load-config.ts";
import { secretsOf } from "../config/print-config.ts";
import type { ServiceLimits } from "../config/settings.ts";
import type { LineLogger } from "../log/logger.ts";
import type { Scrubber } from "../log/scrubber.ts";
import { NODE_DIGESTS } from "../platform/node-crypto.ts";
import type { HostDirectory } from "../queue/host-key.ts";
import { HostSettings } from "../queue/host-settings.ts";
import { QueryTokens } from "../queue/query-tokens.ts";
import { Access } from "./dispatch.ts";

/** A configuration with what is made from it. A refresh replaces all of it at once. */
export interface Live {
  readonly config: LoadedConfig;
  readonly limits: ServiceLimits;
  readonly access: Access;
  readonly tokens: QueryTokens;
  readonly hosts: HostSettings;
}

/** What a configuration is applied with. */
export interface LiveInit {
  readonly scrubber: Scrubber;
  readonly log: LineLogger;
  /** The keys that sign tokens if the configuration has none. */
  readonly tokenKeys: readonly string[];
  readonly keyOf: HostDirectory["keyOf"];
}

/** Makes what a configuration is used with. Its level and its secrets apply to the log from now on. */
export function liveOf(config: LoadedConfig, { scrubber, log, tokenKeys, keyOf }: LiveInit): Live {
  const { settings } = config;
  const keys = settings.tokenKeys ?? tokenKeys;
  scrubber.learn([...secretsOf(config), ...keys]);
  log.level = settings.logLevel;
  return {
    config,
    limits: settings.limits,
    access: new Access(settings, NODE_DIGESTS),
    tokens: new QueryTokens(keys, NODE_DIGESTS, keyOf),
    hosts: new HostSettings(config, keyOf),
  };
}
