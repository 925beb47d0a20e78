import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { ConfigSchema } from "@slotkeeper/protocol/schemas";
import { validator } from "../validation/validator.ts";
import { ConfigError } from "./config-error.ts";
import { defaultTree } from "./config-keys.ts";
import { crossProblems, doubleProblems } from "./cross-rules.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { dropNulls, isTree, type Layer, mergeLayers, type Tree } from "./layers.ts";
import { type Settings, settingsOf } from "./settings.ts";

export interface ConfigSources {
  /** A `config.json`; none: the embedded default. */
  readonly file?: string | undefined;
  readonly environment?: Environment | undefined;
  /** What the command line says. */
  readonly flags?: Tree | undefined;
}

export interface LoadedConfig {
  readonly settings: Settings;
  readonly tree: Tree;
  readonly origins: ReadonlyMap<string, string>;
  /** `file:<basename>`, or `default`. */
  readonly version: string;
}

const config = validator(ConfigSchema);
/** Without a file nobody has chosen to be reachable from elsewhere. */
const EMBEDDED: Layer = { origin: "default", tree: { listen: "127.0.0.1:8080" } };

/**
 * Flags over environment over file over defaults, key by key. Reads everything, then speaks once: a configuration with a
 * problem throws a `ConfigError` that has all of them. Pure but for the reading of the file.
 */
export function loadConfig({ file, environment = {}, flags = {} }: ConfigSources): LoadedConfig {
  const problems: string[] = [];
  const fromEnvironment = readEnvironment(environment);
  problems.push(...fromEnvironment.problems);
  const given: Layer[] = [
    ...(file === undefined ? [] : [{ origin: `file ${basename(file)}`, tree: readFile(file, problems) }]),
    { origin: "environment", tree: fromEnvironment.tree },
    { origin: "flag", tree: flags },
  ].map(({ origin, tree }) => ({ origin, tree: dropNulls(tree) }));
  for (const layer of given) problems.push(...shapeProblems(layer));
  if (problems.length > 0) throw new ConfigError(problems);

  const bottom: Layer[] = [{ origin: "default", tree: defaultTree() }, ...(file === undefined ? [EMBEDDED] : [])];
  const { tree, origins } = mergeLayers([...bottom, ...given]);
  const crossed = [...crossProblems(tree), ...doubleProblems(mergeLayers(given).tree)];
  if (crossed.length > 0) throw new ConfigError(crossed);
  return {
    settings: settingsOf(tree),
    tree,
    origins,
    version: file === undefined ? "default" : `file:${basename(file)}`,
  };
}

function shapeProblems({ origin, tree }: Layer): string[] {
  const checked = config.check(tree);
  return "value" in checked ? [] : checked.problems.map(({ message }) => `${message} (${origin})`);
}

function readFile(file: string, problems: string[]): Tree {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    problems.push(`Cannot read ${file}: ${(error as NodeJS.ErrnoException).code ?? "unknown error"}`);
    return {};
  }
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    if (isTree(value)) return value;
    problems.push(`Expected ${file} to hold a JSON object`);
  } catch (error) {
    problems.push(`${file} is not valid JSON${placeOf(error, text)}`);
  }
  return {};
}

/** Where, not what: the parser's own message quotes the text, which may hold a key. */
function placeOf(error: unknown, text: string): string {
  const position = /position (\d+)/.exec((error as Error).message)?.[1];
  if (position === undefined) return "";
  const before = text.slice(0, Number(position)).split("\n");
  return ` (line ${before.length}, column ${(before.at(-1) ?? "").length + 1})`;
}
