import * as Type from "typebox";

/** An object with any keys. `Type.Record` gives the same schema, but loads a third of the library. */
export function recordOf<S extends Type.TSchema>(
  values: S,
  options: Type.TSchemaOptions,
): Type.TUnsafe<{ [key: string]: Type.Static<S> }> {
  return Type.Unsafe({ type: "object", patternProperties: { "^.*$": values }, ...options });
}
