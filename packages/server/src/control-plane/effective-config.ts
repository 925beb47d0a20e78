import { type ConfigSources, type LoadedConfig, localSettings } from "../config/load-config.ts";
import { LineLogger } from "../log/logger.ts";
import { Scrubber } from "../log/scrubber.ts";
import { CONTROL_TIMES, ConfigSource } from "./config-source.ts";

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
