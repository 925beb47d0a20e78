import { type BudgetPolicies, type Costs, type KeyPolicy, keyLimitsOf, widthOf } from "@slotkeeper/protocol";
import type { BreakerState, HostPolicy, LiveLimits, SessionEnd } from "@slotkeeper/queue";
import type { DecideContext, Input } from "@slotkeeper/queue/internals";

import { type Paid, ReplayedBudget } from "./budgets.ts";

/**
 * The state of the reference book and its rules for who is next: the meter, the order, the turns of the weighted
 * scheduler and the waiter pool. `reference-book.ts` has the rest. Plain lists, which are searched for each question.
 */

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
/** A client group: what it used in slot-milliseconds, and its numbers for the weighted scheduler. */
export type Bucket = Pick<Joining, "bucket"> & {
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

  held(bucket: string): number {
    return widths(this.slots.filter((slot) => slot.bucket === bucket));
  }

  /** The waiters of a bucket that compete for a slot: in the pool, and without an offer. */
  waiting(bucket: string): Waiter[] {
    return this.inside(bucket).filter(
      ({ session }) => !this.slots.some((one) => one.session === session && !one.token),
    );
  }

  /** Whether a present client waits for the bucket, or for a place. */
  isWanted(bucket: string): boolean {
    const outside = this.waiters.filter((one) => one.bucket === bucket && !one.isInside && one.awayAt === undefined);
    return this.waiting(bucket).length + outside.length > 0;
  }

  isActive(bucket: string): boolean {
    return this.held(bucket) > 0 || this.waiting(bucket).length > 0;
  }

  limit(bucket: string): number {
    return bucket === "" ? Number.POSITIVE_INFINITY : this.policy.slotsPerBucket;
  }

  /** Why the bucket itself may not get this number of slots now. */
  obstacle(bucket: string, width: number): "limit" | "cooldown" | undefined {
    if (this.held(bucket) + width > this.limit(bucket)) return "limit";
    return this.cooldowns.some((one) => one.bucket === bucket && one.until > this.now) ? "cooldown" : undefined;
  }

  /** Each slot adds to the use of its bucket. The meter grows by min(slots, demand) / weights of the active buckets. */
  moveTo(at: number): void {
    const passed = Math.max(0, at - this.now);
    const active = this.buckets.filter(({ bucket }) => this.isActive(bucket));
    const demand = sum(active, ({ bucket }) =>
      Math.min(this.limit(bucket), this.held(bucket) + wanted(this.waiting(bucket))),
    );
    if (active.length > 0)
      this.meter += (Math.min(this.policy.slots, demand) / sum(active, ({ weight }) => weight)) * passed;
    for (const one of active) Object.assign(one, { used: one.used + this.held(one.bucket) * passed, activeAt: at });
    this.now = Math.max(this.now, at);
  }

  /** The use of an idle bucket is forgotten unless it is ahead of the meter. */
  isAhead({ used, weight }: Bucket): boolean {
    return used > this.meter * weight + 1e-3;
  }

  /** A bucket that becomes active starts at the meter, but never below its use. A changed weight keeps its use per weight. */
  activate(bucket: string, weight: number, level = this.meter): Bucket {
    const start = Math.min(level, this.meter) * weight;
    let found = this.buckets.find((one) => one.bucket === bucket);
    if (found === undefined)
      this.buckets.push((found = { bucket, weight, used: start, activeAt: this.now, ...NO_NUMBERS }));
    const idleUse = this.isAhead(found) ? Math.max(found.used, start) : start;
    const used = this.isActive(bucket) ? found.used * (weight / found.weight) : idleUse;
    const charged = found.charged * (weight / found.weight);
    return Object.assign(found, { weight, used, charged, activeAt: this.now });
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
    const value = this.valueOf(key, waiter) as string;
    const { slots = Number.POSITIVE_INFINITY } = keyLimitsOf(key, value);
    const canPay = this.keyCosts(key, waiter).every(([account, amount]) => this.canPayOne(account, amount));
    return this.heldBy(key, value) + widthOf(waiter.demand) <= slots && canPay;
  }

  /** Waiters that may go on to the next key: of each value the oldest, if there is room. The others are in `behind`. */
  climb(collectMs: number): { through: Waiter[]; fronts: Waiter[] } {
    let through = this.waiters.filter((one) => this.isClimbing(one, collectMs));
    const fronts: Waiter[] = [];
    for (const key of this.policy.keys ?? []) {
      const values = new Set(through.map((one) => this.valueOf(key, one)));
      through = [...values].flatMap((value) => {
        const line = through.filter((one) => this.valueOf(key, one) === value);
        if (value === undefined) return line;
        const oldest = first(line, ({ arrivedAt, session }) => [arrivedAt, session]) as Waiter;
        if (this.hasKeyRoom(key, oldest)) return [oldest];
        fronts.push(oldest);
        return [];
      });
    }
    return { through, fronts };
  }

  /** Its client and its instance are present, as far as the book knows. Outside the pool, the client must not be away at all. */
  isClimbing({ session, instance, awayAt, isInside }: Waiter, collectMs: number): boolean {
    if (this.absences.some((one) => one.instance === instance)) return false;
    if (!isInside) return awayAt === undefined;
    const isOffered = this.slots.some((one) => one.session === session && !one.token);
    return !isOffered && (awayAt === undefined || awayAt + collectMs > this.now);
  }

  /** Whether its keys have room for the waiter. A waiter without keys needs none. */
  isThrough(waiter: Waiter, collectMs: number): boolean {
    const isKeyed = this.policy.keys?.some((key) => this.valueOf(key, waiter) !== undefined) === true;
    return !isKeyed || this.climb(collectMs).through.includes(waiter);
  }

  /** The oldest waiter of a bucket whose client and instance are present, as far as the book knows. */
  head(bucket: string, collectMs: number): Waiter | undefined {
    const present = this.waiting(bucket).filter(
      (one) => this.isClimbing(one, collectMs) && this.isThrough(one, collectMs),
    );
    return first(present, ({ arrivedAt, session }) => [arrivedAt, session]);
  }

  headWidth(bucket: string, collectMs: number): number {
    return widthOf(this.head(bucket, collectMs)?.demand);
  }

  /** Of waiters that arrived at the same time, the first one by name is the oldest. */
  headKeys(bucket: string, collectMs: number): Key[] {
    const { arrivedAt = 0, session = "" } = this.head(bucket, collectMs) ?? {};
    return [arrivedAt, session];
  }

  /** The buckets that compete for a slot, and of them those that may have one. */
  competing(collectMs: number): { all: Bucket[]; open: Bucket[]; blocked: Bucket[] } {
    const all = this.buckets.filter(({ bucket }) => this.head(bucket, collectMs) !== undefined);
    const open = all.filter(({ bucket }) => this.obstacle(bucket, this.headWidth(bucket, collectMs)) === undefined);
    return { all, open, blocked: all.filter((one) => !open.includes(one)) };
  }

  /** The order: zone, slots per weight, use per weight, oldest head (docs/explanation/fairness.md), or only the last. */
  best(among: Bucket[], collectMs: number): Bucket | undefined {
    if (this.heat.isHot) return this.turns(among, collectMs)[0];
    const { order } = this.policy;
    if (this.chargedBudget !== undefined) return this.leastCharged(among, collectMs);
    const level = this.level();
    const { widest } = this;
    return first(among, ({ bucket, weight, used }) => {
      const head = this.headKeys(bucket, collectMs);
      const [held, share] = [this.held(bucket), level * weight];
      const isWhole = widest === 1 && held + 1 <= share + TINY;
      const zone = isWhole ? 0 : held < share + widest - 1 - TINY ? 1 : 2;
      return order === "fifo" ? head : [zone, zone === 1 ? 0 : (held + widest) / weight, used / weight, ...head];
    });
  }

  /** The budget by which buckets are ordered. */
  get chargedBudget(): string | undefined {
    return /^budget:(.*)$/.exec(this.policy.order)?.[1];
  }

  /** The smallest charge per weight, then the oldest head. */
  leastCharged(among: Bucket[], collectMs: number): Bucket | undefined {
    const least = Math.min(...among.map(({ charged, weight }) => charged / weight));
    const isLeast = ({ charged, weight }: Bucket) => charged / weight - least <= 1e-12 * Math.max(1, charged / weight);
    return first(among.filter(isLeast), ({ bucket }) => this.headKeys(bucket, collectMs));
  }

  /** A grant or an offer is charged its cost, at least 1. Returns the charge. */
  chargeGrant(bucket: Bucket, asking: Asking): number {
    const name = this.chargedBudget;
    if (name === undefined) return 0;
    const [, cost = 0] = this.costs(asking).find(([account]) => account === name) ?? [];
    const amount = Math.max(1, cost);
    this.chargeLevel = bucket.charged / bucket.weight;
    bucket.charged += amount;
    return amount;
  }

  /** The charge of a grant becomes another one. */
  rechargeGrant({ bucket: name, counted }: Slot, amount: number): void {
    const bucket = this.buckets.find((one) => one.bucket === name);
    if (bucket !== undefined && counted > 0) bucket.charged = Math.max(0, bucket.charged + (amount - counted));
  }

  /** Another order starts all accounts at zero: at the meter, and without a charge. */
  startAccounts(): void {
    for (const one of this.buckets)
      Object.assign(one, { used: this.meter * one.weight, charged: 0, activeAt: this.now });
    for (const slot of this.slots) slot.counted = 0;
    this.chargeLevel = 0;
  }

  /** The fair number of slots per weight, for the buckets that want more. */
  level(): number {
    const wanting = this.buckets.filter(
      ({ bucket }) => this.waiting(bucket).length > 0 && this.held(bucket) < this.limit(bucket),
    );
    const heldByOthers = widths(this.slots) - sum(wanting, ({ bucket }) => this.held(bucket));
    // Slots that no budget can fill belong to no share.
    const { slots } = this.policy;
    const shared = this.isBudgeted ? Math.min(slots, widths(this.slots) + this.widest) : slots;
    return Math.max(0, shared - heldByOthers) / sum(wanting, ({ weight }) => weight);
  }

  /** The greatest width of a request in the pool, or with slots. */
  get widest(): number {
    const waiting = this.inside().map(({ demand }) => widthOf(demand));
    return Math.max(1, ...waiting, ...this.slots.map(({ width }) => width));
  }

  /** A wide waiter is first only while its bucket owns a part of the slots: zone 1. */
  isInShare(bucket: string): boolean {
    const { weight = 1 } = this.buckets.find((one) => one.bucket === bucket) ?? {};
    return this.held(bucket) < this.level() * weight + this.widest - 1 - TINY;
  }

  /** The order at a hot host: the smallest virtual time, then the oldest head. */
  turns(among: Bucket[], collectMs: number): Bucket[] {
    const keys = ({ bucket, virtualTime }: Bucket) => [virtualTime, ...this.headKeys(bucket, collectMs)];
    return among.toSorted((a, b) => compared(keys(a), keys(b)));
  }

  /** At a host with budgets or keys the weighted scheduler is off. */
  isWeighted({ scheduler }: DecideContext): boolean {
    return scheduler.isEnabled && !this.isBudgeted && this.policy.keys === undefined;
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
    for (const [account, amount] of costs) this.budgetOf(account).charge(session, amount, this.now);
    return costs.length === 0 ? undefined : { at: this.now, costs: Object.fromEntries(costs), short };
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

  giveBackCosts(slot: Slot): void {
    this.settle(
      slot,
      Object.fromEntries(Object.keys(slot.paid?.costs ?? {}).map((account) => [account.split(" ")[0], 0])),
    );
    this.rechargeGrant(slot, 0);
  }

  inside(bucket?: string): Waiter[] {
    return this.waiters.filter((one) => one.isInside && (bucket === undefined || one.bucket === bucket));
  }

  isPoolFull(): boolean {
    return this.inside().length >= this.policy.waiters;
  }

  /** Who loses its place first: the youngest waiter of the bucket with the most places. */
  loser(among: readonly Waiter[]): Waiter | undefined {
    const youngest = among.toSorted((a, b) => compared([b.arrivedAt, b.session], [a.arrivedAt, a.session]));
    return first(youngest, ({ bucket }) => [-this.inside(bucket).length]);
  }

  /** Who gets the next place: the oldest of the bucket with the fewest places. A client that is away waits for none. */
  entrant(collectMs: number, isWanted: (waiter: Waiter) => boolean = () => true): Waiter | undefined {
    const outside = this.waiters.filter(
      (one) => !one.isInside && one.awayAt === undefined && this.hasRoom(one.bucket) && this.isThrough(one, collectMs),
    );
    return first(outside.filter(isWanted), (one) => [this.inside(one.bucket).length, one.arrivedAt, one.session]);
  }

  hasRoom(bucket: string): boolean {
    return bucket === "" || this.inside(bucket).length < this.policy.waitersPerBucket;
  }

  /** A bucket without other waiters takes its first turn at the minimum of those that wait, and not before the last turn. */
  enter(waiter: Waiter, context: DecideContext, level?: number): void {
    const isAlone = this.waiting(waiter.bucket).length === 0;
    const bucket = this.activate(waiter.bucket, waiter.weight, level);
    const minimum = this.turns(this.competing(context.collectMs).all, context.collectMs)[0]?.virtualTime ?? 0;
    const start = Math.max(this.turn.virtualTime, minimum);
    if (this.isWeighted(context) && isAlone) bucket.virtualTime = Math.max(bucket.virtualTime, start);
    if (this.chargedBudget !== undefined && isAlone) {
      const least = this.leastCharged(this.competing(context.collectMs).all, context.collectMs);
      const level = least === undefined ? this.chargeLevel : least.charged / least.weight;
      if (bucket.charged / bucket.weight < level) bucket.charged = level * bucket.weight;
    }
    waiter.isInside = true;
  }
}

/** Quotients of sums of weights have rounding errors, and so has the use in milliseconds. */
const TINY = 1e-9;
const ROUNDING = [0, TINY, 1e-3, 0];

function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}

function widths(items: readonly { readonly width: number }[]): number {
  return sum(items, ({ width }) => width);
}

function costsOf(budgets: BudgetPolicies = {}, suffix: string, { demand }: Asking): [string, number][] {
  return Object.entries(budgets).map(([name, { default: usual }]) => [name + suffix, demand?.cost?.[name] ?? usual]);
}

/** The slots that waiters need. */
function wanted(waiters: readonly Pick<Waiter, "demand">[]): number {
  return sum(waiters, ({ demand }) => widthOf(demand));
}

type Key = number | string;

/** The item with the smallest keys, compared one after the other. */
export function first<T>(items: readonly T[], keysOf: (item: T) => Key[]): T | undefined {
  const ranked = items.map((item) => ({ item, keys: keysOf(item) }));
  return ranked.toSorted((a, b) => compared(a.keys, b.keys))[0]?.item;
}

function compared(a: Key[], b: Key[]): number {
  const at = a.findIndex((key, index) => {
    const other = b[index] as Key;
    return typeof key === "number" && typeof other === "number"
      ? Math.abs(key - other) > (ROUNDING[index] ?? 0)
      : key !== other;
  });
  return at < 0 ? 0 : (a[at] as Key) < (b[at] as Key) ? -1 : 1;
}
