import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { BudgetRecord, Charge, KeptCommit, LeaseRecord, OfferRecord } from "@slotkeeper/queue";
import { ReplayedBudget } from "../reference/budgets.ts";

/** Later than this after its deadline, the end of a session is not kept. */
const GRACE_MS = 10_000;

/** What the rule knows of one host. */
interface Known {
  readonly budgets: Map<string, ReplayedBudget>;
  readonly records: Map<string, BudgetRecord>;
  /** Leases by token, and offers by session. */
  readonly held: Map<string, LeaseRecord | OfferRecord>;
  /** It is not known in which order several settlements of one commit reached the largest debt. */
  isUnsure: boolean;
}

/**
 * V12: the level of a budget in the store is what its charges give, replayed from the first one (`reference/budgets.ts`), and
 * after a grant no more than `burst` is missing. The charges are read from leases and offers, what was used from the
 * clients. Not judged after a failover, which loses charges.
 */
export class BudgetRules {
  readonly #config: FairQueueConfig;
  readonly #hosts = new Map<string, Known>();
  /** What clients say that they used, by token. */
  readonly #used = new Map<string, { readonly tokens: number }>();
  #isOff: boolean;

  constructor(config: FairQueueConfig) {
    this.#config = config;
    const ofKeys = Object.values(config.keys ?? {}).some(({ budgets }) => budgets !== undefined);
    this.#isOff = config.budgets === undefined && !ofKeys;
  }

  uses(slotToken: string, used: { readonly tokens: number } | undefined): void {
    if (used !== undefined) this.#used.set(slotToken, used);
  }

  failedOver(): void {
    this.#isOff = true;
  }

  committed({ host, changes: { head, puts, dels } }: KeptCommit): string[] {
    if (this.#isOff) return [];
    if (head === undefined) {
      this.#hosts.delete(host);
      return [];
    }
    const known = this.#knownOf(host);
    const canceled = new Set(puts.flatMap((one) => (one.kind === "ending" && one.end === "canceled" ? [one.key] : [])));
    const ended = endedBy({ puts, dels }, known);
    const settlements: Settlement[] = [];
    for (const one of ended) {
      known.held.delete(one.key);
      const isOver = one.kind === "lease" && (one.endsAt <= head.now || one.keepUntil + GRACE_MS <= head.now);
      const isGivenBack = one.kind === "offer" || canceled.has(one.session) || !(isOver || hasEnd(puts, one));
      const isReleased = one.kind === "lease" && one.endsAt > head.now && !isGivenBack;
      const used = isGivenBack ? 0 : isReleased ? this.#used.get(one.key)?.tokens : undefined;
      if (used !== undefined) settlements.push({ one, used });
    }
    // If the largest debt is not reached when all debts come before all that is given back, it is in no other order.
    settlements.sort((a, b) => Number(isDebt(b)) - Number(isDebt(a)));
    const excess = settlements.reduce((sum, { one, used }) => sum + settle(known, one, used, head.now), 0);
    if (settlements.length > 1 && excess > 0) known.isUnsure = true;
    const faults = charges(puts, known).flatMap(([session, charge]) => this.#charge(known, session, charge));
    for (const record of puts) if (record.kind === "budget") known.records.set(record.key, record);
    for (const [kind, key] of dels) if (kind === "budget") known.records.delete(key);
    return known.isUnsure ? [] : [...faults, ...compare(known, head.now)].map((text) => `${text} at ${host}`);
  }

  #charge(known: Known, session: string, { at, costs }: Charge): string[] {
    return Object.entries(costs).flatMap(([name, amount]) => {
      const { limit = 0, burst = limit } = this.#limitsOf(name) ?? {};
      const budget = this.#budgetOf(known, name);
      budget.charges.push({ session, at, amount });
      const missing = budget.missing(at);
      return missing > burst + 1e-6 * limit ? [`${missing} of ${name} is missing after a grant to ${session}`] : [];
    });
  }

  #knownOf(host: string): Known {
    let known = this.#hosts.get(host);
    if (known === undefined) {
      known = { budgets: new Map(), records: new Map(), held: new Map(), isUnsure: false };
      this.#hosts.set(host, known);
    }
    return known;
  }

  #budgetOf({ budgets }: Known, account: string): ReplayedBudget {
    let budget = budgets.get(account);
    if (budget === undefined) {
      const { limit = 1, perSeconds = 1, burst = limit } = this.#limitsOf(account) ?? {};
      budget = new ReplayedBudget();
      budget.use({ limit, perMs: perSeconds * 1000, burst }, 0);
      budgets.set(account, budget);
    }
    return budget;
  }

  /** An account is the name of a budget, and for a budget of a key also the key and the value, as in `tokens tenant t1`. */
  #limitsOf(account: string): NonNullable<FairQueueConfig["budgets"]>[string] | undefined {
    const [name = "", key, value = ""] = account.split(" ");
    if (key === undefined) return this.#config.budgets?.[name];
    const { budgets, for: own } = this.#config.keys?.[key] ?? {};
    return own?.[value]?.budgets?.[name] ?? budgets?.[name];
  }
}

type Changed = Pick<KeptCommit["changes"], "puts" | "dels">;
type Ended = (LeaseRecord | OfferRecord) & { readonly session: string };
type Settlement = { readonly one: Ended; readonly used: number };

/** More was used than was charged to one of its budgets. */
function isDebt({ one, used }: Settlement): boolean {
  return used > Math.min(...Object.values(one.charge?.costs ?? {}));
}

/** Leases and offers that the commit ends, and leases that it releases. An offer that becomes a lease does not end. */
function endedBy({ puts, dels }: Changed, { held }: Known): Ended[] {
  const granted = new Map(
    puts.flatMap((one) => (one.kind === "lease" ? [[one.session, one.charge?.at] as const] : [])),
  );
  const released = puts.filter((one) => one.kind === "lease" && one.isReleased && held.get(one.key) !== undefined);
  const again = puts.filter((one) => one.kind === "offer" && held.get(one.key)?.charge?.at !== one.charge?.at);
  const keys = dels.flatMap(([kind, key]) => (kind === "lease" || kind === "offer" ? [key] : []));
  return [...keys, ...released.map(({ key }) => key), ...again.map(({ key }) => key)].flatMap((key): Ended[] => {
    const one = held.get(key);
    if (one === undefined) return [];
    if (one.kind === "lease") return one.isReleased ? [] : [one];
    return granted.get(one.key) === one.charge?.at && granted.has(one.key) ? [] : [{ ...one, session: one.key }];
  });
}

/** Whether the commit keeps the lease as released, or its session as ended. */
function hasEnd(puts: Changed["puts"], { key, session }: Ended): boolean {
  return puts.some(
    (one) =>
      (one.kind === "lease" && one.key === key && one.isReleased) ||
      (one.kind === "ending" && one.key === session && one.end === "released"),
  );
}

function settle({ budgets }: Known, { session, charge }: Ended, used: number, now: number): number {
  let excess = 0;
  for (const name of Object.keys(charge?.costs ?? {}))
    excess += budgets.get(name)?.settle(session, charge?.at ?? 0, used, now) ?? 0;
  return excess;
}

/** The charges that are new in this commit. */
function charges(puts: Changed["puts"], { held }: Known): [session: string, charge: Charge][] {
  return puts.flatMap((one): [string, Charge][] => {
    if (one.kind !== "lease" && one.kind !== "offer") return [];
    if (one.kind === "lease" && one.isReleased) return [];
    const session = one.kind === "lease" ? one.session : one.key;
    const before = held.get(one.key) ?? held.get(session);
    held.set(one.key, one);
    if (one.kind === "lease" && before?.kind === "offer") held.delete(session);
    return one.charge === undefined || before?.charge?.at === one.charge.at ? [] : [[session, one.charge]];
  });
}

function compare({ budgets, records }: Known, now: number): string[] {
  return [...budgets].flatMap(([name, budget]) => {
    const { level, limit, perMs } = records.get(name) ?? { level: { spent: 0, at: 0 }, limit: 1, perMs: 1 };
    const stored = Math.max(0, level.spent - ((now - level.at) * limit) / perMs);
    const replayed = budget.missing(now);
    return Math.abs(stored - replayed) <= 1e-6 * Math.max(1, replayed)
      ? []
      : [`${stored} of ${name} is missing, ${replayed} by its charges`];
  });
}
