/**
 * Configuration comes in layers, the strongest last. They are laid over each other key by key: a key absent from a layer
 * keeps what lies below; `null` and the empty string are absent. Lists are values: they replace, they do not join.
 */

export type Tree = { readonly [key: string]: unknown };

export interface Layer {
  /** Where it comes from, as shown to a person: `default`, `file config.json`, `environment`, `flag`. */
  readonly origin: string;
  readonly tree: Tree;
}

export interface Merged {
  readonly tree: Tree;
  /** By path, joined with `PATH_SEPARATOR`. */
  readonly origins: ReadonlyMap<string, string>;
}

/** Host names contain dots and quotes: paths are joined by what no key contains. */
export const PATH_SEPARATOR = "\u0000";

export function mergeLayers(layers: readonly Layer[]): Merged {
  const origins = new Map<string, string>();
  let tree: Tree = {};
  for (const layer of layers) tree = lay(tree, layer.tree, layer.origin, [], origins);
  return { tree, origins };
}

function lay(below: Tree, above: Tree, origin: string, path: readonly string[], origins: Map<string, string>): Tree {
  const merged: { [key: string]: unknown } = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const here = [...path, key];
    if (isTree(value)) {
      const under = below[key];
      merged[key] = lay(isTree(under) ? under : {}, value, origin, here, origins);
    } else {
      merged[key] = value;
      origins.set(here.join(PATH_SEPARATOR), origin);
    }
  }
  return merged;
}

/** Without what is absent, and without remarks. */
export function withoutAbsent(tree: Tree, isMap = false): Tree {
  const kept: { [key: string]: unknown } = {};
  for (const [key, value] of Object.entries(tree)) {
    if (value === null || value === undefined || value === "" || isRemark(key, value, isMap)) continue;
    kept[key] = isTree(value) ? withoutAbsent(value, MAPS.has(key)) : value;
  }
  return kept;
}

/** The keys whose own keys are names of hosts and buckets. Such a name may begin with `_`; a text is a remark there too. */
const MAPS: ReadonlySet<string> = new Set(["hosts", "weights"]);

function isRemark(key: string, value: unknown, isMap: boolean): boolean {
  if (key.startsWith("//")) return true;
  return (key === "notes" || key.startsWith("_")) && (!isMap || typeof value === "string");
}

export function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
