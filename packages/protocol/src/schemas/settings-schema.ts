import { type TArray, type TBoolean, type TEnum, type TInteger, type TNumber, type TOptional, Type } from "typebox";
import type { Setting, Settings } from "../settings/setting.ts";

type Mutable<T> = T extends readonly [...infer Items] ? [...Items] : never;

type SchemaOf<S extends Setting> = S extends { readonly choices: infer Choices }
  ? Mutable<Choices> extends infer Values extends string[]
    ? TEnum<Values>
    : never
  : S extends { readonly type: "flag" }
    ? TBoolean
    : S extends { readonly type: "codes" }
      ? TArray<TInteger>
      : TNumber;

type PropertiesOf<T extends Settings> = { [K in keyof T]: TOptional<SchemaOf<T[K]>> };

/** A table of settings as the properties of an object, all of them optional. */
export function propertiesOf<T extends Settings>(table: T): PropertiesOf<T> {
  const properties = Object.entries(table).map(([key, setting]) => [key, Type.Optional(schemaOf(setting))]);
  return Object.fromEntries(properties) as PropertiesOf<T>;
}

function schemaOf(setting: Setting) {
  const { about: description, default: fallback } = setting;
  const common = { ...(fallback === undefined ? {} : { default: fallback }), description };
  switch (setting.type) {
    case "flag":
      return Type.Boolean(common);
    case "choice":
      return Type.Enum([...setting.choices], common);
    case "codes":
      return Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), common);
    case "integer":
      return Type.Integer({ ...boundsOf(setting), ...common });
    case "number":
      return Type.Number({ ...boundsOf(setting), ...common });
  }
}

function boundsOf({ min, above, max }: Setting & { readonly type: "number" | "integer" }) {
  return {
    ...(min === undefined ? {} : { minimum: min }),
    ...(above === undefined ? {} : { exclusiveMinimum: above }),
    ...(max === undefined ? {} : { maximum: max }),
  };
}
