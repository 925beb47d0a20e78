import type { TSchema } from "typebox";

/** Texts by key, as deep as the schema that they describe. The values of an object with any keys have the same texts. */
export interface Texts {
  readonly [key: string]: string | Texts;
}

type Json = { readonly [key: string]: unknown };

/** The schema with a description of each key. */
export function described<S extends TSchema>(schema: S, texts: string | Texts = {}): S {
  if (typeof texts === "string") return { ...schema, description: texts };
  const { properties, patternProperties } = schema as unknown as Json;
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: each(properties, (key) => texts[key]) }),
    ...(patternProperties === undefined ? {} : { patternProperties: each(patternProperties, () => texts) }),
  };
}

function each(schemas: unknown, textsOf: (key: string) => string | Texts | undefined): Json {
  return Object.fromEntries(
    Object.entries(schemas as Json).map(([key, schema]) => [key, described(schema as TSchema, textsOf(key))]),
  );
}
