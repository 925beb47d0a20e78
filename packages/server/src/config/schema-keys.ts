import type { TSchema } from "typebox";

/** One key of the configuration that holds a value. `fairQueue.hosts` is one key, with everything in it. */
export interface ConfigKey {
  readonly path: readonly string[];
  readonly schema: ConfigKeySchema;
  /** Its environment variable. */
  readonly variable: string;
}

export interface ConfigKeySchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly description?: string;
  readonly writeOnly?: boolean;
  /** This key is another name of that one. */
  readonly aliasOf?: string;
  readonly items?: ConfigKeySchema;
}

/** The keys of a schema. */
export function keysOf(schema: TSchema, path: readonly string[]): ConfigKey[] {
  const { properties } = schema as { properties?: Record<string, TSchema> };
  if (properties === undefined) {
    return [{ path, schema, variable: variableOf(path) }];
  }
  return Object.entries(properties)
    .filter(([key]) => key !== "$schema")
    .flatMap(([key, item]) => keysOf(item, [...path, key]));
}

/** `fairQueue.maxWaitMs` → `SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS`. */
function variableOf(path: readonly string[]): string {
  const levels = path.map((key) => key.replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase());
  return `SLOTKEEPER_${levels.join("__")}`;
}
