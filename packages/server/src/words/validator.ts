import { PATTERNS } from "@slotkeeper/protocol/schemas";
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/schema";
import { Settings } from "typebox/system";

/** One invalid field, as a sentence. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

// Lists all problems at once; by default the library stops at eight.
Settings.Set({ maxErrors: 1000 });

type Checked<T> = { readonly value: T } | { readonly problems: readonly FieldProblem[] };

/** Checks values of one schema. */
export interface Validator<T> {
  check(value: unknown): Checked<T>;
}

/** A schema, compiled once. A valid value takes one generated function call; messages are created only for problems. */
export function validator<S extends TSchema>(schema: S): Validator<Static<S>> {
  const compiled = Compile(schema);
  return {
    check(value) {
      if (compiled.Check(value)) return { value };
      const problems = new Map<string, FieldProblem>();
      for (const error of compiled.Errors(value)[1]) {
        for (const problem of problemOf(schema, value, error)) {
          if (!problems.has(problem.field)) problems.set(problem.field, problem);
        }
      }
      return { problems: [...problems.values()] };
    },
  };
}

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: object;
}

type Json = { readonly [key: string]: unknown };

const KINDS: { readonly [type: string]: string } = {
  number: "a number",
  integer: "a whole number",
  string: "a string",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};

const EXPECTATIONS: { readonly [keyword: string]: (params: Json) => string } = {
  type: ({ type }) => KINDS[String(type)] ?? String(type),
  minimum: ({ limit }) => `at least ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `above ${String(limit)}`,
  maximum: ({ limit }) => `at most ${String(limit)}`,
  minLength: ({ limit }) => (limit === 1 ? "not empty" : `at least ${String(limit)} characters long`),
  maxLength: ({ limit }) => `at most ${String(limit)} characters long`,
  minItems: () => "not empty",
  enum: ({ allowedValues }) =>
    `one of ${(allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(", ")}`,
  pattern: ({ pattern }) => meaningOf(String(pattern)),
};

/** Turns a finding of the schema library into a sentence. Empty if another finding explains it better. */
function problemOf(schema: TSchema, root: unknown, { keyword, instancePath, params }: SchemaError): FieldProblem[] {
  const path = instancePath.split("/").slice(1).map(unescapePointer);
  const given = params as Json;
  if (keyword === "required") {
    const missing = given["requiredProperties"] as string[];
    return missing.map((key) => ({
      field: fieldName([...path, key]),
      message: `\`${fieldName([...path, key])}\` is required`,
    }));
  }
  if (keyword === "boolean") return [{ field: fieldName(path), message: `Unknown key \`${fieldName(path)}\`` }];
  const expectation = EXPECTATIONS[keyword];
  if (expectation === undefined) return [];
  const field = fieldName(path);
  const got = isSecret(schema, path) ? "" : `, got ${shown(valueAt(root, path))}`;
  return [{ field, message: `Expected \`${field}\` to be ${expectation(given)}${got}` }];
}

/** `fairQueue.hosts["*.example.com"].maxSlotPerHost`; the whole body is `body`. */
export function fieldName(path: readonly string[]): string {
  let name = "";
  for (const key of path) {
    if (/^\d+$/.test(key)) name += `[${key}]`;
    else if (/^[A-Za-z_$][\w$]*$/.test(key)) name += name === "" ? key : `.${key}`;
    else name += `[${JSON.stringify(key)}]`;
  }
  return name === "" ? "body" : name;
}

/** Lists and objects are not shown, because they may be nested very deeply. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

function meaningOf(pattern: string): string {
  return Object.values(PATTERNS).find(({ source }) => source === pattern)?.means ?? `like ${pattern}`;
}

function unescapePointer(key: string): string {
  return key.replaceAll("~1", "/").replaceAll("~0", "~");
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (value as Json | undefined)?.[key], root);
}

/** Whether the schema marks the key, or one above it, as `writeOnly`. */
function isSecret(schema: TSchema, path: readonly string[]): boolean {
  let here = schema as unknown as Json | undefined;
  for (const key of path) {
    const properties = here?.["properties"] as Json | undefined;
    const patterns = Object.values((here?.["patternProperties"] as Json | undefined) ?? {});
    here = (properties?.[key] ?? patterns[0]) as Json | undefined;
    if (here?.["writeOnly"] === true) return true;
  }
  return false;
}
