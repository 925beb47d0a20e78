import { FairQueueSectionSchema } from "@slotkeeper/protocol/schemas";
import type { TSchema } from "typebox";
import { nearMatch } from "../words/near-match.ts";
import { type FieldProblem, fieldName, validator } from "../words/validator.ts";
import { keysOf, type SchemaNode } from "./config-keys.ts";
import { copyOf, isTree, type Layer, type Tree } from "./layers.ts";
import { isUnder } from "./queue-rules.ts";

/**
 * The problems of one layer, and the layer without the invalid values, so that the rest can be checked in the same
 * pass.
 */
export interface CheckedLayer {
  readonly problems: readonly string[];
  readonly badFields: readonly string[];
  readonly sound: Layer;
  /** Unknown keys that are no problem: a controller may know keys of a later version. */
  readonly unknown: readonly string[];
}

/** The controller cannot change the address at which it is called. */
const NOT_FROM_CONTROLLER = ["controller.url", "controller.apiPrefix"] as const;

/** Returns a function that checks layers of a configuration with this schema. */
export function layerChecker(schema: TSchema): (layer: Layer) => CheckedLayer {
  const values = validator(schema);
  return (layer) => {
    const checked = values.check(layer.tree);
    const all = "value" in checked ? [] : checked.problems.map((problem) => withSuggestion(problem, schema));
    return checkedLayer(layer, all);
  };
}

function checkedLayer({ origin, tree }: Layer, all: readonly FieldProblem[]): CheckedLayer {
  const unknown = origin === "controller" ? all.filter(isUnknownKey) : [];
  const found = all.filter((problem) => !unknown.includes(problem));
  if (origin === "controller" && isTree(tree["controller"])) {
    const own = tree["controller"];
    const misplaced = NOT_FROM_CONTROLLER.filter((field) => own[field.slice("controller.".length)] !== undefined);
    found.push(...misplaced.map((field) => ({ field, message: `\`${field}\` cannot come from the controller` })));
  }
  const valid = withoutFields(tree, new Set([...found, ...unknown].map(({ field }) => field)), []);
  const sound = { origin, tree: withoutAliases(valid, found) };
  const messages = (problems: readonly FieldProblem[]) => problems.map(({ message }) => `${message} (${origin})`);
  return {
    problems: messages(found),
    badFields: found.map(({ field }) => field),
    sound,
    unknown: messages(unknown),
  };
}

function isUnknownKey({ message }: FieldProblem): boolean {
  return message.startsWith("Unknown key");
}

function withoutFields(tree: Tree, bad: ReadonlySet<string>, path: readonly string[]): Tree {
  if (bad.size === 0) return tree;
  return copyOf(tree, (key, value) => {
    const here = [...path, key];
    const field = fieldName(here);
    if (bad.has(field) || (Array.isArray(value) && [...bad].some((name) => isUnder(name, field)))) return undefined;
    return isTree(value) ? withoutFields(value, bad, here) : value;
  });
}

/** For an unknown key, suggests the key that was probably meant, in the same object or elsewhere. */
function withSuggestion(problem: FieldProblem, schema: TSchema): FieldProblem {
  if (!isUnknownKey(problem)) return problem;
  const [, parent = "", key = ""] = /^(?:(.*)\.)?(.*?)$/.exec(problem.field) ?? [];
  const elsewhere = keysOf(schema, []).find(({ path }) => path.at(-1) === key && !path.includes("rpc"));
  const near =
    nearMatch(key, keysAt(parent, schema)) ?? (elsewhere === undefined ? undefined : fieldName(elsewhere.path));
  return near === undefined ? problem : { ...problem, message: `${problem.message}: did you mean \`${near}\`?` };
}

/** The keys of the object at this path. All hosts have the same keys. */
function keysAt(field: string, schema: TSchema): string[] {
  let here = schema as SchemaNode | undefined;
  for (const key of field.replaceAll(/\["(?:[^"\\]|\\.)*"\]/g, ".*").split(".")) {
    if (key === "") continue;
    here = here?.properties?.[key] ?? Object.values(here?.patternProperties ?? {})[0];
  }
  return Object.keys(here?.properties ?? {});
}

/** Plain names of keys, by alias. They are renamed in each layer, because layers are merged by key. */
const ALIASES = new Map(
  keysOf(FairQueueSectionSchema, []).flatMap(({ path, schema }) =>
    schema.aliasOf === undefined ? [] : [[path.at(-1), schema.aliasOf]],
  ),
);

/** A layer in which every key has one name. `problems` has the keys that are set twice, to different values. */
function withoutAliases(tree: Tree, problems: { field: string; message: string }[]): Tree {
  const { fairQueue } = tree;
  if (!isTree(fairQueue)) return tree;
  const { hosts } = fairQueue;
  const path = ["fairQueue"];
  const plain = renamed(fairQueue, path, problems);
  if (!isTree(hosts)) return { ...tree, fairQueue: plain };
  const overrides = Object.entries(hosts).map(([host, own]) => [
    host,
    isTree(own) ? renamed(own, [...path, "hosts", host], problems) : own,
  ]);
  return { ...tree, fairQueue: { ...plain, hosts: Object.fromEntries(overrides) as Tree } };
}

function renamed(tree: Tree, path: readonly string[], problems: { field: string; message: string }[]): Tree {
  const kept: { [key: string]: unknown } = { ...tree };
  for (const [alias, key] of ALIASES) {
    if (kept[alias as string] === undefined) continue;
    const { [alias as string]: value } = kept;
    delete kept[alias as string];
    if (kept[key] !== undefined && kept[key] !== value) {
      const field = fieldName([...path, alias as string]);
      const other = fieldName([...path, key]);
      problems.push({ field, message: `\`${field}\` and \`${other}\` are the same key, but have different values` });
    }
    kept[key] = value;
  }
  return kept;
}
