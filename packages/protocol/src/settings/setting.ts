/**
 * One key of a table of settings, as plain data. Schema, checks, defaults and documentation are made from it. `about.ts` says
 * what it means.
 */
export type Setting = NumberSetting | FlagSetting | ChoiceSetting | CodesSetting;

/** A number, with its unit and bounds. */
export interface NumberSetting {
  readonly type: "number" | "integer";
  readonly unit: "milliseconds" | "seconds" | "percent" | "count" | "factor";
  /** The smallest allowed value. */
  readonly min?: number;
  /** The value must be above this. */
  readonly above?: number;
  readonly max?: number;
  /** Absent: computed from other settings, as its text in `about.ts` says. */
  readonly default?: number;
  /** Zero or less means that there is no limit, unless `defaultAt` says otherwise. */
  readonly isOffAt0?: true;
  /** The values that mean the default in `config.json`, as in the original service. The engine does not know this rule. */
  readonly defaultAt?: "zero" | "zero or less";
  /** Another name of the key in `config.json`. */
  readonly alias?: string;
}

interface FlagSetting {
  readonly type: "flag";
  readonly default: boolean;
}

interface ChoiceSetting {
  readonly type: "choice";
  readonly choices: readonly string[];
  /** `budget:` and the name of a budget of the host is a choice, too. */
  readonly orBudget?: true;
  readonly default: string;
}

/** A list of HTTP status codes. */
interface CodesSetting {
  readonly type: "codes";
  readonly default: readonly number[];
}

/** The order by a budget: `budget:` and its name. */
type BudgetOrder = `budget:${string}`;

/** A table of settings by key. */
export type Settings = { readonly [key: string]: Setting };

/** The value of a setting, as a configuration has it. */
export type ValueOf<S extends Setting> = S extends { readonly choices: readonly (infer Choice)[] }
  ? Choice | (S extends { readonly orBudget: true } ? BudgetOrder : never)
  : S extends FlagSetting
    ? boolean
    : S extends CodesSetting
      ? readonly number[]
      : number;

type DefaultedKey<T extends Settings> = {
  [K in keyof T]: T[K] extends { readonly default: unknown } ? K : never;
}[keyof T];

/** The defaults of a table, by key. Keys without one are missing. */
export function defaultsOf<T extends Settings>(table: T): { readonly [K in DefaultedKey<T>]: ValueOf<T[K]> } {
  const given = Object.entries(table).filter(([, setting]) => setting.default !== undefined);
  return Object.fromEntries(given.map(([key, setting]) => [key, setting.default])) as never;
}
