import { ConfigSchema } from "@slotkeeper/protocol/schemas";
import type { Tree } from "./layers.ts";
import { type ConfigKey, keysOf } from "./schema-keys.ts";

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
