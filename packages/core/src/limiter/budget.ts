/**
 * One budget: how many units can be granted over time. Amounts may be fractions. Times come from `SteadyTime`, so they
 * never run backwards.
 *
 * BUDGET1  Bucket: in any interval of length T, at most `burst + limit × T / perMs` units are granted, net of refunds.
 *     Its arithmetic is in `level.ts`.
 * BUDGET2  Window (`strict`): in any half-open interval of length `perMs`, at most `limit` units are granted, net of
 *     refunds. Each grant is kept for `perMs`.
 * BUDGET3  Debt comes from settlements, never from grants: after a settlement above the estimate, a bucket is below
 *     zero or a window is above its limit. Nothing is granted until the debt is paid back.
 * BUDGET4  `learn` never raises the available amount.
 * BUDGET5  A change of the limits keeps all charges.
 *
 * Cost: O(1) amortised; a refund to a window is O(log n) in its grants. A bucket is a few numbers. A window keeps a
 * pair of numbers for each distinct time of a grant.
 *
 * All comparisons tolerate an error of two billionths of a window, so that rounding never delays a request by a
 * millisecond.
 */

import { charge, freeze, missingAt, newLevel, payableAt, type Refill, refund } from "./level.ts";

/** The resolved options of a budget. */
export interface BudgetLimits extends Refill {
  /** A window instead of a bucket. Then `burst` equals `limit`. */
  readonly strict: boolean;
}

const SLACK = 1e-9;

export abstract class Budget {
  limits: BudgetLimits;
  /** Set by `learn`: nothing is granted before this time. */
  protected blockedUntil = -Infinity;

  constructor(limits: BudgetLimits) {
    this.limits = limits;
  }

  /** The units that can be granted now if the budget is not blocked; negative while it is in debt. */
  abstract available(now: number): number;
  /**
   * Returns 0 if the cost can be paid now, otherwise a time to ask again that is not later than the time at which it
   * can be paid.
   */
  abstract payableAt(cost: number, now: number): number;
  abstract charge(amount: number, now: number): void;
  /** Gives back a part of what was charged at `chargedAt`. */
  abstract refund(amount: number, chargedAt: number, now: number): void;
  protected abstract withhold(amount: number, untilAt: number, now: number): void;

  /** Applies what the upstream reports: the units that are left, and the time until its window resets. */
  learn(remaining: number, resetMs: number | undefined, now: number): void {
    const excess = this.available(now) - remaining;
    if (excess > 0) this.withhold(excess, now + (resetMs ?? this.limits.perMs), now);
    if (remaining === 0 && resetMs) this.blockedUntil = Math.max(this.blockedUntil, now + resetMs);
  }

  /** Whether past charges have no effect any more. Only common budgets learn, and only those of keys are asked this. */
  isFull(now: number): boolean {
    return this.available(now) >= this.limits.burst;
  }

  /** Returns a budget with the new limits and the charges of this one. */
  changed(limits: BudgetLimits, now: number): Budget {
    if (limits.strict === this.limits.strict) {
      this.changeTo(limits, now);
      return this;
    }
    const next = makeBudget(limits);
    next.charge(this.limits.burst - this.available(now), now);
    next.blockedUntil = this.blockedUntil;
    return next;
  }

  protected abstract changeTo(limits: BudgetLimits, now: number): void;
}

export function makeBudget(limits: BudgetLimits): Budget {
  return limits.strict ? new Window(limits) : new Bucket(limits);
}

/** Returns 0 if all budgets can pay now, otherwise a time to ask again. */
export function latestOf(budgets: readonly (Budget | undefined)[], costs: readonly number[], now: number): number {
  let latest = 0;
  for (let index = 0; index < budgets.length; index++) {
    const at = budgets[index]?.payableAt(costs[index] as number, now) ?? 0;
    if (at > latest) latest = at;
  }
  return latest;
}

class Bucket extends Budget {
  readonly #level = newLevel();

  available(now: number): number {
    return this.limits.burst - missingAt(this.#level, this.limits, now);
  }

  payableAt(cost: number, now: number): number {
    return this.blockedUntil > now ? this.blockedUntil : payableAt(this.#level, this.limits, cost, now);
  }

  charge(amount: number, now: number): void {
    charge(this.#level, this.limits, amount, now);
  }

  refund(amount: number, chargedAt: number, now: number): void {
    refund(this.#level, this.limits, amount, chargedAt, now);
  }

  protected withhold(amount: number, _untilAt: number, now: number): void {
    this.charge(amount, now);
  }

  protected changeTo(limits: BudgetLimits, now: number): void {
    freeze(this.#level, this.limits, now);
    this.limits = limits;
  }
}

/** Fewer expired entries than this are not worth copying the arrays. */
const FEW_GONE = 64;

class Window extends Budget {
  /** The times and amounts of the charges, in order. Entries before `#first` have left the window. */
  #times: number[] = [];
  #amounts: number[] = [];
  #first = 0;
  #sum = 0;
  /** The units that `learn` took away, and until when. */
  #withheld = 0;
  #withheldUntil = -Infinity;

  available(now: number): number {
    this.#leave(now);
    return this.limits.burst - this.#sum - this.#withheld;
  }

  payableAt(cost: number, now: number): number {
    if (this.blockedUntil > now) return this.blockedUntil;
    const { limit, perMs } = this.limits;
    if (this.available(now) - cost >= -2 * SLACK * limit) return 0;
    return Math.min(
      (this.#times[this.#first] ?? Infinity) + perMs,
      this.#withheld > 0 ? this.#withheldUntil : Infinity,
    );
  }

  charge(amount: number, now: number): void {
    if (amount === 0) return;
    const last = this.#times.length - 1;
    this.#sum += amount;
    // An entry of this time has not left the window yet.
    if (this.#times[last] === now) this.#amounts[last] = (this.#amounts[last] ?? 0) + amount;
    else {
      this.#times.push(now);
      this.#amounts.push(amount);
    }
  }

  refund(amount: number, chargedAt: number, now: number): void {
    this.#leave(now);
    const at = this.#find(chargedAt);
    if (this.#times[at] !== chargedAt) return;
    this.#amounts[at] = (this.#amounts[at] ?? 0) - amount;
    this.#sum -= amount;
  }

  protected withhold(amount: number, untilAt: number): void {
    this.#withheld += amount;
    this.#withheldUntil = Math.max(this.#withheldUntil, untilAt);
  }

  protected changeTo(limits: BudgetLimits): void {
    this.limits = limits;
  }

  #leave(now: number): void {
    const { perMs } = this.limits;
    if (this.#withheldUntil <= now) this.#withheld = 0;
    const { length } = this.#times;
    for (; this.#first < length && (this.#times[this.#first] as number) + perMs <= now; this.#first++) {
      this.#sum -= this.#amounts[this.#first] as number;
    }
    if (this.#first === length) this.#sum = 0;
    if (this.#first > FEW_GONE && this.#first * 2 > length) {
      this.#times = this.#times.slice(this.#first);
      this.#amounts = this.#amounts.slice(this.#first);
      this.#first = 0;
    }
  }

  /** The index of the first entry that is not before `time`. */
  #find(time: number): number {
    let [low, high] = [this.#first, this.#times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#times[middle] as number) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
