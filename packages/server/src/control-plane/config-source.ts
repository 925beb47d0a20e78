import { ConfigError } from "../config/config-error.ts";
import {
  type ConfigSources,
  type ControllerLayer,
  type LoadedConfig,
  loadConfig,
  localSettings,
} from "../config/load-config.ts";
import { secretsOf } from "../config/print-config.ts";
import type { Logger } from "../log/logger.ts";
import { bootstrap } from "./bootstrap.ts";
import { ControllerError } from "./controller-error.ts";

export interface ControlTimes {
  /** For one answer of the controller. */
  readonly timeoutMs: number;
  /** How often it is asked at start, and the first pause between two; each next one is twice as long. */
  readonly attempts: number;
  readonly retryMs: number;
  readonly pushEveryMs: number;
}

/** At worst a start waits 4 × 2 s and 1.75 s for a controller that swallows everything. */
export const CONTROL_TIMES: ControlTimes = { timeoutMs: 2_000, attempts: 4, retryMs: 250, pushEveryMs: 60_000 };

export interface ConfigSourceInit {
  readonly sources: ConfigSources;
  readonly instance: string;
  readonly times: ControlTimes;
  readonly log: Logger;
  readonly learnSecrets: (secrets: Iterable<string>) => void;
  readonly pause: (ms: number) => Promise<void>;
}

/**
 * Where the configuration comes from: the control plane, if there is one, over what is written here.
 *
 * CONFIG1 a configuration is used whole or not at all: one with a problem changes nothing. CONFIG2 at start the service comes up
 * without its controller, from what is written here, and says so loudly; later it keeps what it has. CONFIG3 the last answer
 * counts: the controller's configuration is not stored over a restart.
 */
export class ConfigSource {
  readonly #init: ConfigSourceInit;
  #lastAnswer: ControllerLayer | undefined;
  #isOnFallback = false;

  constructor(init: ConfigSourceInit) {
    this.#init = init;
  }

  /** The controller was to be asked and is not being followed. */
  get isOnFallback(): boolean {
    return this.#isOnFallback;
  }

  /** For the start: never without a configuration, unless what is written here is bad. */
  async first(): Promise<LoadedConfig> {
    const { attempts, retryMs } = this.#init.times;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.next();
      } catch (error) {
        const isFinal = attempt >= attempts || !(error instanceof ControllerError);
        if (!isFinal) {
          this.#init.log.warn("the controller did not answer with a configuration, trying again", { attempt, error });
          await this.#init.pause(retryMs * 2 ** (attempt - 1));
          continue;
        }
        return this.#fallBack(error);
      }
    }
  }

  /** Asks once. Throws a `ConfigError` or a `ControllerError`, and then nothing has changed. */
  async next(): Promise<LoadedConfig> {
    const { sources, instance, times, learnSecrets } = this.#init;
    const { settings, tree } = localSettings(sources);
    learnSecrets(secretsOf({ tree }));
    if (settings.controller === undefined) {
      this.#lastAnswer = undefined;
      this.#isOnFallback = false;
      return loadConfig(sources);
    }
    const { apiToken } = settings.controller;
    const current = this.#lastAnswer === undefined ? apiToken : (tokenIn(sources, this.#lastAnswer) ?? apiToken);
    const tokens = [...new Set([current, apiToken])];
    const { identity, controller: address } = settings;
    const answer = await bootstrap({ address, tokens, identity, instance, timeoutMs: times.timeoutMs });
    const config = loadConfig(sources, answer);
    learnSecrets(secretsOf(config));
    this.#lastAnswer = answer;
    this.#isOnFallback = false;
    return config;
  }

  #fallBack(error: unknown): LoadedConfig {
    const { log, sources } = this.#init;
    const isOurs = error instanceof ControllerError || error instanceof ConfigError;
    if (!isOurs) throw error;
    // Throws where the fault is not the controller's but what is written here.
    const config = loadConfig(sources);
    const problems = error instanceof ConfigError ? { problems: error.problems } : { error };
    log.error(
      `NO CONFIGURATION FROM THE CONTROLLER: running from ${config.version} until the controller answers`,
      problems,
    );
    this.#isOnFallback = true;
    return config;
  }
}

function tokenIn(sources: ConfigSources, answer: ControllerLayer): string | undefined {
  try {
    return loadConfig(sources, answer).settings.controller?.apiToken;
  } catch {
    // The earlier answer no longer fits the file: the controller is asked again anyway.
    return undefined;
  }
}
