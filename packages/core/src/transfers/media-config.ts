/** What the limits of media transfers are made from: the settings, their defaults, their variables, what is refused. */

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

/** The settings of `MediaSlots` with nothing left open. */
export interface MediaSettings {
  /** Whether the limits follow from the memory; else they are the fallbacks. @defaultValue true */
  readonly memoryBased: boolean;
  /** How much memory there is. Needed if `memoryBased`. */
  readonly availableGb: number;
  /** How much of it is kept for everything else. @defaultValue 40 */
  readonly reservationPercent: number;
  /** The largest chunk. @defaultValue 6 */
  readonly maxChunkMb: number;
  /** The largest direct upload, if that is more than a chunk. @defaultValue 0 */
  readonly directUploadMb: number;
  /** Uploads at a time, if the limits do not follow from the memory. @defaultValue 10 */
  readonly fallbackGlobalUploads: number;
  /** Chunks at a time, if the limits do not follow from the memory. @defaultValue 20 */
  readonly fallbackGlobalChunks: number;
  /** Uploads of one user at a time, if the limits do not follow from the memory. @defaultValue 3 */
  readonly fallbackPerUserUploads: number;
  /** Chunks of one user at a time, if the limits do not follow from the memory. @defaultValue 5 */
  readonly fallbackPerUserChunks: number;
}

/** Where a setting comes from: a variable's name, what the memory was detected by, or one of these. */
export type SettingSource = MemorySource | "given" | "default" | `MEDIA__${string}`;

type Traced<Value> = { readonly value: Value; readonly source: SettingSource };

/** Settings with the trace of where they come from. A setting that was changed since has lost its trace: it is given. */
export type SettingTraces = { readonly [Name in keyof MediaSettings]?: Traced<MediaSettings[Name]> | undefined };

/** What `mediaConfigFromEnv` gives, and what can be given by hand: then all but the memory may be left out. */
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
  // No 0 for "unlimited" here: the fallback is the safety net.
  rule: integerFrom(1),
});

/** All but the memory, which is detected. */
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

/**
 * A config that `memoryLimits` and `MediaSlots` take as it is. Malformed variables are refused, all at once.
 *
 * @throws {RangeError | TypeError} if a variable is malformed; the message names every such variable and its value.
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
): MediaSettings & { readonly traces: SettingTraces } {
  const reader = new EnvironmentReader(environment);
  const { gb, source } = memoryFrom(reader, probe);
  const traces: Record<string, Traced<unknown>> = { availableGb: { value: gb, source } };
  for (const name of NAMES) traces[name] = traced(reader, SETTINGS[name]);
  reader.problems.throwIfAny();
  const values = Object.entries(traces).map(([name, { value }]) => [name, value]);
  return { ...Object.fromEntries(values), traces } as MediaSettings & { traces: SettingTraces };
}

function traced(reader: EnvironmentReader, setting: Setting<number | boolean>): Traced<unknown> {
  const { variable, byDefault, rule } = setting;
  const value = typeof byDefault === "boolean" ? reader.boolean(variable, rule) : reader.number(variable, rule);
  return value === undefined ? { value: byDefault, source: "default" } : { value, source: variable };
}

/** Notes what is wrong with the values of a config that is otherwise well-formed. */
export function expectMemory({ memoryBased = true, availableGb }: MediaConfig, problems: Problems): void {
  if (memoryBased && availableGb === undefined) {
    problems.add("Expected `availableGb` to be given, since the limits are memory-based", false);
  }
}

/** With nothing left open. Memory that is not asked for and not given is 0. */
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
