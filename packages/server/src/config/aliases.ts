import { FairQueueSectionSchema } from "@slotkeeper/protocol/schemas";
import { fieldName } from "../words/validator.ts";
import { keysOf } from "./config-keys.ts";
import { isTree, type Tree } from "./layers.ts";

/** Plain names of keys, by alias. They are renamed in each layer, because layers are merged by key. */
const ALIASES = new Map(
  keysOf(FairQueueSectionSchema, []).flatMap(({ path, schema }) =>
    schema.aliasOf === undefined ? [] : [[path.at(-1), schema.aliasOf]],
  ),
);

/** A layer in which every key has one name. `problems` has the keys that are set twice, to different values. */
export function withoutAliases(tree: Tree, problems: { field: string; message: string }[]): Tree {
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
