import { LIMITS } from "../limits.ts";
import {
  type BudgetConfig,
  type BudgetPolicies,
  budgetProblems,
  hasEnforced,
  resolveBudgets,
} from "./budget-settings.ts";
import type { Settings } from "./setting.ts";
import { expected, isAbsent, isRecord, nameProblems, numberProblems, tableProblems } from "./setting-checks.ts";

/** The keys of one key in `keys`, of `fairQueue` or of a host, besides `budgets` and `for`. */
export const KEY_SETTINGS = {
  slots: { type: "integer", unit: "count", min: 1 },
  required: { type: "flag", default: false },
  shadow: { type: "flag", default: false },
} as const satisfies Settings;

/** The key that every request with a bucket has: the bucket itself. It takes budgets only. */
export const BUCKET_KEY = "bucket";

/** The limits of one value of a key. */
export interface KeyLimits {
  readonly slots?: number;
  readonly budgets?: BudgetPolicies;
}

/** A key as the engine and stores have it. */
export interface KeyPolicy extends KeyLimits {
  readonly name: string;
  readonly isRequired?: true;
  /** Its slots are counted, but not enforced, and no request is refused because it lacks the key. */
  readonly isShadow?: true;
  /** The whole limits of values that have their own. */
  readonly for?: { readonly [value: string]: KeyLimits };
}

interface ValueConfig {
  readonly slots?: number | undefined;
  readonly budgets?: { readonly [name: string]: BudgetConfig } | undefined;
}

/** One key of a configuration. */
interface KeyConfig extends ValueConfig {
  readonly required?: boolean | undefined;
  readonly shadow?: boolean | undefined;
  readonly for?: { readonly [value: string]: ValueConfig } | undefined;
}

/** Keys of a configuration in the engine's units, from narrow to wide. A list: JSON columns do not keep the order of names. */
export function resolveKeys(keys: { readonly [name: string]: KeyConfig } = {}): readonly KeyPolicy[] | undefined {
  const policies = Object.entries(keys).map(([name, { required, shadow, for: values, ...limits }]): KeyPolicy => {
    const isShadow = shadow === true;
    const own = Object.entries(values ?? {}).map(([value, more]) => [value, limitsOf(limits, isShadow, more)]);
    return {
      name,
      ...limitsOf(limits, isShadow),
      ...(required === true ? { isRequired: true } : {}),
      ...(isShadow ? { isShadow } : {}),
      ...(own.length === 0 ? {} : { for: Object.fromEntries(own) as { readonly [value: string]: KeyLimits } }),
    };
  });
  return policies.length === 0 ? undefined : policies;
}

/** A value of `for` keeps what it does not name. */
function limitsOf(limits: ValueConfig, isShadow: boolean, own: ValueConfig = {}): KeyLimits {
  const slots = own.slots ?? limits.slots;
  const budgets = resolveBudgets({ ...limits.budgets, ...own.budgets }, isShadow);
  return { ...(isAbsent(slots) ? {} : { slots }), ...(budgets === undefined ? {} : { budgets }) };
}

/** The limits of one value of a key. */
export function keyLimitsOf(key: KeyPolicy, value: string): KeyLimits {
  return key.for !== undefined && Object.hasOwn(key.for, value) ? (key.for[value] as KeyLimits) : key;
}

/** The slots that requests with this value wait for. Infinity: they do not wait. */
export function enforcedSlotsOf(key: KeyPolicy, value: string): number {
  return (key.isShadow === true ? undefined : keyLimitsOf(key, value).slots) ?? Number.POSITIVE_INFINITY;
}

/** Whether requests with this value wait for its slots or budgets. */
export function holdsBack(key: KeyPolicy, value: string): boolean {
  return enforcedSlotsOf(key, value) < Number.POSITIVE_INFINITY || hasEnforced(keyLimitsOf(key, value).budgets);
}

/** Whether a request can wait or be refused because of the key. */
export function isEnforced(key: KeyPolicy): boolean {
  const all: KeyLimits[] = [key, ...Object.values(key.for ?? {})];
  const isLimited = key.isRequired === true || all.some(({ slots }) => slots !== undefined);
  return (isLimited && key.isShadow !== true) || all.some(({ budgets }) => hasEnforced(budgets));
}

/** What is wrong with the keys of a configuration, as a sentence each, with the path of the key. */
export function keyProblems(keys: unknown, path: string): string[] {
  return tableProblems(keys, path, "keys", LIMITS.keys, keyProblem);
}

function keyProblem(name: string, key: unknown, path: string): string[] {
  if (!isRecord(key)) return expected(false, path, "an object", key);
  const { required, shadow, for: values, ...limits } = key;
  return [
    ...nameProblems(name, path),
    ...Object.entries({ required, shadow }).flatMap(([flag, value]) =>
      expected(isAbsent(value) || typeof value === "boolean", `${path}.${flag}`, "true or false", value),
    ),
    ...(name === BUCKET_KEY ? bucketProblems(key, path) : []),
    ...limitsProblems(limits, path),
    ...(isAbsent(values) ? [] : valueProblems(values, `${path}.for`)),
  ];
}

/** The slots of a bucket have their own setting. */
function bucketProblems(key: { readonly [field: string]: unknown }, path: string): string[] {
  const slots = [key["slots"], ...Object.values(Object(key["for"])).map((value) => Object(value).slots)];
  return [
    ...(slots.every(isAbsent)
      ? []
      : [`Expected \`${path}\` to have budgets only: the slots of a bucket are \`maxSlotPerIp\``]),
    ...(key["required"] === true
      ? [`Expected \`${path}.required\` to be absent: requests without a bucket share one`]
      : []),
  ];
}

function valueProblems(values: unknown, path: string): string[] {
  if (!isRecord(values)) return expected(false, path, "an object", values);
  const count = Object.keys(values).length;
  const { keyValues, keyValueLength } = LIMITS;
  return [
    ...(count > keyValues ? [`Expected \`${path}\` to have at most ${keyValues} values, got ${count}`] : []),
    ...Object.entries(values).flatMap(([value, limits]) => {
      const at = `${path}.${value}`;
      if (value === "" || Array.from(value).length > keyValueLength)
        return [`Expected the value \`${at}\` to have 1 to ${keyValueLength} characters`];
      return isRecord(limits) ? limitsProblems(limits, at) : expected(false, at, "an object", limits);
    }),
  ];
}

function limitsProblems(limits: { readonly [field: string]: unknown }, path: string): string[] {
  const { slots, budgets, ...unknown } = limits;
  return [
    ...Object.keys(unknown).map((field) => `Unknown key \`${path}.${field}\``),
    ...(isAbsent(slots) ? [] : numberProblems(KEY_SETTINGS.slots, `${path}.slots`, slots)),
    ...(isAbsent(budgets) ? [] : budgetProblems(budgets, `${path}.budgets`, LIMITS.budgets)),
  ];
}
