/** Options as the user gives them, what they are checked for, and what they come to. */
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

/** One budget: how many units may be spent per time. */
export interface BudgetOptions {
  /** Units per `perMs`; they flow in continuously. */
  limit: number;
  /** The length of the window, in milliseconds. */
  perMs: number;
  /** The most that can be saved up, and so the most that one request may cost. @defaultValue `limit` */
  burst?: number | undefined;
  /** The cost of a request that names none. @defaultValue 1 */
  default?: number | undefined;
  /** At most `limit` in any window of `perMs`, for upstreams that count so. Takes no `burst`. */
  strict?: boolean | undefined;
}

type BudgetTable<B extends string> = { [Name in B]?: BudgetOptions | undefined };

/** Limits that hold for each key on its own. */
export interface PerKeyOptions<B extends string = string> {
  /** Slots for each key; default unlimited. */
  slots?: number | undefined;
  /** Budgets of each key. A cost is charged to the key's budget and to the common one of the same name. */
  budgets?: BudgetTable<B> | undefined;
}

/** Options of `Limiter`. */
export interface LimiterOptions<B extends string = string> extends PolicyOptions {
  /** How many at the same time. @defaultValue `Infinity` */
  slots?: number | undefined;
  /** What requests may cost per time, by name. @defaultValue no budgets */
  budgets?: BudgetTable<B> | undefined;
  /** Limits for each key. With it, the key with the smallest charged share goes first. */
  perKey?: PerKeyOptions<B> | undefined;
  /** How many priorities there are; level 0 goes first. @defaultValue 1 */
  levels?: number | undefined;
  /** A waiter rises by one level every so often. @defaultValue never */
  ageAfterMs?: number | undefined;
  /** The number of slots follows what the upstream takes: from `start`, not below `min`, not above `slots`. */
  adaptive?: { min?: number | undefined; start?: number | undefined } | undefined;
}

/** What `update` changes. Of budgets, what is left out stays as it is. */
export interface LimiterUpdate<B extends string = string> {
  /** How many at the same time. With `adaptive`, the most there may be. */
  slots?: number | undefined;
  /** Budgets by name, with the fields to change. */
  budgets?: { [Name in B]?: Partial<BudgetOptions> | undefined } | undefined;
  /** Limits of each key. */
  perKey?:
    | { slots?: number | undefined; budgets?: { [Name in B]?: Partial<BudgetOptions> | undefined } | undefined }
    | undefined;
  /** How often a waiter rises by one level. */
  ageAfterMs?: number | undefined;
}

/** A budget as checked: its limits, and the cost of a request that names none. */
export interface ResolvedBudget extends BudgetLimits {
  readonly default: number | undefined;
}

export interface LimiterPolicy extends Policy {
  slots: number;
  readonly levels: number;
  ageAfterMs: number;
}

/** Every grant looks at all of them. */
const MOST_LEVELS = 100;

const SLOTS = countFrom(1);
/** An amount may be a fraction, but not endless. */
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

/** What can be given to the constructor and changed later. */
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
const NO_BURST = leftOut("a strict budget saves nothing up");

/** All that is not nested, checked; all problems are said at once. */
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
  return kind(`left out, since ${why}`, (value) => value === undefined);
}

/** The options of `perKey` that are not budgets. */
export function slotsPerKey(options: PerKeyOptions | LimiterUpdate["perKey"]): number {
  if (options === undefined) return Infinity;
  checkFields("perKey", options, PER_KEY_RULES as Rules<typeof options>);
  return options.slots ?? Infinity;
}

/** Checks a table of budgets and gives them by name. `field` says which table in errors. */
export function resolveBudgets(field: string, table: BudgetTable<string>): Map<string, ResolvedBudget> {
  const named = Object.entries(table).filter((entry) => entry[1] !== undefined);
  return new Map(named.map(([name, budget]) => [name, resolveBudget(`${field}.${name}`, budget as BudgetOptions)]));
}

function resolveBudget(field: string, budget: BudgetOptions): ResolvedBudget {
  // Neither has a default.
  checkFields(field, budget, BUDGET_RULES);
  check(`${field}.limit`, positiveNumber, budget.limit);
  check(`${field}.perMs`, positiveNumber, budget.perMs);
  const { limit, perMs, strict = false, burst = limit, default: cost = 0 } = budget;
  if (strict) check(`${field}.burst`, NO_BURST, budget.burst);
  check(`${field}.default`, numberBetween(0, burst), cost);
  return { limit, perMs, burst, strict, default: budget.default };
}

/** Refuses fields that are unknown or do not follow their rule; `field` is where they are. */
export function checkFields<T extends object>(field: string, options: T, rules: Rules<T>): void {
  check(field, anyObject, options);
  checkOptions(options, rules, `${field}.`);
}
