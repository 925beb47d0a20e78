import {
  type BudgetPolicies,
  type Costs,
  classOf,
  type KeyLimits,
  type KeyPolicy,
  keyLimitsOf,
  widthOf,
} from "@slotkeeper/protocol";
import type { BreakerState, HostPolicy, LiveLimits, SessionEnd } from "@slotkeeper/queue";
import type { DecideContext, Input } from "@slotkeeper/queue/internals";

import { type Paid, ReplayedBudget } from "./budgets.ts";

/** The state of the reference book, and its rules for keys and budgets. Plain lists, which are searched for each question. */

type Joining = Pick<
  Input & { kind: "return" },
  "session" | "bucket" | "weight" | "arrivedAt" | "deadlineAt" | "openMs" | "awayAt" | "demand"
>;
export type Asking = Pick<Joining, "bucket" | "demand">;
/** A session that waits, with a place in the pool or outside of it. */
export type Waiter = { -readonly [K in keyof Joining]: Joining[K] | (K extends "awayAt" ? undefined : never) } & {
  instance: string;
  isInside: boolean;
};
/** Slots that are held, or offered: then they have no token yet, and the session still waits. */
export type Slot = Pick<Joining, "session" | "bucket" | "demand"> & {
  readonly width: number;
  readonly token: string | undefined;
  readonly fence: number;
  readonly since: number;
  readonly isProbe: boolean;
  readonly paid: Paid | undefined;
  instance: string;
  endsAt: number;
  isReleased: boolean;
  keepUntil: number;
  /** What the order by a budget has charged for it. */
  counted: number;
};
/** How a session ended. `dropped` is no end: its instance died, and it may join again. */
export type End = Pick<Joining, "session"> & {
  readonly end: SessionEnd;
  readonly throttle: { readonly code: number; readonly retryAt: number } | undefined;
  keepUntil: number;
  endedAt: number;
};
/** The waiters of one class and one bucket. At a host without classes, all are of the class `default`. */
export type Line = { readonly class: string; readonly bucket: string };
/** The account of a line: what it used in slot-milliseconds, and its numbers for the weighted scheduler. */
export type Bucket = Line & {
  weight: number;
  used: number;
  activeAt: number;
  refusedAt: number | undefined;
  waits: number;
  waitedAt: number;
  virtualTime: number;
  /** What the order by a budget has charged it. */
  charged: number;
};

/** The numbers of a bucket besides its use. They are kept for an idle period. */
export const NO_NUMBERS = {
  refusedAt: undefined,
  waits: 0,
  waitedAt: Number.NEGATIVE_INFINITY,
  virtualTime: 0,
  charged: 0,
};

export class State {
  now = Number.NEGATIVE_INFINITY;
  given: DecideContext["limits"] | undefined;
  live: LiveLimits | undefined;
  isPaused = false;
  capacity: number | undefined;
  slots: Slot[] = [];
  waiters: Waiter[] = [];
  ends: End[] = [];
  buckets: Bucket[] = [];
  cooldowns: { readonly bucket: string; readonly until: number }[] = [];
  absences: { readonly instance: string; readonly missedAt: number }[] = [];
  breaker: BreakerState = { code: 0, errors: 0, successes: 0, consecutive: 0 };
  fence = 0;
  lastEndAt: number | undefined;
  /** Ends up to this time may be forgotten. */
  forgottenAt = Number.NEGATIVE_INFINITY;
  meter = 0;
  heat = { isHot: false, avgWaitMs: 0, idleSince: undefined as number | undefined };
  turn = { triedAt: Number.NEGATIVE_INFINITY, virtualTime: 0 };
  /** The session that gets the next grant, although fewer slots are free than it needs. */
  first: string | undefined;
  budgets: { [name: string]: ReplayedBudget } = {};
  /** The charge per weight of the bucket that got the last grant, before it. */
  chargeLevel = 0;

  /** What the users of a semaphore chose, otherwise what an operator set, otherwise the configuration. */
  get policy(): HostPolicy {
    const policy = { ...(this.given?.policy as HostPolicy), ...this.live };
    return { ...policy, slots: this.capacity ?? policy.slots };
  }

  get free(): number {
    return this.policy.slots - widths(this.slots);
  }

  /** Slots of a bucket, of all classes. */
  held(bucket: string): number {
    return widths(this.slots.filter((slot) => slot.bucket === bucket));
  }

  heldIn(line: Line): number {
    return widths(this.slots.filter((slot) => isOf(line, slot)));
  }

  /** Slots of leases and offers of one value of a key. */
  heldBy(key: KeyPolicy, value: string): number {
    return widths(this.slots.filter((slot) => key.name !== "bucket" && slot.demand?.keys?.[key.name] === value));
  }

  /** The value of a request for a key. The key `bucket` is the bucket; it spares the shared one. */
  valueOf({ name }: KeyPolicy, { bucket, demand }: Asking): string | undefined {
    return name === "bucket" ? bucket || undefined : demand?.keys?.[name];
  }

  /** Whether the slots and the budgets of its value suffice for a waiter. */
  hasKeyRoom(key: KeyPolicy, waiter: Waiter): boolean {
    const canPay = this.keyCosts(key, waiter).every(([account, amount]) => this.canPayOne(account, amount));
    return !this.isShort(key, waiter, key.isShadow === true) && canPay;
  }

  /** The slots of its value do not suffice. Nothing waits for a key that is only tried. */
  isShort(key: KeyPolicy, asking: Asking, isTried: boolean): boolean {
    const value = this.valueOf(key, asking);
    if (value === undefined || isTried) return false;
    const { slots = Number.POSITIVE_INFINITY } = keyLimitsOf(key, value);
    return this.heldBy(key, value) + widthOf(asking.demand) > slots;
  }

  /** The value of a request for a key that may hold it back. */
  lineOf(key: KeyPolicy, asking: Asking): string | undefined {
    const value = this.valueOf(key, asking);
    return value !== undefined && isLimited(keyLimitsOf(key, value), key.isShadow === true) ? value : undefined;
  }

  /** Waiters that may go on to the next key: of each value and class the oldest, if there is room. */
  climb(collectMs: number): { through: Waiter[]; fronts: Waiter[] } {
    let through = this.waiters.filter((one) => this.isClimbing(one, collectMs));
    const fronts: Waiter[] = [];
    for (const key of this.policy.keys ?? []) {
      const isFree = (one: Waiter) => this.lineOf(key, one) === undefined;
      const isBehind = (one: Waiter, other: Waiter) =>
        this.lineOf(key, one) === this.lineOf(key, other) &&
        classOf(one.demand) === classOf(other.demand) &&
        compared([other.arrivedAt, other.session], [one.arrivedAt, one.session]) < 0;
      const standing = through;
      const oldest = standing.filter((one) => !isFree(one) && !standing.some((other) => isBehind(one, other)));
      fronts.push(...oldest.filter((one) => !this.hasKeyRoom(key, one)));
      through = [...standing.filter(isFree), ...oldest.filter((one) => this.hasKeyRoom(key, one))];
    }
    return { through, fronts };
  }

  /** It has no offer, and its client and its instance are present, as far as the book knows. Outside the pool, the client must not be away at all. */
  isClimbing({ session, instance, awayAt, isInside }: Waiter, collectMs: number): boolean {
    if (this.absences.some((one) => one.instance === instance)) return false;
    if (this.slots.some((one) => one.session === session && !one.token)) return false;
    return awayAt === undefined || (isInside && awayAt + collectMs > this.now);
  }

  /** Whether its keys have room for the waiter. A waiter without keys needs none. */
  isThrough(waiter: Waiter, collectMs: number): boolean {
    const isKeyed = this.policy.keys?.some((key) => this.lineOf(key, waiter) !== undefined) === true;
    return !isKeyed || this.climb(collectMs).through.includes(waiter);
  }

  /** Requests wait for a key, or are refused without it. */
  get isKeyed(): boolean {
    return (this.policy.keys ?? []).some(({ isShadow = false, isRequired = false, ...key }) => {
      const values = [key, ...Object.values(key.for ?? {})];
      return (isRequired && !isShadow) || values.some((limits) => isLimited(limits, isShadow));
    });
  }

  /** Requests wait for a budget. For one in shadow mode they do not. */
  get isBudgeted(): boolean {
    return Object.values(this.policy.budgets ?? {}).some(({ isShadow = false }) => !isShadow);
  }

  /** What a request costs, of every budget of the host and of its keys, by account. */
  costs(asking: Asking): [account: string, amount: number][] {
    const ofKeys = (this.policy.keys ?? []).flatMap((key) => this.keyCosts(key, asking));
    return [...costsOf(this.policy.budgets, "", asking), ...ofKeys];
  }

  keyCosts(key: KeyPolicy, asking: Asking): [account: string, amount: number][] {
    const value = this.valueOf(key, asking);
    if (value === undefined) return [];
    return costsOf(keyLimitsOf(key, value).budgets, ` ${key.name} ${value}`, asking);
  }

  /** A budget whose burst is below the cost. */
  tooDear(asking: Asking): [account: string, amount: number] | undefined {
    return this.costs(asking).find(([account, amount]) => {
      const { burst = 0, isShadow = false } = this.budgetPolicy(account) ?? {};
      return amount > burst && !isShadow;
    });
  }

  canPay(asking: Asking): boolean {
    return this.costs(asking).every(([account, amount]) => this.canPayOne(account, amount));
  }

  /** A budget in shadow mode holds back no request. */
  canPayOne(account: string, amount: number): boolean {
    return this.budgetPolicy(account)?.isShadow === true || this.budgetOf(account).canPay(amount, this.now);
  }

  budgetOf(account: string): ReplayedBudget {
    const budget = (this.budgets[account] ??= new ReplayedBudget());
    const policy = this.budgetPolicy(account);
    if (policy !== undefined) budget.use(policy, this.now);
    return budget;
  }

  /** Undefined: the host has no such budget now. */
  budgetPolicy(account: string): BudgetPolicies[string] | undefined {
    const [budget = "", keyName, ...value] = account.split(" ");
    if (keyName === undefined) return this.policy.budgets?.[budget];
    const key = this.policy.keys?.find(({ name }) => name === keyName);
    return key && keyLimitsOf(key, value.join(" ")).budgets?.[budget];
  }

  pay({ session, ...asking }: Asking & { session: string }): Paid | undefined {
    const costs = this.costs(asking);
    const isShort = ([account, amount]: [string, number]) => !this.budgetOf(account).canPay(amount, this.now);
    const short = costs.filter(isShort).map(([account]) => {
      const [budget, key] = account.split(" ");
      return key === undefined ? `budget:${budget}` : `key:${key}`;
    });
    const tried = (this.policy.keys ?? []).filter(({ isShadow = false }) => isShadow);
    const shortKeys = tried.filter(
      (key) => this.isShort(key, asking, false) || (key.isRequired === true && this.valueOf(key, asking) === undefined),
    );
    const all = [...new Set([...short, ...shortKeys.map(({ name }) => `key:${name}`)])];
    for (const [account, amount] of costs) this.budgetOf(account).charge(session, amount, this.now);
    if (costs.length === 0 && all.length === 0) return undefined;
    return { at: this.now, costs: Object.fromEntries(costs), short: all };
  }

  /** `used` by the name of the budget: of the host and of keys. Returns what it ignored, and what exceeds the largest debt. */
  settle({ session, paid }: Slot, used: Costs): { ignored: string[]; excess: [budget: string, units: number][] } {
    const accounts = Object.keys(paid?.costs ?? {}).filter((account) => this.budgetPolicy(account) !== undefined);
    const of = (name: string) => accounts.filter((account) => account.split(" ")[0] === name);
    const isSound = ([name, amount]: [string, number]) => of(name).length > 0 && amount >= 0 && amount < Infinity;
    const all = Object.entries(used);
    const excess = all.filter(isSound).map(([name, amount]): [string, number] => {
      const rests = of(name).map((one) => this.budgetOf(one).settle(session, paid?.at ?? 0, amount, this.now));
      return [name, Math.max(...rests)];
    });
    return { ignored: all.filter((one) => !isSound(one)).map(([name]) => name), excess };
  }
}

export function lineOf({ bucket, demand }: Asking): Line {
  return { class: classOf(demand), bucket };
}

export function isOf(line: Line, { bucket, demand }: Asking): boolean {
  return line.bucket === bucket && line.class === classOf(demand);
}

/** Quotients of sums of weights have rounding errors, and so has the use in milliseconds. */
export const TINY = 1e-9;
const ROUNDING = [0, TINY, 1e-3, 0];

export function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}

export function widths(items: readonly { readonly width: number }[]): number {
  return sum(items, ({ width }) => width);
}

/** Requests wait for something of it: its slots, or a budget that is not in shadow mode. */
function isLimited({ slots, budgets = {} }: KeyLimits, isTried: boolean): boolean {
  return (slots !== undefined && !isTried) || Object.values(budgets).some(({ isShadow = false }) => !isShadow);
}

function costsOf(budgets: BudgetPolicies = {}, suffix: string, { demand }: Asking): [string, number][] {
  return Object.entries(budgets).map(([name, { default: usual }]) => [name + suffix, demand?.cost?.[name] ?? usual]);
}

export type Key = number | string;

/** The item with the smallest keys, compared one after the other. */
export function first<T>(items: readonly T[], keysOf: (item: T) => Key[]): T | undefined {
  const ranked = items.map((item) => ({ item, keys: keysOf(item) }));
  return ranked.toSorted((a, b) => compared(a.keys, b.keys))[0]?.item;
}

export function compared(a: Key[], b: Key[]): number {
  const at = a.findIndex((key, index) => {
    const other = b[index] as Key;
    return typeof key === "number" && typeof other === "number"
      ? Math.abs(key - other) > (ROUNDING[index] ?? 0)
      : key !== other;
  });
  return at < 0 ? 0 : (a[at] as Key) < (b[at] as Key) ? -1 : 1;
}
