/**
 * The configuration comes in layers, the strongest last. They are merged key by key: a key that is absent from a layer
 * keeps the value of the layer below. `null` and the empty string count as absent. Lists are replaced as a whole, not
 * joined.
 */

export type Tree = { readonly [key: string]: unknown };

export interface Layer {
  /** Where the layer comes from, as shown to people: `default`, `file config.json`, `environment`, `flag`. */
  readonly origin: string;
  readonly tree: Tree;
}

export interface Merged {
  readonly tree: Tree;
  /** The origin of each value, by its path, joined with `PATH_SEPARATOR`. */
  readonly origins: ReadonlyMap<string, string>;
}

/** Host names contain dots and quotes, so paths are joined with a character that no key contains. */
export const PATH_SEPARATOR = "\u0000";

export function mergeLayers(layers: readonly Layer[]): Merged {
  const origins = new Map<string, string>();
  let tree: Tree = {};
  for (const layer of layers) tree = lay(tree, layer.tree, layer.origin, [], origins);
  return { tree, origins };
}

function lay(below: Tree, above: Tree, origin: string, path: readonly string[], origins: Map<string, string>): Tree {
  const laid = copyOf(above, (key, value) => {
    const here = [...path, key];
    if (!isTree(value)) {
      origins.set(here.join(PATH_SEPARATOR), origin);
      return value;
    }
    const under = below[key];
    return lay(isTree(under) ? under : {}, value, origin, here, origins);
  });
  return { ...below, ...laid };
}

/**
 * A copy with other values; `undefined` leaves a key out. Names of classes, buckets and hosts are keys, so any text may be
 * one: an assignment would lose `__proto__` without an error.
 */
export function copyOf(tree: Tree, valueOf: (key: string, value: unknown) => unknown): Tree {
  const copied = Object.entries(tree).map(([key, value]) => [key, valueOf(key, value)] as const);
  return Object.fromEntries(copied.filter(([, value]) => value !== undefined));
}

/** Removes absent values and remarks. */
export function withoutAbsent(tree: Tree, isMap = false): Tree {
  return copyOf(tree, (key, value) => {
    if (value === null || value === "" || isRemark(key, value, isMap)) return undefined;
    return isTree(value) ? withoutAbsent(value, MAPS.has(key)) : value;
  });
}

/** The keys that contain names of hosts and buckets. Such a name may begin with `_`. Text is a remark there, too. */
const MAPS: ReadonlySet<string> = new Set(["hosts", "weights", "budgets", "keys", "for", "classes"]);

function isRemark(key: string, value: unknown, isMap: boolean): boolean {
  if (key.startsWith("//")) return true;
  return (key === "notes" || key.startsWith("_")) && (!isMap || typeof value === "string");
}

export function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
