import { fieldName } from "../words/validator.ts";
import { CONFIG_KEYS } from "./config-keys.ts";
import { isTree, PATH_SEPARATOR, type Tree } from "./layers.ts";
import type { LoadedConfig } from "./load-config.ts";

/** One key of the configuration with its value and origin. */
export interface PrintedKey {
  readonly key: string;
  /** `undefined` if it is not set and has no default. */
  readonly value: unknown;
  readonly origin: string;
}

const REDACTED = "[redacted]";
const SECRETS = CONFIG_KEYS.filter(({ schema }) => schema.writeOnly === true).map(({ path }) => path);
const SECRET_IDS = new Set(SECRETS.map((path) => path.join(PATH_SEPARATOR)));

/** Every key with its value and origin, in the order of the schema. Secrets are not shown. */
export function printedKeys({ tree, origins }: LoadedConfig): PrintedKey[] {
  const keys = CONFIG_KEYS.filter(({ schema }) => schema.aliasOf === undefined);
  return keys.flatMap(({ path }) => printed(path, valueAt(tree, path), origins));
}

function printed(path: readonly string[], value: unknown, origins: ReadonlyMap<string, string>): PrintedKey[] {
  if (isTree(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([key, item]) => printed([...path, key], item, origins));
  }
  const id = path.join(PATH_SEPARATOR);
  const origin = value === undefined ? "not set" : (origins.get(id) ?? "default");
  const shown = value !== undefined && SECRET_IDS.has(id) ? REDACTED : value;
  return [{ key: fieldName(path), value: shown, origin }];
}

/** The keys as a table in plain text. */
export function formatPrinted(keys: readonly PrintedKey[]): string {
  const text = keys.map(({ key, value, origin }) => [key, value === undefined ? "–" : JSON.stringify(value), origin]);
  const widths = [0, 1].map((column) => Math.max(...text.map((row) => (row[column] as string).length)));
  return text
    .map(([key, value, origin]) => `${key?.padEnd(widths[0] ?? 0)}  ${value?.padEnd(widths[1] ?? 0)}  ${origin}`)
    .join("\n");
}

function valueAt(tree: Tree, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (isTree(value) ? value[key] : undefined), tree);
}

/** Every secret of a configuration, for the scrubber. */
export function secretsOf({ tree }: Pick<LoadedConfig, "tree">): string[] {
  const found = SECRETS.flatMap((path) => valueAt(tree, path) as string | string[] | undefined);
  return found.filter((secret) => secret !== undefined);
}
