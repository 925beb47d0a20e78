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

/** What a control plane said. */
export interface ControllerLayer {
  readonly version: string;
  readonly tree: Tree;
}

export interface LoadedConfig {
  readonly settings: Settings;
  readonly tree: Tree;
  readonly origins: ReadonlyMap<string, string>;
  /** The controller's, where it has been heard; else `file:<basename>`, or `default`. */
  readonly version: string;
}

const config = validator(ConfigSchema);
/** Without a file nobody has chosen to be reachable from elsewhere. */
const EMBEDDED: Layer = { origin: "default", tree: { listen: "127.0.0.1:8080" } };
/** Who is asked cannot depend on the answer. */
const NOT_FROM_CONTROLLER = ["url", "apiPrefix"] as const;

/**
 * Flags over environment over controller over file over defaults, key by key. Reads everything, then speaks once: a
 * configuration with a problem throws a `ConfigError` that has all of them. Pure but for the reading of the file.
 */
export function loadConfig(sources: ConfigSources, controller?: ControllerLayer): LoadedConfig {
  const { file } = sources;
  const given = readLayers(sources, controller);
  const { tree, origins } = mergeLayers([...bottomOf(sources), ...given]);
  const crossed = [...crossProblems(tree), ...doubleProblems(mergeLayers(given).tree)];
  if (crossed.length > 0) throw new ConfigError(crossed);
  const local = file === undefined ? "default" : `file:${basename(file)}`;
  return { settings: settingsOf(tree), tree, origins, version: controller?.version ?? local };
}

/**
 * What is said here about the control plane, and nothing else: what the rest lacks may be what the controller has to
 * say. Throws a `ConfigError` where a layer is not as it should be.
 */
export function localSettings(sources: ConfigSources): { readonly settings: Settings; readonly tree: Tree } {
  const { tree } = mergeLayers([...bottomOf(sources), ...readLayers(sources)]);
  return { settings: settingsOf(tree), tree };
}

function bottomOf({ file }: ConfigSources): Layer[] {
  return [{ origin: "default", tree: defaultTree() }, ...(file === undefined ? [EMBEDDED] : [])];
}

function readLayers({ file, environment = {}, flags = {} }: ConfigSources, controller?: ControllerLayer): Layer[] {
  const problems: string[] = [];
  const fromEnvironment = readEnvironment(environment);
  problems.push(...fromEnvironment.problems);
  const given: Layer[] = [
    ...(file === undefined ? [] : [{ origin: `file ${basename(file)}`, tree: readFile(file, problems) }]),
    ...(controller === undefined ? [] : [{ origin: "controller", tree: controller.tree }]),
    { origin: "environment", tree: fromEnvironment.tree },
    { origin: "flag", tree: flags },
  ].map(({ origin, tree }) => ({ origin, tree: dropNulls(tree) }));
  for (const layer of given) problems.push(...shapeProblems(layer));
  if (problems.length > 0) throw new ConfigError(problems);
  return given;
}

function shapeProblems({ origin, tree }: Layer): string[] {
  const checked = config.check(tree);
  const problems = "value" in checked ? [] : checked.problems.map(({ message }) => `${message} (${origin})`);
  const own = tree["controller"];
  if (origin !== "controller" || !isTree(own)) return problems;
  const misplaced = NOT_FROM_CONTROLLER.filter((key) => own[key] !== undefined);
  return [...problems, ...misplaced.map((key) => `\`controller.${key}\` cannot come from the controller (controller)`)];
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
