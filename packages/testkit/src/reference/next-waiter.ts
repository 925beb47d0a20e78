import { classOf, DEFAULT_CLASS, widthOf } from "@slotkeeper/protocol";
import type { DecideContext } from "@slotkeeper/queue/internals";
import { leastCharged, recharge, startCharge } from "./charges.ts";
import {
  type Asking,
  type Bucket,
  compared,
  first,
  isOf,
  type Key,
  type Line,
  lineOf,
  NO_NUMBERS,
  type Slot,
  State,
  sum,
  TINY,
  type Waiter,
  widths,
} from "./state.ts";

/** The use per weight at which a line and its class start, if that is below the meter. */
export type StartLevel = { readonly line?: number | undefined; readonly class?: number | undefined };

/** Who is next: the meter, the order, the turns of the weighted scheduler and the waiter pool. */
export class NextWaiter extends State {
  /** The host has classes, or requests of a class that the limits no longer have (`classes.ts`). */
  isClassed = false;

  /** The waiters of a line that compete for a slot: in the pool, and without an offer. */
  waiting(line: Line): Waiter[] {
    return this.inside(line).filter(({ session }) => !this.slots.some((one) => one.session === session && !one.token));
  }

  /** Whether a present client waits for the bucket, or for a place. */
  isWanted(bucket: string): boolean {
    const all = this.waiters.filter((one) => one.bucket === bucket);
    return all.some((one) => (one.isInside ? this.waiting(lineOf(one)).includes(one) : one.awayAt === undefined));
  }

  isActive(line: Line): boolean {
    return this.heldIn(line) > 0 || this.waiting(line).length > 0;
  }

  limit(bucket: string): number {
    return bucket === "" ? Number.POSITIVE_INFINITY : this.policy.slotsPerBucket;
  }

  /** Why the bucket itself may not get this number of slots now. */
  obstacle(bucket: string, width: number): "limit" | "cooldown" | undefined {
    if (this.held(bucket) + width > this.limit(bucket)) return "limit";
    return this.cooldowns.some((one) => one.bucket === bucket && one.until > this.now) ? "cooldown" : undefined;
  }

  /** Each slot adds to the use of its line. */
  moveTo(at: number): void {
    const passed = Math.max(0, at - this.now);
    const active = this.buckets.filter((one) => this.isActive(one));
    this.runMeters(active, passed);
    for (const one of active) Object.assign(one, { used: one.used + this.heldIn(one) * passed, activeAt: at });
    this.now = Math.max(this.now, at);
  }

  /** The meter grows by min(slots, demand) / weights of the active buckets. */
  runMeters(active: readonly Bucket[], passed: number): void {
    const demand = sum(active, (one) => this.demandOf(one));
    if (active.length > 0)
      this.meter += (Math.min(this.policy.slots, demand) / sum(active, ({ weight }) => weight)) * passed;
  }

  /** The slots that a line has or waits for, up to the limit of its bucket. */
  demandOf(line: Line): number {
    return Math.min(this.limit(line.bucket), this.heldIn(line) + wanted(this.waiting(line)));
  }

  /** The meter at which lines of a class start. */
  meterOf(_class: string): number {
    return this.meter;
  }

  /** The use of an idle line is forgotten unless it is ahead of the meter. */
  isAhead({ class: of, used, weight }: Bucket): boolean {
    return used > this.meterOf(of) * weight + 1e-3;
  }

  /** A line that becomes active starts at the meter, but never below its use. A changed weight keeps its lead over the meter. */
  activate({ class: of, bucket }: Line, weight: number, level: StartLevel = {}): Bucket {
    const start = Math.min(level.line ?? Number.POSITIVE_INFINITY, this.meterOf(of)) * weight;
    let found = this.buckets.find((one) => one.class === of && one.bucket === bucket);
    if (found === undefined)
      this.buckets.push((found = { class: of, bucket, weight, used: start, activeAt: this.now, ...NO_NUMBERS }));
    const idleUse = this.isAhead(found) ? Math.max(found.used, start) : start;
    const led =
      found.weight === weight ? found.used : Math.max(0, found.used + this.meterOf(of) * (weight - found.weight));
    const used = this.isActive(found) ? led : idleUse;
    const charged = found.charged * (weight / found.weight);
    return Object.assign(found, { weight, used, charged, activeAt: this.now });
  }

  /** The oldest waiter of a line whose client and instance are present, as far as the book knows. */
  head(line: Line, collectMs: number): Waiter | undefined {
    const present = this.waiting(line).filter(
      (one) => this.isClimbing(one, collectMs) && this.isThrough(one, collectMs),
    );
    return first(present, ({ arrivedAt, session }) => [arrivedAt, session]);
  }

  headWidth(line: Line, collectMs: number): number {
    return widthOf(this.head(line, collectMs)?.demand);
  }

  /** Of waiters that arrived at the same time, the first one by name is the oldest. */
  headKeys(line: Line, collectMs: number): Key[] {
    const { arrivedAt = 0, session = "" } = this.head(line, collectMs) ?? {};
    return [arrivedAt, session];
  }

  /** The lines of a class that compete for a slot, and of them those that may have one. */
  competing(collectMs: number, of = DEFAULT_CLASS): { all: Bucket[]; open: Bucket[]; blocked: Bucket[] } {
    const all = this.buckets.filter((one) => one.class === of && this.head(one, collectMs) !== undefined);
    const open = all.filter((one) => this.obstacle(one.bucket, this.headWidth(one, collectMs)) === undefined);
    return { all, open, blocked: all.filter((one) => !open.includes(one)) };
  }

  /** The order of the lines of one class: zone, slots per weight, use per weight, oldest head (docs/explanation/fairness.md), or only the last. */
  best(among: readonly Bucket[], collectMs: number): Bucket | undefined {
    if (this.heat.isHot) return this.turns(among, collectMs)[0];
    if (this.chargedBudget !== undefined) return leastCharged(among, (one) => this.headKeys(one, collectMs));
    const level = this.level(among[0]?.class ?? DEFAULT_CLASS);
    return first(among, (one) => {
      const head = this.headKeys(one, collectMs);
      return this.policy.order === "fifo" ? head : [...this.rank(one, this.heldIn(one), level * one.weight), ...head];
    });
  }

  /** The keys by which the order ranks what has this share and holds this number of slots. */
  rank({ weight, used }: { weight: number; used: number }, held: number, share: number): Key[] {
    const { widest } = this;
    const isWhole = widest === 1 && held + 1 <= share + TINY;
    const zone = isWhole ? 0 : this.isWithin(held, share) ? 1 : 2;
    return [zone, zone === 1 ? 0 : (held + widest) / weight, used / weight];
  }

  /** Zone 0 or 1. */
  isWithin(held: number, share: number): boolean {
    return held < share + this.widest - 1 - TINY;
  }

  /** The budget by which buckets are ordered. */
  get chargedBudget(): string | undefined {
    return /^budget:(.*)$/.exec(this.policy.order)?.[1];
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
  rechargeGrant(slot: Slot, amount: number): void {
    const line = this.buckets.find((one) => isOf(one, slot));
    if (line !== undefined && slot.counted > 0) recharge(line, amount - slot.counted);
  }

  /** Another order starts all accounts at zero: at the meter, and without a charge. */
  startAccounts(): void {
    for (const one of this.buckets)
      Object.assign(one, { used: this.meterOf(one.class) * one.weight, charged: 0, activeAt: this.now });
    for (const slot of this.slots) slot.counted = 0;
    this.chargeLevel = 0;
  }

  /** The fair number of slots per weight, for the lines of a class that want more. */
  level(of: string): number {
    const wanting = this.buckets.filter((one) => one.class === of && this.isContending(one));
    const ofClass = this.slots.filter(({ demand }) => classOf(demand) === of);
    const heldByOthers = widths(ofClass) - sum(wanting, (one) => this.heldIn(one));
    const weights = sum(wanting, ({ weight }) => weight);
    return weights === 0 ? 0 : Math.max(0, this.shared(of) - heldByOthers) / weights;
  }

  /** It waits, and its bucket is below its limit. */
  isContending(line: Line): boolean {
    return this.waiting(line).length > 0 && this.held(line.bucket) < this.limit(line.bucket);
  }

  /** The slots that the lines of a class share. Slots that no budget can fill belong to no share. */
  shared(_class: string): number {
    const { slots } = this.policy;
    return this.isBudgeted ? Math.min(slots, widths(this.slots) + this.widest) : slots;
  }

  /** The greatest width of a request in the pool, or with slots. */
  get widest(): number {
    const waiting = this.waiters.filter(({ isInside }) => isInside).map(({ demand }) => widthOf(demand));
    return Math.max(1, ...waiting, ...this.slots.map(({ width }) => width));
  }

  /** A wide waiter is first only while its line owns a part of the slots: zone 1. */
  isInShare(line: Line): boolean {
    const { weight = 1 } = this.buckets.find((one) => one.class === line.class && one.bucket === line.bucket) ?? {};
    return this.isWithin(this.heldIn(line), this.level(line.class) * weight);
  }

  /** The order at a hot host: the smallest virtual time, then the oldest head. */
  turns(among: readonly Bucket[], collectMs: number): Bucket[] {
    const keys = (one: Bucket) => [one.virtualTime, ...this.headKeys(one, collectMs)];
    return among.toSorted((a, b) => compared(keys(a), keys(b)));
  }

  /** At a host with budgets, keys or classes the weighted scheduler is off, unless budgets and keys are only tried. */
  isWeighted({ scheduler }: DecideContext): boolean {
    return scheduler.isEnabled && !this.isBudgeted && !this.isKeyed && !this.isClassed;
  }

  giveBackCosts(slot: Slot): void {
    this.settle(
      slot,
      Object.fromEntries(Object.keys(slot.paid?.costs ?? {}).map((account) => [account.split(" ")[0], 0])),
    );
    this.rechargeGrant(slot, 0);
  }

  inside(line: Line): Waiter[] {
    return this.waiters.filter((one) => one.isInside && isOf(line, one));
  }

  /** The waiters with a place in the pool of a class. */
  pool(of: string): Waiter[] {
    return this.waiters.filter((one) => one.isInside && classOf(one.demand) === of);
  }

  isPoolFull(of: string): boolean {
    return this.pool(of).length >= this.policy.waiters;
  }

  /** Who loses its place first: the youngest waiter of the line with the most places. */
  loser(among: readonly Waiter[]): Waiter | undefined {
    const youngest = among.toSorted((a, b) => compared([b.arrivedAt, b.session], [a.arrivedAt, a.session]));
    return first(youngest, (one) => [-this.inside(lineOf(one)).length]);
  }

  /** Who gets the next place: the oldest of the line with the fewest places. A client that is away waits for none. */
  entrant(of: string, collectMs: number, isWanted: (waiter: Waiter) => boolean = () => true): Waiter | undefined {
    const outside = this.waiters.filter(
      (one) =>
        classOf(one.demand) === of &&
        !one.isInside &&
        one.awayAt === undefined &&
        this.hasRoom(lineOf(one)) &&
        this.isThrough(one, collectMs),
    );
    return first(outside.filter(isWanted), (one) => [this.inside(lineOf(one)).length, one.arrivedAt, one.session]);
  }

  hasRoom(line: Line): boolean {
    return line.bucket === "" || this.inside(line).length < this.policy.waitersPerBucket;
  }

  /** A line without other waiters takes its first turn at the minimum of those that wait, and not before the last turn. */
  enter(waiter: Waiter, context: DecideContext, level?: StartLevel): void {
    const line = lineOf(waiter);
    const isAlone = this.waiting(line).length === 0;
    const account = this.activate(line, waiter.weight, level);
    const { all } = this.competing(context.collectMs, line.class);
    const start = Math.max(this.turn.virtualTime, this.turns(all, context.collectMs)[0]?.virtualTime ?? 0);
    if (this.isWeighted(context) && isAlone) account.virtualTime = Math.max(account.virtualTime, start);
    if (this.chargedBudget !== undefined && isAlone) startCharge(account, all, this.chargeLevelOf(line.class));
    waiter.isInside = true;
  }

  /** The charge per weight of the line of a class that got its last grant, before it. */
  chargeLevelOf(_class: string): number {
    return this.chargeLevel;
  }
}

/** The slots that waiters need. */
function wanted(waiters: readonly Pick<Waiter, "demand">[]): number {
  return sum(waiters, ({ demand }) => widthOf(demand));
}
