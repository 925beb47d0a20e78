/**
 * Charges the cost of requests to budgets: to the common ones and to those of the request's key.
 *
 * CHARGE1  A cost is charged to all of its budgets, or to none.
 * CHARGE2  A cost above the burst of one of its budgets is refused at the call, because it could never be paid.
 * CHARGE3  A settlement or refund changes the same budgets, and the share of the key.
 */
import { anyObject, check, kind, numberBetween, type Rule, type Rules } from "../options.ts";
import { type Budget, latestOf, makeBudget } from "./budget.ts";
import type { KeyState } from "./key-state.ts";
import { Keys } from "./keys.ts";
import {
  AMOUNT,
  type BudgetOptions,
  type LimiterOptions,
  type LimiterUpdate,
  type ResolvedBudget,
  readFields,
  resolveBudgets,
} from "./options.ts";

/** The charge of one request. */
interface Charged {
  readonly keyState: KeyState;
  costs: readonly number[];
  readonly sinceAt: number;
}

type CostRules = Rules<Record<string, number | undefined>>;
type Table = Record<string, BudgetOptions>;

const NOTHING = {};

/** The weights of charges grow with time. When the exponent passes this value, all weights are scaled down. */
const LARGEST_EXPONENT = 50;

export class Ledger {
  // `update`, which the constructor calls, sets the fields that have no value here.
  /** The names of all budgets. The arrays below use the same index. */
  names: readonly string[] = [];
  /** The costs of a request that names none. The array is replaced, never changed: slots keep a reference to it. */
  declare defaults: readonly number[];
  /** Whether some default cost can never be paid. Then a request must name its cost. */
  declare areDefaultsDear: boolean;
  readonly common: (Budget | undefined)[] = [];
  readonly keys: Keys;
  declare settleRules: CostRules;
  #costRules!: CostRules;
  #costRulesOfKeys!: CostRules;
  #perKey!: (ResolvedBudget | undefined)[];
  readonly #commonOptions: Table = {};
  readonly #perKeyOptions: Table = {};
  /** The share that one unit of each budget counts for. */
  #shareOfUnit!: number[];
  readonly #countsShares: boolean;
  #weighedSince: number;

  constructor({ budgets, perKey }: LimiterOptions, now: number) {
    this.#countsShares = perKey !== undefined;
    this.keys = new Keys(() => this.#perKey.map((limits) => limits && makeBudget(limits)));
    this.#weighedSince = now;
    this.update(budgets, perKey?.budgets, now);
  }

  /** Changes limits and adds budgets. Everything is checked before anything changes. */
  update(budgets: LimiterUpdate["budgets"], perKeyBudgets: LimiterUpdate["budgets"], now: number): void {
    const commonOptions = merged(this.#commonOptions, "budgets", budgets);
    const perKeyOptions = merged(this.#perKeyOptions, "perKey.budgets", perKeyBudgets);
    const common = resolveBudgets("budgets", commonOptions);
    const perKey = resolveBudgets("perKey.budgets", perKeyOptions);
    const names = [...new Set([...this.names, ...common.keys(), ...perKey.keys()])];
    const defaults = names.map((name) => common.get(name)?.default ?? perKey.get(name)?.default ?? 1);
    Object.assign(this.#commonOptions, commonOptions);
    Object.assign(this.#perKeyOptions, perKeyOptions);
    this.names = names;
    this.defaults = defaults;
    this.#perKey = perKey.size === 0 ? [] : names.map((name) => perKey.get(name));
    apply(
      this.common,
      names.map((name) => common.get(name)),
      now,
    );
    for (const { key, budgets } of this.keys.states.values()) if (key !== undefined) apply(budgets, this.#perKey, now);
    const rules = (ruleOf: (index: number) => Rule): CostRules =>
      Object.fromEntries(names.map((name, index) => [name, ruleOf(index)]));
    this.settleRules = rules(() => AMOUNT);
    this.#costRules = rules((index) => numberBetween(0, this.mostOf(index, false)));
    this.#costRulesOfKeys = rules((index) => numberBetween(0, this.mostOf(index, true)));
    this.areDefaultsDear = defaults.some((cost, index) => cost > this.mostOf(index, true));
    this.#measureShares(perKey.size > 0 ? perKey : common);
  }

  /** Checks a cost and returns it by the index of the budget. */
  costsOf(cost: { readonly [name: string]: number | undefined } = NOTHING, isKeyed: boolean): readonly number[] {
    if (cost === NOTHING && !this.areDefaultsDear) return this.defaults;
    const rules = isKeyed ? this.#costRulesOfKeys : this.#costRules;
    const given = readFields("cost", cost, rules);
    return this.names.map((name, index) => {
      const amount = given[name] ?? this.defaults[index];
      if (this.areDefaultsDear) check(`cost.${name}`, rules[name] as Rule, amount);
      return amount as number;
    });
  }

  /** The largest cost that can ever be paid. */
  mostOf(index: number, isKeyed: boolean): number {
    const common = this.common[index]?.limits.burst ?? Number.MAX_VALUE;
    return isKeyed ? Math.min(common, this.#perKey[index]?.burst ?? Number.MAX_VALUE) : common;
  }

  /** Returns 0 if the common budgets can pay now, otherwise a time to ask again. */
  payableAt(costs: readonly number[], now: number): number {
    return latestOf(this.common, costs, now);
  }

  charge(key: KeyState, costs: readonly number[], now: number): void {
    for (let index = 0; index < this.common.length; index++) this.common[index]?.charge(costs[index] as number, now);
    for (let index = 0; index < key.budgets.length; index++) key.budgets[index]?.charge(costs[index] as number, now);
    if (this.#countsShares) this.#weigh(key, costs, now);
  }

  /** Applies the true cost for one budget: gives back a charge that was too high, or charges the difference. */
  correct({ keyState, costs, sinceAt }: Charged, index: number, actual: number, now: number): void {
    const more = actual - (costs[index] ?? 0);
    for (const budget of [this.common[index], keyState.budgets[index]]) {
      if (more > 0) budget?.charge(more, now);
      else budget?.refund(-more, sinceAt, now);
    }
    if (this.#countsShares) keyState.weigh(index, more * this.#weightAt(more > 0 ? now : sinceAt, index));
  }

  budget(name: string): Budget {
    const budget = this.common[this.names.indexOf(name)];
    check(
      "budget",
      kind(`one of ${this.names.join(", ") || "no budgets"}`, () => budget !== undefined),
      name,
    );
    return budget as Budget;
  }

  #weigh(key: KeyState, costs: readonly number[], now: number): void {
    key.lastChargedAt = now;
    if ((now - this.#weighedSince) / this.keys.windowMs > LARGEST_EXPONENT) this.#rescale(now);
    for (let index = 0; index < costs.length; index++) {
      if (this.#shareOfUnit[index]) key.weigh(index, (costs[index] as number) * this.#weightAt(now, index));
    }
  }

  #weightAt(time: number, index: number): number {
    const { windowMs } = this.keys;
    return windowMs === 0 ? 0 : (this.#shareOfUnit[index] ?? 0) * Math.exp((time - this.#weighedSince) / windowMs);
  }

  #rescale(now: number): void {
    const factor = Math.exp((this.#weighedSince - now) / this.keys.windowMs);
    this.#weighedSince = now;
    for (const key of this.keys.states.values()) key.scale(factor);
  }

  #measureShares(budgets: ReadonlyMap<string, ResolvedBudget>): void {
    this.keys.windowMs = this.#countsShares ? Math.max(0, ...[...budgets.values()].map(({ perMs }) => perMs)) : 0;
    this.#shareOfUnit = this.names.map((name) => {
      const { limit = Infinity, perMs = 0 } = budgets.get(name) ?? {};
      return perMs / this.keys.windowMs / limit || 0;
    });
  }
}

/** Merges new budget options into the existing ones. Fields that are left out stay as they are. */
function merged(before: Table, field: string, given: LimiterUpdate["budgets"] = {}): Table {
  check(field, anyObject, given);
  const table: Table = { ...before };
  for (const [name, budget] of Object.entries(given)) {
    if (budget === undefined) continue;
    check(`${field}.${name}`, anyObject, budget);
    table[name] = { ...before[name], ...budget } as BudgetOptions;
  }
  return table;
}

/** Changes existing budgets to these limits, and creates missing ones. */
function apply(budgets: (Budget | undefined)[], limits: readonly (ResolvedBudget | undefined)[], now: number): void {
  for (const [index, one] of limits.entries()) {
    const budget = budgets[index];
    budgets[index] = one && (budget ? budget.changed(one, now) : makeBudget(one));
  }
}
