import type { BudgetPolicy, Costs } from "@slotkeeper/protocol";

/** A charge of one budget. A settlement replaces its amount, as if it had been charged in the first place. */
interface Charged {
  readonly session: string;
  readonly at: number;
  amount: number;
}

type Rate = Pick<BudgetPolicy, "limit" | "perMs" | "burst"> & { readonly from: number };

/** One budget of the reference book: all charges and all limits there ever were, which are replayed for each question. */
export class ReplayedBudget {
  charges: Charged[] = [];
  rates: Rate[] = [];

  /** The limits of the budget from now on. What was spent stays. */
  use({ limit, perMs, burst }: Omit<BudgetPolicy, "default">, from: number): void {
    const last = this.rates.at(-1);
    if (last?.limit !== limit || last.perMs !== perMs || last.burst !== burst)
      this.rates.push({ limit, perMs, burst, from: this.charges.length === 0 ? Number.NEGATIVE_INFINITY : from });
  }

  missing(now: number): number {
    const steps = [
      ...this.charges.map(({ at, amount }, index) => ({ at, amount, index })),
      ...this.rates.map(({ from: at }) => ({ at, amount: 0, index: -1 })),
      { at: now, amount: 0, index: Number.POSITIVE_INFINITY },
    ].toSorted((a, b) => a.at - b.at || a.index - b.index);
    let [missing, since] = [0, Number.NEGATIVE_INFINITY];
    for (const { at, amount } of steps) {
      if (at > now) break;
      const { limit, perMs } = this.#rateAt(since);
      if (missing > 0) missing = Math.max(0, missing - ((at - since) * limit) / perMs);
      missing += amount;
      since = at;
    }
    return missing;
  }

  #rateAt(at: number): Rate {
    return this.rates.findLast(({ from }) => from <= at) ?? (this.rates[0] as Rate);
  }

  canPay(cost: number, now: number): boolean {
    const { limit, burst } = this.rates.at(-1) as Rate;
    return this.missing(now) + cost - burst <= 2e-9 * limit;
  }

  /** A budget in shadow mode is charged although it cannot pay, as a debt of at most one limit. */
  charge(session: string, cost: number, now: number): void {
    const { limit, burst } = this.rates.at(-1) as Rate;
    const amount = this.canPay(cost, now) ? cost : Math.min(cost, Math.max(0, burst + limit - this.missing(now)));
    this.charges.push({ session, at: now, amount });
  }

  /** More than was charged is charged now, as a debt of at most one limit. Returns what exceeds it. */
  settle(session: string, at: number, used: number, now: number): number {
    // The last one: an earlier charge of the session at the same time was given back, with its offer or its lease.
    const charge = this.charges.findLast((one) => one.session === session && one.at === at) as Charged;
    const more = used - charge.amount;
    const { limit, burst } = this.rates.at(-1) as Rate;
    if (more <= 0) {
      charge.amount = used;
      return 0;
    }
    const amount = Math.min(more, Math.max(0, burst + limit - this.missing(now)));
    this.charges.push({ session: "", at: now, amount });
    return more - amount;
  }
}

export type Paid = {
  readonly at: number;
  readonly costs: Costs;
  /** Budgets in shadow mode that could not pay. */
  readonly short: readonly string[];
};
