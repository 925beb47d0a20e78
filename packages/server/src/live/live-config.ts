import type { LoadedConfig } from "../config/load-config.ts";
import { secretsOf } from "../config/print-config.ts";
import { Guards } from "../http/guards.ts";
import type { Live } from "../http/service-context.ts";
import type { LineLogger } from "../log/logger.ts";
import type { Scrubber } from "../log/scrubber.ts";
import { QueryTokens } from "../tokens/query-tokens.ts";
import { HostSettings } from "./host-settings.ts";

export interface LiveConfigInit {
  readonly scrubber: Scrubber;
  readonly log: LineLogger;
  /** The keys that sign tokens if the configuration has none. */
  readonly tokenKeys: readonly string[];
}

/** The configuration in force, with what is made from it. A refresh replaces all of it at once. */
export class LiveConfig {
  readonly #init: LiveConfigInit;
  #current: Live;

  constructor(config: LoadedConfig, init: LiveConfigInit) {
    this.#init = init;
    this.#current = this.#of(config);
  }

  get current(): Live {
    return this.#current;
  }

  get config(): LoadedConfig {
    return this.#current.config;
  }

  replace(config: LoadedConfig): void {
    this.#current = this.#of(config);
  }

  #of(config: LoadedConfig): Live {
    const { settings } = config;
    const { scrubber, log, tokenKeys } = this.#init;
    const keys = settings.tokenKeys ?? tokenKeys;
    scrubber.learn([...secretsOf(config), ...keys]);
    log.level = settings.logLevel;
    return { config, guards: new Guards(settings), tokens: new QueryTokens(keys), hosts: new HostSettings(config) };
  }
}
