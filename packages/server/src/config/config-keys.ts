import { ConfigSchema } from "@slotkeeper/protocol/schemas";
import type { TSchema } from "typebox";
import type { Tree } from "./layers.ts";

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

/** What is read of an object in a schema, at any depth. */
export interface SchemaNode {
  readonly properties?: { readonly [key: string]: SchemaNode };
  readonly patternProperties?: { readonly [pattern: string]: SchemaNode };
  readonly default?: unknown;
  /** In the original service, such a number means the default. */
  readonly defaultAt?: "zero" | "zero or less";
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

export const CONFIG_KEYS: readonly ConfigKey[] = keysOf(ConfigSchema, []);

/** The defaults of all keys that have one. */
export function defaultTree(): Tree {
  const tree: { [key: string]: unknown } = {};
  for (const { path, schema } of CONFIG_KEYS) if (schema.default !== undefined) setAt(tree, path, schema.default);
  return tree;
}

export function setAt(tree: { [key: string]: unknown }, path: readonly string[], value: unknown): void {
  let here = tree;
  for (const key of path.slice(0, -1)) {
    here[key] ??= {};
    here = here[key] as { [key: string]: unknown };
  }
  here[path.at(-1) as string] = value;
}
