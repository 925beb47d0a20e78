import type { LoadedConfig } from "../config/load-config.ts";
import { secretsOf } from "../config/print-config.ts";
import type { ServiceLimits } from "../config/settings.ts";
import type { LineLogger } from "../log/logger.ts";
import type { Scrubber } from "../log/scrubber.ts";
import { NODE_DIGESTS } from "../platform/node-crypto.ts";
import { hostKeys } from "../queue/host-key.ts";
import { HostSettings } from "../queue/host-settings.ts";
import { QueryTokens } from "../queue/query-tokens.ts";
import { Access } from "./access.ts";

/** A configuration with what is made from it. */
export interface Live {
  readonly config: LoadedConfig;
  readonly limits: ServiceLimits;
  readonly access: Access;
  readonly tokens: QueryTokens;
  readonly hosts: HostSettings;
}

export interface LiveConfigInit {
  readonly scrubber: Scrubber;
  readonly log: LineLogger;
  /** The keys that sign tokens if the configuration has none. */
  readonly tokenKeys: readonly string[];
}

/** The configuration in force. A refresh replaces all of it at once. */
export class LiveConfig {
  readonly #init: LiveConfigInit;
  readonly #keyOf = hostKeys(NODE_DIGESTS);
  current: Live;

  constructor(config: LoadedConfig, init: LiveConfigInit) {
    this.#init = init;
    this.current = this.#of(config);
  }

  replace(config: LoadedConfig): void {
    this.current = this.#of(config);
  }

  #of(config: LoadedConfig): Live {
    const { settings } = config;
    const { scrubber, log, tokenKeys } = this.#init;
    const keys = settings.tokenKeys ?? tokenKeys;
    scrubber.learn([...secretsOf(config), ...keys]);
    log.level = settings.logLevel;
    return {
      config,
      limits: settings.limits,
      access: new Access(settings, NODE_DIGESTS),
      tokens: new QueryTokens(keys, NODE_DIGESTS, this.#keyOf),
      hosts: new HostSettings(config, this.#keyOf),
    };
  }
}
