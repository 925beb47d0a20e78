import type { TSchema } from "typebox";
import { fieldName } from "../words/validator.ts";
import { type Advice, adviceIf } from "./advice.ts";
import { isTree, type Layer, type Tree } from "./layers.ts";

/**
 * In the original service, some numbers mean their default if they are 0 (`defaultAt: "zero"`), or 0 or less. Its
 * configurations have such numbers, so they mean the same here.
 */
export interface WithoutZeros {
  readonly tree: Tree;
  /** The keys that were replaced. */
  readonly fields: readonly string[];
}

interface Node {
  readonly properties?: { readonly [key: string]: Node };
  readonly patternProperties?: { readonly [pattern: string]: Node };
  readonly default?: unknown;
  readonly defaultAt?: "zero" | "zero or less";
}

/** Replaces such numbers by their defaults. In an override of a host, the key counts as absent. */
export function withoutZeros(tree: Tree, schema: TSchema): WithoutZeros {
  const fields: string[] = [];
  return { tree: replaced(tree, schema, [], false, fields), fields };
}

function replaced(
  tree: Tree,
  { properties, patternProperties }: Node,
  path: readonly string[],
  isOverride: boolean,
  fields: string[],
): Tree {
  const kept: { [key: string]: unknown } = {};
  const [override] = Object.values(patternProperties ?? {});
  for (const [key, value] of Object.entries(tree)) {
    const node = properties?.[key] ?? override ?? {};
    const here = [...path, key];
    if (isTree(value)) kept[key] = replaced(value, node, here, isOverride || override !== undefined, fields);
    else if (!isDefault(value, node)) kept[key] = value;
    else {
      fields.push(fieldName(here));
      if (node.default !== undefined && !isOverride) kept[key] = node.default;
    }
  }
  return kept;
}

function isDefault(value: unknown, { defaultAt }: Node): boolean {
  return value === 0 ? defaultAt !== undefined : typeof value === "number" && value < 0 && defaultAt === "zero or less";
}

/** One warning about all of them. */
export function zeroAdvice(layers: readonly (Pick<Layer, "origin"> & Pick<WithoutZeros, "fields">)[]): Advice[] {
  const all = layers.flatMap(({ origin, fields }) => fields.map((field) => `\`${field}\` (${origin})`));
  return adviceIf(
    all.length > 0,
    "ZERO_IS_DEFAULT",
    `${all.join(", ")} ${all.length === 1 ? "is" : "are"} 0 or less`,
    "as in the original service, such a value means the default",
    "Remove it, or write the value that you want.",
  );
}
