import type { TArray, TBoolean, TEnum, TInteger, TNumber, TUnsafe } from "typebox";
import type { Setting, Settings, ValueOf } from "../settings/setting.ts";
import { PATTERNS } from "./patterns.ts";
import * as Type from "./type.ts";

type Mutable<T> = T extends readonly [...infer Items] ? [...Items] : never;

type SchemaOf<S extends Setting> = S extends { readonly orBudget: true }
  ? TUnsafe<ValueOf<S>>
  : S extends { readonly choices: infer Choices }
    ? Mutable<Choices> extends infer Values extends string[]
      ? TEnum<Values>
      : never
    : S extends { readonly type: "flag" }
      ? TBoolean
      : S extends { readonly type: "codes" }
        ? TArray<TInteger>
        : TNumber;

type PropertiesOf<T extends Settings> = { [K in keyof T]: SchemaOf<T[K]> };

/** A table of settings as the properties of an object. */
export function propertiesOf<T extends Settings>(table: T): PropertiesOf<T> {
  const properties = Object.entries(table).map(([key, setting]) => [key, schemaOf(setting)]);
  return Object.fromEntries(properties) as PropertiesOf<T>;
}

/** The other names of a table's settings, as properties. `aliasOf` is the setting that each of them sets. */
export function aliasesOf(table: Settings): { [alias: string]: TNumber } {
  const aliases = Object.entries(table).flatMap(([key, setting]) => {
    const { alias } = setting as { readonly alias?: string };
    if (alias === undefined) return [];
    const { default: _, ...own } = schemaOf(setting) as TNumber & { default?: number };
    return [[alias, { ...own, aliasOf: key, description: `the same as \`${key}\`` }]];
  });
  return Object.fromEntries(aliases) as { [alias: string]: TNumber };
}

function schemaOf(setting: Setting) {
  const { default: fallback } = setting;
  const defaultAt = "defaultAt" in setting ? { defaultAt: setting.defaultAt } : {};
  const common = { ...(fallback === undefined ? {} : { default: fallback }), ...defaultAt };
  switch (setting.type) {
    case "flag":
      return Type.Boolean(common);
    case "choice":
      if (setting.orBudget === true) return Type.String({ pattern: PATTERNS.order.source, ...common });
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
