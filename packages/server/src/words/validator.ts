import { PATTERNS } from "@slotkeeper/protocol/schemas";
import type { Static, TSchema } from "typebox";

/** One invalid field, as a sentence. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

export type Checked<T> = { readonly value: T } | { readonly problems: readonly FieldProblem[] };

/** Checks values of one schema. */
export interface Validator<T> {
  check(value: unknown): Checked<T>;
}

/**
 * A schema, compiled once into functions. It needs no generated code, which Workers refuse to run. Messages are created only
 * for problems: all at once, one for each field.
 * It knows the keywords that our schemas use. Another one is an error here, so that no rule is ignored.
 */
export function validator<S extends TSchema>(schema: S): Validator<Static<S>> {
  const fits = testOf(schema as unknown as Json, false);
  return {
    check(value) {
      if (fits(value, ROOT, undefined)) return { value: value as Static<S> };
      const found = new Map<string, FieldProblem>();
      fits(value, ROOT, found);
      return { problems: [...found.values()] };
    },
  };
}

type Json = { readonly [key: string]: unknown };
type Path = readonly string[];
/** Whether a value fits. With `found`, its problems are added there. */
type Test = (value: unknown, path: Path, found: Map<string, FieldProblem> | undefined) => boolean;

const ROOT: Path = [];

/** How a value is checked that is not of the kind of its schema: not at all, or by its kind alone. */
const KINDS: { readonly [type: string]: readonly [words: string, isOf: (value: unknown) => boolean] } = {
  number: ["a number", Number.isFinite],
  integer: ["a whole number", Number.isInteger],
  string: ["a string", (value) => typeof value === "string"],
  boolean: ["true or false", (value) => typeof value === "boolean"],
  object: ["an object", isObject],
  array: ["a list", Array.isArray],
};

/** Keywords for one value: what is expected, and whether it is so. They apply only to values of the right kind. */
const RULES: { readonly [keyword: string]: (operand: never) => readonly [string, (value: never) => boolean] } = {
  minimum: (limit: number) => [`at least ${limit}`, (value: number) => value >= limit],
  exclusiveMinimum: (limit: number) => [`above ${limit}`, (value: number) => value > limit],
  maximum: (limit: number) => [`at most ${limit}`, (value: number) => value <= limit],
  minLength: (limit: number) => [
    limit === 1 ? "not empty" : `at least ${limit} characters long`,
    (value: string) => value.length >= limit && characters(value) >= limit,
  ],
  maxLength: (limit: number) => [
    `at most ${limit} characters long`,
    (value: string) => value.length <= limit || characters(value) <= limit,
  ],
  minItems: (limit: number) => ["not empty", (value: readonly unknown[]) => value.length >= limit],
  enum: (allowed: readonly unknown[]) => [
    `one of ${allowed.map((value) => JSON.stringify(value)).join(", ")}`,
    (value: unknown) => allowed.includes(value),
  ],
  pattern(source: string) {
    const pattern = new RegExp(source, "u");
    return [meaningOf(source), (value: string) => pattern.test(value)];
  },
};

/** Keywords that are only read by people, or with another keyword. */
const NOTES = new Set([
  "description",
  "default",
  "title",
  "$id",
  "$schema",
  "writeOnly",
  "examples",
  "aliasOf",
  "defaultAt",
]);
const PARTS = new Set(["type", "properties", "required", "additionalProperties", "patternProperties", "items"]);

function testOf(schema: Json, isAboveSecret: boolean): Test {
  const isSecret = isAboveSecret || schema["writeOnly"] === true;
  const unknown = Object.keys(schema).filter((key) => !(key in RULES) && !NOTES.has(key) && !PARTS.has(key));
  if (unknown.length > 0) throw new Error(`The validator does not know these keywords: ${unknown.join(", ")}`);
  const [kind, isOf] = KINDS[schema["type"] as string] ?? ["", () => true];
  const rules = Object.entries(RULES).flatMap(([keyword, rule]) =>
    schema[keyword] === undefined ? [] : [rule(schema[keyword] as never)],
  );
  const fitsInside = partsOf(schema, isSecret);
  return (value, path, found) => {
    if (!isOf(value)) return refuse(kind, value, path, found, isSecret);
    for (const [expected, isKept] of rules) {
      if (!isKept(value as never)) return refuse(expected, value, path, found, isSecret);
    }
    return fitsInside(value, path, found);
  };
}

/** The fields of an object, or the items of a list. Every field is checked, so that all problems are found. */
function partsOf(schema: Json, isSecret: boolean): Test {
  const { properties, required = [], additionalProperties, patternProperties, items } = schema;
  if (items !== undefined) {
    const fits = testOf(items as Json, isSecret);
    return (value, path, found) =>
      allOf(value as unknown[], (item, at) => fits(item, [...path, String(at)], found), found);
  }
  if (schema["type"] !== "object") return () => true;
  const tests = new Map(
    Object.entries((properties ?? {}) as Json).map(([key, one]) => [key, testOf(one as Json, isSecret)]),
  );
  const [every] = Object.values((patternProperties ?? {}) as Json);
  const others = every === undefined ? undefined : testOf(every as Json, isSecret);
  return (value, path, found) => {
    const given = Object.keys(value as Json);
    const missing = (required as string[]).filter((key) => (value as Json)[key] === undefined);
    const isWhole = allOf(missing, (key) => add(found, [...path, key], (field) => `\`${field}\` is required`), found);
    const areSound = allOf(
      given,
      (key) => {
        const one = (value as Json)[key];
        const test = tests.get(key) ?? others;
        if (test !== undefined)
          return one === undefined || test(one, found === undefined ? path : [...path, key], found);
        return additionalProperties !== false || add(found, [...path, key], (field) => `Unknown key \`${field}\``);
      },
      found,
    );
    return isWhole && areSound;
  };
}

/** Whether all are kept. Without `found`, the first one that is not decides. */
function allOf<T>(items: readonly T[], isKept: (item: T, at: number) => boolean, found: unknown): boolean {
  if (found === undefined) return items.every(isKept);
  return items.map(isKept).every(Boolean);
}

function refuse(
  expected: string,
  value: unknown,
  path: Path,
  found: Map<string, FieldProblem> | undefined,
  isSecret: boolean,
): false {
  return add(
    found,
    path,
    (field) => `Expected \`${field}\` to be ${expected}${isSecret ? "" : `, got ${shown(value)}`}`,
  );
}

function add(found: Map<string, FieldProblem> | undefined, path: Path, messageOf: (field: string) => string): false {
  const field = found === undefined ? "" : fieldName(path);
  if (found !== undefined && !found.has(field)) found.set(field, { field, message: messageOf(field) });
  return false;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Code points, as JSON Schema counts them. */
function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
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
