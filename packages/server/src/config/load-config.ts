import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { ServiceConfig } from "@slotkeeper/protocol";
import { ConfigSchema } from "@slotkeeper/protocol/schemas";
import { systemWords } from "../words/system-words.ts";
import type { Advice } from "./advice.ts";
import { defaultTree } from "./config-keys.ts";
import { layerChecker } from "./config-problems.ts";
import { configWarnings } from "./config-warnings.ts";
import { crossProblems } from "./cross-rules.ts";
import { withoutZeros, zeroAdvice } from "./default-zeros.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { ConfigError } from "./errors.ts";
import { isTree, type Layer, type Merged, mergeLayers, type Tree, withoutAbsent } from "./layers.ts";
import { isJudgeable } from "./queue-rules.ts";
import { type FilledConfig, type Settings, settingsOf } from "./settings.ts";

const checkLayer = layerChecker(ConfigSchema);

/** Where a configuration comes from. Flags override variables, and both override the file. */
export interface ConfigSources {
  /** The path of a `config.json`. Default: the built-in configuration. */
  readonly file?: string | undefined;
  readonly environment?: Environment | undefined;
  /** Values from the command line. */
  readonly flags?: Tree | undefined;
}

/** The answer of a control plane. */
export interface ControllerLayer {
  readonly version: string;
  readonly tree: Tree;
}

/** A checked configuration with all defaults, and the origin of each value. */
export interface LoadedConfig {
  readonly settings: Settings;
  readonly tree: Tree & FilledConfig;
  readonly origins: ReadonlyMap<string, string>;
  /** Settings that are valid but may not have the effect that their author wants. */
  readonly warnings: readonly Advice[];
  /** The version that the controller gave, if it has answered; otherwise `file:<basename>` or `default`. */
  readonly version: string;
}

/** With a shared key, the service accepts calls from other machines even if no address is configured. */
const OPEN: Layer = { origin: "default", tree: { listen: ":8080" } };

/**
 * Merges the layers key by key: flags over environment over controller over file over defaults. It reads everything
 * first. If there are problems, it throws one `ConfigError` with all of them, including invalid combinations. It has no
 * side effects except reading the file.
 *
 * @example
 * ```ts
 * import { loadConfig } from "@slotkeeper/server";
 *
 * const { settings, warnings } = loadConfig({ file: "config.json", environment: process.env });
 * console.log(settings.backend.mode, warnings);
 * ```
 */
export function loadConfig(sources: ConfigSources, controller?: ControllerLayer): LoadedConfig {
  const { file } = sources;
  const { layers, problems, badFields, advice } = readLayers(sources, controller);
  const { tree, origins } = overDefaults(layers);
  const crossed = crossProblems(tree).filter((problem) => isJudgeable(problem, badFields));
  const all = [...problems, ...crossed.map(({ message }) => message)];
  if (all.length > 0) throw new ConfigError(all);
  const local = file === undefined ? "default" : `file:${basename(file)}`;
  const version = controller?.version ?? local;
  return { settings: settingsOf(tree), tree, origins, warnings: [...advice, ...configWarnings(tree)], version };
}

/**
 * Reads only the settings of the control plane. Other settings may still come from the controller. Throws a
 * `ConfigError` if a layer is invalid.
 */
export function localSettings(sources: ConfigSources): Pick<LoadedConfig, "settings" | "tree"> {
  const { layers, problems } = readLayers(sources);
  const { tree } = overDefaults(layers);
  const settings = settingsOf(tree);
  // Without a controller, nothing can be added later: report all problems at once.
  if (problems.length > 0 && settings.controller === undefined) loadConfig(sources);
  if (problems.length > 0) throw new ConfigError(problems);
  return { settings, tree };
}

function overDefaults(layers: readonly Layer[]): Merged & { readonly tree: FilledConfig } {
  const { auth } = mergeLayers(layers).tree as ServiceConfig;
  return mergeLayers([
    { origin: "default", tree: defaultTree() },
    ...(auth?.enabled === true ? [OPEN] : []),
    ...layers,
  ]) as Merged & { readonly tree: FilledConfig };
}

interface ReadLayers {
  /** The layers without their invalid values. */
  readonly layers: readonly Layer[];
  readonly problems: readonly string[];
  readonly badFields: readonly string[];
  readonly advice: readonly Advice[];
}

function readLayers({ file, environment = {}, flags = {} }: ConfigSources, controller?: ControllerLayer): ReadLayers {
  const problems: string[] = [];
  const fromEnvironment = readEnvironment(environment);
  problems.push(...fromEnvironment.problems);
  const read = [
    ...(file === undefined ? [] : [{ origin: `file ${basename(file)}`, tree: readFile(file, problems) }]),
    ...(controller === undefined ? [] : [{ origin: "controller", tree: controller.tree }]),
    { origin: "environment", tree: fromEnvironment.tree },
    { origin: "flag", tree: flags },
  ].map(({ origin, tree }) => ({ origin, ...withoutZeros(withoutAbsent(tree), ConfigSchema) }));
  const checked = read.map(checkLayer);
  return {
    layers: checked.map(({ sound }) => sound),
    problems: [...problems, ...checked.flatMap((layer) => layer.problems)],
    badFields: checked.flatMap((layer) => layer.badFields),
    advice: [...zeroAdvice(read), ...checked.flatMap(({ unknown }) => unknown.map(unknownKeyAdvice))],
  };
}

/** A controller of a later version may send keys that this one does not know. */
function unknownKeyAdvice(message: string): Advice {
  return {
    code: "UNUSED_KEY",
    found: message.replace(/^U/, "u"),
    why: "the service does not use it",
    fix: "Correct its name at the controller, or remove it.",
  };
}

function readFile(file: string, problems: string[]): Tree {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    problems.push(`Cannot read ${file}: ${systemWords(error)}`);
    return {};
  }
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    if (isTree(value)) return value;
    problems.push(`Expected ${file} to contain a JSON object`);
  } catch (error) {
    problems.push(`${file} is not valid JSON${placeOf(error, text)}`);
  }
  return {};
}

/** The position only: the message of the parser quotes the text, which may contain a key. */
function placeOf(error: unknown, text: string): string {
  const position = /position (\d+)/.exec((error as Error).message)?.[1];
  if (position === undefined) return "";
  const before = text.slice(0, Number(position)).split("\n");
  return ` (line ${before.length}, column ${(before.at(-1) ?? "").length + 1})`;
}
