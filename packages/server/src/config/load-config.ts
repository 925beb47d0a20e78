import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { ServiceConfig } from "@slotkeeper/protocol";
import type { Advice } from "./advice.ts";
import { ConfigError } from "./config-error.ts";
import { defaultTree } from "./config-keys.ts";
import { checkLayer, isJudgeable } from "./config-problems.ts";
import { configWarnings } from "./config-warnings.ts";
import { crossProblems } from "./cross-rules.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { isTree, type Layer, type Merged, mergeLayers, type Tree, withoutAbsent } from "./layers.ts";
import { type FilledConfig, type Settings, settingsOf } from "./settings.ts";

/** Where a configuration comes from. Flags override variables, and both override the file. */
export interface ConfigSources {
  /** A `config.json`; none: the embedded default. */
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
  /** What is accepted and yet may not be what its author wants. */
  readonly warnings: readonly Advice[];
  /** The controller's, if it has answered; else `file:<basename>`, or `default`. */
  readonly version: string;
}

/** With a shared key the service may be reached from elsewhere although no address is configured. */
const OPEN: Layer = { origin: "default", tree: { listen: ":8080" } };

/**
 * Flags over environment over controller over file over defaults, key by key. Reads everything, then speaks once: a
 * configuration with a problem throws a `ConfigError` that has all of them, of shape and of combination. Pure but for
 * the reading of the file.
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
  const { layers, problems, badFields } = readLayers(sources, controller);
  const { tree, origins } = overDefaults(layers);
  const crossed = crossProblems(tree).filter((problem) => isJudgeable(problem, badFields));
  const all = [...problems, ...crossed.map(({ message }) => message)];
  if (all.length > 0) throw new ConfigError(all);
  const local = file === undefined ? "default" : `file:${basename(file)}`;
  const version = controller?.version ?? local;
  return { settings: settingsOf(tree), tree, origins, warnings: configWarnings(tree), version };
}

/**
 * What is said here about the control plane, and nothing else: what the rest lacks may be what the controller has to
 * say. Throws a `ConfigError` where a layer is not as it should be.
 */
export function localSettings(sources: ConfigSources): Pick<LoadedConfig, "settings" | "tree"> {
  const { layers, problems } = readLayers(sources);
  const { tree } = overDefaults(layers);
  const settings = settingsOf(tree);
  // Without a controller nothing more will come: report all problems at once.
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
  /** Without what is wrong in them. */
  readonly layers: readonly Layer[];
  readonly problems: readonly string[];
  readonly badFields: readonly string[];
}

function readLayers({ file, environment = {}, flags = {} }: ConfigSources, controller?: ControllerLayer): ReadLayers {
  const problems: string[] = [];
  const fromEnvironment = readEnvironment(environment);
  problems.push(...fromEnvironment.problems);
  const checked = [
    ...(file === undefined ? [] : [{ origin: `file ${basename(file)}`, tree: readFile(file, problems) }]),
    ...(controller === undefined ? [] : [{ origin: "controller", tree: controller.tree }]),
    { origin: "environment", tree: fromEnvironment.tree },
    { origin: "flag", tree: flags },
  ].map(({ origin, tree }) => checkLayer({ origin, tree: withoutAbsent(tree) }));
  return {
    layers: checked.map(({ sound }) => sound),
    problems: [...problems, ...checked.flatMap((layer) => layer.problems)],
    badFields: checked.flatMap((layer) => layer.badFields),
  };
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
    problems.push(`Expected ${file} to contain a JSON object`);
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
