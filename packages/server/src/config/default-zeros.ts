import type { TSchema } from "typebox";
import { fieldName } from "../words/validator.ts";
import { type Advice, adviceIf } from "./advice.ts";
import type { SchemaNode } from "./config-keys.ts";
import { copyOf, isTree, type Layer, type Tree } from "./layers.ts";

/**
 * In the original service, some numbers mean their default if they are 0 (`defaultAt: "zero"`), or 0 or less. Its
 * configurations have such numbers, so they mean the same here.
 */
export interface WithoutZeros {
  readonly tree: Tree;
  /** The keys that were replaced. */
  readonly fields: readonly string[];
}

/** Replaces such numbers by their defaults. In an override of a host, the key counts as absent. */
export function withoutZeros(tree: Tree, schema: TSchema): WithoutZeros {
  const fields: string[] = [];
  return { tree: replaced(tree, schema, [], false, fields), fields };
}

function replaced(
  tree: Tree,
  { properties, patternProperties }: SchemaNode,
  path: readonly string[],
  isOverride: boolean,
  fields: string[],
): Tree {
  const [override] = Object.values(patternProperties ?? {});
  return copyOf(tree, (key, value) => {
    const node = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : override;
    const here = [...path, key];
    if (isTree(value)) return replaced(value, node ?? {}, here, isOverride || override !== undefined, fields);
    if (!isDefault(value, node ?? {})) return value;
    fields.push(fieldName(here));
    return isOverride ? undefined : node?.default;
  });
}

function isDefault(value: unknown, { defaultAt }: SchemaNode): boolean {
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
