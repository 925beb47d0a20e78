/** The public options of a limiter, the rules that check them, and the resolved values. */
import {
  anyObject,
  boolean,
  check,
  checkOptions,
  countFrom,
  finiteFrom,
  integerFrom,
  kind,
  numberBetween,
  numberFrom,
  positiveNumber,
  type Rule,
  type Rules,
  range,
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

export interface LimiterPolicy extends Policy {
  slots: number;
  readonly levels: number;
  ageAfterMs: number;
}

/** Every grant visits all levels, so their number is limited. */
const MOST_LEVELS = 100;

const SLOTS = countFrom(1);
/** An amount may be a fraction, but it must be finite. */
export const AMOUNT: Rule = finiteFrom(0);

const DEFAULTS: typeof PLAIN & Required<LimiterOptions> & { slots: number; levels: number; ageAfterMs: number } = {
  ...PLAIN,
  slots: Infinity,
  levels: 1,
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
  adaptive: anyObject,
};
const PER_KEY_RULES: Rules<PerKeyOptions> = { slots: SLOTS, budgets: anyObject };
const BUDGET_RULES: Rules<BudgetOptions> = {
  limit: positiveNumber,
  perMs: positiveNumber,
  burst: positiveNumber,
  default: AMOUNT,
  strict: boolean,
};
const NO_BURST = leftOut("a strict budget does not save up units");

/** Checks the options that are not nested. One error names all problems. */
export function resolveLimiterPolicy(options: LimiterOptions): LimiterPolicy {
  return resolvePolicy(DEFAULTS, RULES, options);
}

export function resolveAdaptive(options: LimiterOptions["adaptive"], slots: number): AdaptiveLimits | undefined {
  if (options === undefined) return undefined;
  check("slots", finiteSlots("if `adaptive` is given"), slots);
  const min = options.min ?? 1;
  const within = (least: number): Rule => integerFrom(least, slots);
  checkFields("adaptive", options, { min: within(1), start: within(min) });
  return { min, start: options.start ?? min };
}

export function finiteSlots(why: string): Rule {
  return range(`finite ${why}`, Number.isFinite);
}

export function leftOut(why: string): Rule {
  return kind(`left out, because ${why}`, (value) => value === undefined);
}

/** Checks the options of `perKey` that are not budgets, and returns the slots for each key. */
export function slotsPerKey(options: PerKeyOptions | LimiterUpdate["perKey"]): number {
  if (options === undefined) return Infinity;
  checkFields("perKey", options, PER_KEY_RULES as Rules<typeof options>);
  return options.slots ?? Infinity;
}

/** Checks a table of budgets and returns them by name. Errors name the table as `field`. */
export function resolveBudgets(field: string, table: BudgetTable<string>): Map<string, ResolvedBudget> {
  const named = Object.entries(table).filter((entry) => entry[1] !== undefined);
  return new Map(named.map(([name, budget]) => [name, resolveBudget(`${field}.${name}`, budget as BudgetOptions)]));
}

function resolveBudget(field: string, budget: BudgetOptions): ResolvedBudget {
  // The next two checks refuse a missing `limit` or `perMs`: they have no default.
  checkFields(field, budget, BUDGET_RULES);
  check(`${field}.limit`, positiveNumber, budget.limit);
  check(`${field}.perMs`, positiveNumber, budget.perMs);
  const { limit, perMs, strict = false, burst = limit, default: cost = 0 } = budget;
  if (strict) check(`${field}.burst`, NO_BURST, budget.burst);
  check(`${field}.default`, numberBetween(0, burst), cost);
  return { limit, perMs, burst, strict, default: budget.default };
}

/** Refuses fields that are unknown or break their rule. Errors name them as members of `field`. */
export function checkFields<T extends object>(field: string, options: T, rules: Rules<T>): void {
  check(field, anyObject, options);
  checkOptions(options, rules, `${field}.`);
}
