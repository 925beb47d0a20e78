import type { TSchema } from "typebox";
import { ConfigSchema } from "./config-schema.ts";

type Json = { [key: string]: unknown };

/**
 * The `$schema` file for editors. There `null` and the empty string are allowed wherever a key may be absent, because
 * they mean just that, and so are the keys for remarks.
 */
export function configDocument(): Json {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...(nullable(ConfigSchema, true) as Json),
  };
}

function nullable(schema: TSchema, isRequired: boolean): unknown {
  const { type, enum: values, properties, patternProperties, ...own } = schema as unknown as Json;
  const rest = forEditors(own);
  if (!isRequired && type === "string") return { anyOf: [{ type, ...rest }, { enum: ["", null] }] };
  return {
    ...(type === undefined ? {} : { type: isRequired ? type : [type, "null"] }),
    ...(values === undefined ? {} : { enum: isRequired ? values : [...(values as unknown[]), "", null] }),
    ...rest,
    ...(properties === undefined ? {} : { properties: { ...each(properties), notes: true } }),
    ...(properties === undefined ? {} : { patternProperties: { "^(?://|_)": true } }),
    ...(patternProperties === undefined ? {} : { patternProperties: each(patternProperties) }),
  };
}

/** Without our own keywords. A number that may be zero or less to mean the default has no least value. */
function forEditors(schema: Json): Json {
  const isBounded = schema["defaultAt"] !== "zero or less";
  const isShown = (key: string) => {
    if (key === "defaultAt" || key === "aliasOf") return false;
    return isBounded || (key !== "minimum" && key !== "exclusiveMinimum");
  };
  return Object.fromEntries(Object.entries(schema).filter(([key]) => isShown(key)));
}

function each(schemas: unknown): Json {
  return Object.fromEntries(
    Object.entries(schemas as Json).map(([key, item]) => [key, nullable(item as TSchema, false)]),
  );
}
