/** The public options of a limiter, the rules that check them, and the resolved values. */
import {
  anyObject,
  boolean,
  check,
  countFrom,
  finiteFrom,
  integer,
  integerFrom,
  kind,
  numberBetween,
  numberFrom,
  positiveNumber,
  type Rule,
  type Rules,
  range,
  readOptions,
} from "../options.ts";
import { PLAIN, POLICY_RULES, type Policy, type PolicyOptions, resolvePolicy } from "../policy.ts";
import type { AdaptiveLimits } from "./adaptive-slots.ts";
import type { BudgetLimits } from "./budget.ts";

/** One budget: how many units can be spent per time. */
export interface BudgetOptions {
  /** Units per `perMs`; they flow in continuously. */
  limit: number;
  /** The length of the window, in milliseconds. */
  perMs: number;
  /** The largest number of units that can be saved up, and so the largest cost of one request. @defaultValue `limit` */
  burst?: number | undefined;
  /** The cost of a request that does not name a cost for this budget. @defaultValue 1 */
  default?: number | undefined;
  /**
   * Grants at most `limit` units in any window of `perMs`, for upstreams that count in this way. Cannot be combined
   * with `burst`. @defaultValue false
   */
  strict?: boolean | undefined;
}

type BudgetTable<B extends string> = { [Name in B]?: BudgetOptions | undefined };

/** Limits that apply to each key separately. */
export interface PerKeyOptions<B extends string = string> {
  /** The number of slots for each key. @defaultValue `Infinity` */
  slots?: number | undefined;
  /**
   * The budgets of each key. A cost is charged to the budget of the key and to the common budget of the same name.
   * @defaultValue no budgets
   */
  budgets?: BudgetTable<B> | undefined;
}

/** Options of `Limiter`. */
export interface LimiterOptions<B extends string = string> extends PolicyOptions {
  /** How many requests can run at the same time. @defaultValue `Infinity` */
  slots?: number | undefined;
  /** The budgets by name: how many units requests can cost per time. @defaultValue no budgets */
  budgets?: BudgetTable<B> | undefined;
  /**
   * Limits for each key. With this option, the key with the smallest charged share goes first.
   * @defaultValue no limits per key
   */
  perKey?: PerKeyOptions<B> | undefined;
  /** The number of priorities, 1 to 100; level 0 goes first. @defaultValue 1 */
  levels?: number | undefined;
  /** The level of requests that do not name one. @defaultValue 0, the most urgent */
  defaultLevel?: number | undefined;
  /** A waiter rises by one level after each period of this length, in milliseconds. @defaultValue `Infinity`: never */
  ageAfterMs?: number | undefined;
  /**
   * Adapts the number of slots to the overloads that the upstream reports. It begins with `start` (default: `min`) and
   * stays between `min` (default: 1) and `slots`, which must be finite. @defaultValue off
   */
  adaptive?: { min?: number | undefined; start?: number | undefined } | undefined;
}

/** Options of `Limiter.update`. Limits and fields that are left out stay as they are. */
export interface LimiterUpdate<B extends string = string> {
  /** How many requests can run at the same time. With `adaptive`, the largest number of slots. */
  slots?: number | undefined;
  /** The fields to change of each budget, by name. A budget with a new name is added. */
  budgets?: { [Name in B]?: Partial<BudgetOptions> | undefined } | undefined;
  /** The limits of each key. Only for a limiter that was created with `perKey`. */
  perKey?:
    | { slots?: number | undefined; budgets?: { [Name in B]?: Partial<BudgetOptions> | undefined } | undefined }
    | undefined;
  /** A waiter rises by one level after each period of this length, in milliseconds. */
  ageAfterMs?: number | undefined;
}

/** A checked budget: its limits, and the cost of a request that does not name one. */
export interface ResolvedBudget extends BudgetLimits {
  readonly default: number | undefined;
}

export interface LimiterPolicy extends Policy, Pick<LimiterOptions, "budgets" | "perKey" | "adaptive"> {
  slots: number;
  readonly levels: number;
  readonly defaultLevel: number;
  ageAfterMs: number;
}

/** Every grant visits all levels, so their number is limited. */
const MOST_LEVELS = 100;

const SLOTS = countFrom(1);
/** An amount may be a fraction, but it must be finite. */
export const AMOUNT: Rule = finiteFrom(0);

const DEFAULTS: Omit<LimiterPolicy, "isPlain"> = {
  ...PLAIN,
  slots: Infinity,
  levels: 1,
  defaultLevel: 0,
  ageAfterMs: Infinity,
  budgets: undefined,
  perKey: undefined,
  adaptive: undefined,
};

/** The options that the constructor takes and `update` can change. */
export const UPDATE_RULES: Rules<LimiterUpdate> = {
  slots: SLOTS,
  budgets: anyObject,
  perKey: anyObject,
  ageAfterMs: numberFrom(1),
};
const RULES: Rules<LimiterOptions> = {
  ...POLICY_RULES,
  ...UPDATE_RULES,
  levels: integerFrom(1, MOST_LEVELS),
  defaultLevel: integerFrom(0),
  adaptive: anyObject,
};
export const PER_KEY_RULES: Rules<PerKeyOptions> = { slots: SLOTS, budgets: anyObject };
const ADAPTIVE_RULES = { min: integer, start: integer };
const BUDGET_RULES: Rules<BudgetOptions> = {
  limit: positiveNumber,
  perMs: positiveNumber,
  burst: positiveNumber,
  default: AMOUNT,
  strict: boolean,
};
const NO_BURST = leftOut("a strict budget does not save up units");

/** Reads the options. One error names all problems of those that are not nested. */
export function resolveLimiterPolicy(options: LimiterOptions): LimiterPolicy {
  const given = readOptions(options, RULES);
  const { perKey } = given;
  const policy = resolvePolicy(DEFAULTS, given);
  check("defaultLevel", levelRule(policy.levels), policy.defaultLevel);
  return perKey === undefined ? policy : { ...policy, perKey: readFields("perKey", perKey, PER_KEY_RULES) };
}

export function levelRule(levels: number): Rule {
  return integerFrom(0, levels - 1);
}

export function resolveAdaptive(options: LimiterOptions["adaptive"], slots: number): AdaptiveLimits | undefined {
  if (options === undefined) return undefined;
  check("slots", finiteSlots("if `adaptive` is given"), slots);
  const { min = 1, start = min } = readFields("adaptive", options, ADAPTIVE_RULES);
  check("adaptive.min", integerFrom(1, slots), min);
  check("adaptive.start", integerFrom(min, slots), start);
  return { min, start };
}

export function finiteSlots(why: string): Rule {
  return range(`finite ${why}`, Number.isFinite);
}

export function leftOut(why: string): Rule {
  return kind(`left out, because ${why}`, (value) => value === undefined);
}

/** Checks a table of budgets and returns them by name. Errors name the table as `field`. */
export function resolveBudgets(field: string, table: BudgetTable<string>): Map<string, ResolvedBudget> {
  const named = Object.entries(table).filter((entry) => entry[1] !== undefined);
  return new Map(named.map(([name, budget]) => [name, resolveBudget(`${field}.${name}`, budget as BudgetOptions)]));
}

function resolveBudget(field: string, budget: BudgetOptions): ResolvedBudget {
  const given = readFields(field, budget, BUDGET_RULES);
  const { limit, perMs, strict = false, burst = limit, default: cost } = given;
  // These refuse a missing `limit` or `perMs`: they have no default.
  check(`${field}.limit`, positiveNumber, limit);
  check(`${field}.perMs`, positiveNumber, perMs);
  if (strict) check(`${field}.burst`, NO_BURST, given.burst);
  check(`${field}.default`, numberBetween(0, burst), cost ?? 0);
  return { limit, perMs, burst, strict, default: cost };
}

/** Like `readOptions`. Errors name the fields as members of `field`. */
export function readFields<T extends object>(field: string, options: T, rules: Rules<T>): T {
  check(field, anyObject, options);
  return readOptions(options, rules, `${field}.`);
}
