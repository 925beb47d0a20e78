import { widthOf } from "@slotkeeper/protocol";
import type { DecideContext } from "@slotkeeper/queue/internals";
import {
  type Asking,
  type Bucket,
  compared,
  first,
  type Key,
  NO_NUMBERS,
  type Slot,
  State,
  sum,
  TINY,
  type Waiter,
  widths,
} from "./state.ts";

/** Who is next: the meter, the order, the turns of the weighted scheduler and the waiter pool. */
export class NextWaiter extends State {
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

  /** At a host with budgets or keys the weighted scheduler is off, unless they are only tried. */
  isWeighted({ scheduler }: DecideContext): boolean {
    return scheduler.isEnabled && !this.isBudgeted && !this.isKeyed;
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

/** The slots that waiters need. */
function wanted(waiters: readonly Pick<Waiter, "demand">[]): number {
  return sum(waiters, ({ demand }) => widthOf(demand));
}
