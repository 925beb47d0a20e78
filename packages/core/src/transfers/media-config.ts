/** The settings from which the limits of media transfers are calculated: defaults, environment variables and checks. */

import { callForeign } from "../foreign-call.ts";
import {
  anyObject,
  boolean,
  finiteFrom,
  integerFrom,
  numberWithin,
  positiveNumber,
  type Rule,
  type Rules,
} from "../options.ts";
import type { Problems } from "../problems.ts";
import { type MemorySource, memoryFrom } from "./detect-memory.ts";
import { type Environment, EnvironmentReader } from "./environment.ts";
import { hostEnvironment, hostMemory, type MemoryProbe } from "./memory-probe.ts";

/** The resolved settings of `MediaSlots`. */
export interface MediaSettings {
  /** Whether the limits are calculated from the memory. If not, the fallbacks apply. @defaultValue true */
  readonly memoryBased: boolean;
  /** The available memory, in GB. Required if `memoryBased` is true; 0 if it was not given. */
  readonly availableGb: number;
  /** How much of the memory is reserved for other uses, in percent. @defaultValue 40 */
  readonly reservationPercent: number;
  /** The size of the largest chunk, in MB. @defaultValue 6 */
  readonly maxChunkMb: number;
  /** The size of the largest direct upload, in MB; it counts if it is larger than a chunk. @defaultValue 0 */
  readonly directUploadMb: number;
  /** Uploads at a time, if the limits are not calculated from the memory. @defaultValue 10 */
  readonly fallbackGlobalUploads: number;
  /** Chunks at a time, if the limits are not calculated from the memory. @defaultValue 20 */
  readonly fallbackGlobalChunks: number;
  /** Uploads of one user at a time, if the limits are not calculated from the memory. @defaultValue 3 */
  readonly fallbackPerUserUploads: number;
  /** Chunks of one user at a time, if the limits are not calculated from the memory. @defaultValue 5 */
  readonly fallbackPerUserChunks: number;
}

/**
 * Where a setting comes from: the name of a variable, the source of the detected memory, `given` or `default`. If a
 * malformed variable turned the memory-based limits off, that variable is the source of `memoryBased`.
 */
export type SettingSource = MemorySource | "given" | "default" | `MEDIA__${string}`;

type Traced<Value> = { readonly value: Value; readonly source: SettingSource };

/** The source of each setting. A setting that was changed afterwards has no trace and counts as `given`. */
export type SettingTraces = { readonly [Name in keyof MediaSettings]?: Traced<MediaSettings[Name]> | undefined };

/** The result of `mediaConfigFromEnv`. A config written by hand may leave out everything except the memory. */
export type MediaConfig = { readonly [Name in keyof MediaSettings]?: MediaSettings[Name] | undefined } & {
  readonly traces?: SettingTraces | undefined;
};

interface Setting<Value> {
  readonly variable: `MEDIA__${string}`;
  readonly byDefault: Value;
  readonly rule: Rule;
}

const fallback = (name: string, byDefault: number): Setting<number> => ({
  variable: `MEDIA__FALLBACK_${name}`,
  byDefault,
  // 0 does not mean "unlimited" here, because the fallback is the last safeguard.
  rule: integerFrom(1),
});

/** All settings except the memory, which is detected. */
const SETTINGS: { readonly [Name in Exclude<keyof MediaSettings, "availableGb">]: Setting<MediaSettings[Name]> } = {
  memoryBased: { variable: "MEDIA__MEMORY_BASED_LIMITS", byDefault: true, rule: boolean },
  reservationPercent: {
    variable: "MEDIA__MEMORY_RESERVATION_PERCENT",
    byDefault: 40,
    rule: numberWithin(0, 100),
  },
  maxChunkMb: { variable: "MEDIA__MAX_CHUNK_MB", byDefault: 6, rule: positiveNumber },
  directUploadMb: { variable: "MEDIA__DIRECT_UPLOAD_MB", byDefault: 0, rule: finiteFrom(0) },
  fallbackGlobalUploads: fallback("GLOBAL_UPLOADS", 10),
  fallbackGlobalChunks: fallback("GLOBAL_CHUNKS", 20),
  fallbackPerUserUploads: fallback("PER_USER_UPLOADS", 3),
  fallbackPerUserChunks: fallback("PER_USER_CHUNKS", 5),
};

const NAMES = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[];

export const CONFIG_RULES = {
  ...Object.fromEntries(NAMES.map((name) => [name, SETTINGS[name].rule])),
  availableGb: positiveNumber,
  traces: anyObject,
} as unknown as Rules<MediaConfig>;

/** Where `mediaConfigFromEnv` writes its warning: `console`, or any object with this method. */
export interface WarningLogger {
  /** Gets one line that names every malformed variable and its value. */
  warn(message: string): void;
}

/**
 * Reads a config for `memoryLimits` and `MediaSlots` from the environment. An empty variable counts as not set. If a
 * variable is malformed, the limits are the static ones (`memoryBased` is `false`), and one warning names every such
 * variable and its value.
 *
 * @example
 * ```ts
 * import { MediaSlots, mediaConfigFromEnv } from "slotkeeper/transfers";
 *
 * const slots = new MediaSlots(mediaConfigFromEnv());
 * console.log(slots.config().limits);
 * ```
 */
export function mediaConfigFromEnv(
  environment: Environment = hostEnvironment(),
  probe: MemoryProbe = hostMemory,
  logger: WarningLogger = console,
): MediaSettings & { readonly traces: SettingTraces } {
  const reader = new EnvironmentReader(environment);
  const { gb, source } = memoryFrom(reader, probe);
  const traces: Record<string, Traced<unknown>> = { availableGb: { value: gb, source } };
  for (const name of NAMES) traces[name] = traced(reader, SETTINGS[name]);
  const { malformed, problems } = reader;
  if (malformed.length > 0) {
    traces["memoryBased"] = { value: false, source: malformed[0] as SettingSource };
    callForeign(() => logger.warn(`The static limits apply, because of the environment: ${problems.error?.message}`));
  }
  const values = Object.entries(traces).map(([name, { value }]) => [name, value]);
  return { ...Object.fromEntries(values), traces } as MediaSettings & { traces: SettingTraces };
}

function traced(reader: EnvironmentReader, setting: Setting<number | boolean>): Traced<unknown> {
  const { variable, byDefault, rule } = setting;
  const value = typeof byDefault === "boolean" ? reader.boolean(variable, rule) : reader.number(variable, rule);
  return value === undefined ? { value: byDefault, source: "default" } : { value, source: variable };
}

/** Adds a problem if the config needs the memory and does not give it. */
export function expectMemory({ memoryBased = true, availableGb }: MediaConfig, problems: Problems): void {
  if (memoryBased && availableGb === undefined) {
    problems.add("Expected `availableGb` to be given, since the limits are memory-based", false);
  }
}

/** Returns the settings with all defaults. Memory that is neither needed nor given is 0. */
export function resolveSettings(config: MediaConfig): MediaSettings {
  const defaults = Object.fromEntries(NAMES.map((name) => [name, SETTINGS[name].byDefault]));
  const given = Object.entries(config).filter(([name, value]) => name in SETTINGS && value !== undefined);
  return { availableGb: config.availableGb ?? 0, ...defaults, ...Object.fromEntries(given) } as MediaSettings;
}

/** Where each setting of a config comes from. */
export function sourcesOf(config: MediaConfig): Record<keyof MediaSettings, SettingSource> {
  const sourceOf = (name: keyof MediaSettings): SettingSource => {
    const trace = config.traces?.[name];
    if (config[name] === undefined) return "default";
    return trace !== undefined && trace.value === config[name] ? trace.source : "given";
  };
  const names: (keyof MediaSettings)[] = ["availableGb", ...NAMES];
  return Object.fromEntries(names.map((name) => [name, sourceOf(name)])) as Record<keyof MediaSettings, SettingSource>;
}
