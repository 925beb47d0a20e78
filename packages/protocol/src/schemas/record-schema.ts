import type { Static, TSchema, TSchemaOptions, TUnsafe } from "typebox";
import * as Type from "./type.ts";

/** An object with any keys. */
export function recordOf<S extends TSchema>(values: S, options: TSchemaOptions): TUnsafe<{ [key: string]: Static<S> }> {
  return Type.Unsafe({ type: "object", patternProperties: { "^.*$": values }, ...options });
}
