import type {
  Static,
  TAny,
  TArray,
  TArrayOptions,
  TBoolean,
  TEnum,
  TInteger,
  TLiteral,
  TNull,
  TNumber,
  TNumberOptions,
  TObject,
  TObjectOptions,
  TOptional,
  TProperties,
  TSchema,
  TSchemaOptions,
  TString,
  TStringOptions,
  TUnion,
  TUnsafe,
} from "typebox";

/**
 * Schemas are plain JSON Schema with the types of TypeBox. These functions make what its functions of the same names make.
 * Theirs also load 2.3 kB (gzip) for its own validator into every Worker.
 */

const OPTIONAL = Symbol("optional");

/** The callers say which schema it is. */
const make = (keywords: object, options: object = {}) => ({ ...keywords, ...options }) as never;

export const Any = (options?: TSchemaOptions): TAny => make({}, options);
export const Null = (): TNull => make({ type: "null" });
export const Integer = (options?: TNumberOptions): TInteger => make({ type: "integer" }, options);

export function Literal<const V extends string | number | boolean>(value: V, options?: TSchemaOptions): TLiteral<V> {
  return make({ type: typeof value, const: value }, options);
}

export function Enum<const V extends string[]>(values: readonly [...V], options?: TSchemaOptions): TEnum<V> {
  return make({ enum: values }, options);
}

export function Union<S extends TSchema[]>(anyOf: [...S]): TUnion<S> {
  return make({ anyOf });
}

/** A schema whose type cannot be derived from it. */
export function Unsafe<T>(schema: TSchema): TUnsafe<T> {
  return make(schema);
}

/** An object with any keys. */
export function recordOf<S extends TSchema>(values: S, options: TSchemaOptions): TUnsafe<{ [key: string]: Static<S> }> {
  return make({ type: "object", patternProperties: { "^.*$": values } }, options);
}

/** A property that may be absent. */
export function Optional<S extends TSchema>(schema: S): TOptional<S> {
  return make(schema, { [OPTIONAL]: true });
}

function object<P extends TProperties>(properties: P, options?: TObjectOptions): TObject<P> {
  const required = Object.keys(properties).filter((key) => !(OPTIONAL in (properties[key] as object)));
  return make({ type: "object", ...(required.length === 0 ? {} : { required }), properties }, options);
}

/** An object whose properties may all be absent. */
export function partial<P extends TProperties>(
  properties: P,
  options?: TObjectOptions,
): TObject<{ [K in keyof P]: TOptional<P[K]> }> {
  return make({ type: "object", properties }, options);
}

/** An object of known keys, each of which may be absent. */
export function section<P extends TProperties>(
  properties: P,
  options?: TObjectOptions,
): TObject<{ [K in keyof P]: TOptional<P[K]> }> {
  return partial(properties, { additionalProperties: false, ...options });
}

function array<S extends TSchema>(items: S, options?: TArrayOptions): TArray<S> {
  return make({ type: "array", items }, options);
}

const boolean = (options?: TSchemaOptions): TBoolean => make({ type: "boolean" }, options);
const number = (options?: TNumberOptions): TNumber => make({ type: "number" }, options);
const string = (options?: TStringOptions): TString => make({ type: "string" }, options);

export { array as Array, boolean as Boolean, number as Number, object as Object, string as String };
