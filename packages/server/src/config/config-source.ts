import { LineLogger, type Logger } from "../log/logger.ts";
import { Scrubber } from "../log/scrubber.ts";
import { bootstrap } from "./controller.ts";
import { ConfigError, ControllerError } from "./errors.ts";
import {
  type ConfigSources,
  type ControllerLayer,
  type LoadedConfig,
  loadConfig,
  localSettings,
} from "./load-config.ts";
import { secretsOf } from "./print-config.ts";

export interface ControlTimes {
  /** The timeout for one answer of the controller, in milliseconds. */
  readonly timeoutMs: number;
  /** The number of attempts at a start. The first pause is `retryMs`; each later one is twice as long. */
  readonly attempts: number;
  readonly retryMs: number;
  readonly pushEveryMs: number;
}

/** If the controller never answers, a start waits for at most 4 × 2 s and 1.75 s. */
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
 * Loads the configuration: from the control plane, if there is one, over the local layers.
 *
 * CONFIG1  A configuration is used as a whole or not at all: one with a problem changes nothing.
 * CONFIG2  If the controller does not answer at a start, the service starts with the local configuration and logs an
 *     error. Later it keeps what it has.
 * CONFIG3  The last answer counts. The configuration of the controller is not stored across a restart.
 */
export class ConfigSource {
  readonly #init: ConfigSourceInit;
  #lastAnswer: ControllerLayer | undefined;
  #isOnFallback = false;

  constructor(init: ConfigSourceInit) {
    this.#init = init;
  }

  /** Whether there is a controller whose configuration is not in use. */
  get isOnFallback(): boolean {
    return this.#isOnFallback;
  }

  /** For the start: always returns a configuration, unless the local one is invalid. */
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

  /** Asks once. If it throws a `ConfigError` or a `ControllerError`, nothing has changed. */
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
    // Throws if the local configuration is the cause, not the controller.
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
    // The earlier answer no longer fits the file. The controller is asked again anyway.
    return undefined;
  }
}

/**
 * The configuration that a service would start with now, including the controller's. Problems on the way are written as
 * log lines.
 */
export function effectiveConfig(sources: ConfigSources, write: (line: string) => void): Promise<LoadedConfig> {
  const scrubber = new Scrubber();
  const { settings } = localSettings(sources);
  const source = new ConfigSource({
    sources,
    instance: settings.identity.instanceId ?? "print-config",
    // Only one attempt, because a person waits for the result.
    times: { ...CONTROL_TIMES, attempts: 1 },
    log: new LineLogger({ write, scrubber, now: Date.now, isJson: false, hasColours: false }),
    learnSecrets: (secrets) => scrubber.learn(secrets),
    pause: async () => {},
  });
  return source.first();
}
