/**
 * Configuration comes in layers, the strongest last. They are laid over each other key by key: a key absent from a layer
 * keeps what lies below, and `null` is absent. Lists are values: they replace, they do not join.
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

export function dropNulls(value: Tree): Tree {
  const kept = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
  return Object.fromEntries(kept.map(([key, item]) => [key, isTree(item) ? dropNulls(item) : item]));
}

export function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
