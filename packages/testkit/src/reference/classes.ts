import { type ClassPolicy, classOf, DEFAULT_CLASS, widthOf } from "@slotkeeper/protocol";
import type { DecideContext } from "@slotkeeper/queue/internals";
import { leastCharged, recharge, startCharge } from "./charges.ts";
import type { StartLevel } from "./next-waiter.ts";
import { SlotsAndEnds } from "./slots-and-ends.ts";
import { type Asking, type Bucket, first, type Line, type Slot, sum, TINY, type Waiter, widths } from "./state.ts";

/** A class: what all its lines used and were charged together, and the meter at which its lines start. */
export type ClassAccount = {
  readonly class: string;
  weight: number;
  used: number;
  charged: number;
  activeAt: number;
  meter: number;
  /** The charge per weight of its line that got its last grant, before it. */
  chargeLevel: number;
};
/** A class with the line that it would give the next slot. */
type Candidate = ClassAccount & { readonly line: Bucket };

/**
 * Classes: a part of the reference book. The slots are shared among classes as they are among buckets, by the sums over
 * their lines, and then among the lines of the class. A host that never had classes has one, `default`, and this file
 * changes nothing there.
 */
export class Classes extends SlotsAndEnds {
  classes: ClassAccount[] = [];

  // Which classes there are.

  policyOf(of: string): ClassPolicy {
    const { classes = {} } = this.policy;
    return (Object.hasOwn(classes, of) ? classes[of] : undefined) ?? { weight: 1, floor: 0 };
  }

  ceiling(of: string): number {
    return this.policyOf(of).ceiling ?? Number.POSITIVE_INFINITY;
  }

  /** The classes with waiters or slots, by name. */
  get classNames(): string[] {
    return [...new Set([...this.waiters, ...this.slots].map(({ demand }) => classOf(demand)))].toSorted();
  }

  /** Call when the limits or the classes of requests may have changed. All accounts start again with the first class, and after the last. */
  useClasses(joining?: Asking): void {
    const isNamed = [...this.classNames, classOf(joining?.demand)].some((of) => of !== DEFAULT_CLASS);
    const isClassed = this.policy.classes !== undefined || isNamed;
    if (isClassed !== this.isClassed) {
      Object.assign(this, { isClassed, classes: [] });
      if (isClassed) for (const of of this.classNames) if (this.isClassActive(of)) this.activateClass(of);
      this.startAccounts();
    }
    for (const one of this.classes) {
      const { weight } = this.policyOf(one.class);
      if (weight === one.weight) continue;
      const used = Math.max(0, one.used + this.meter * (weight - one.weight));
      Object.assign(one, { weight, used, charged: one.charged * (weight / one.weight) });
    }
  }

  // Accounts.

  account(of: string): ClassAccount | undefined {
    return this.classes.find((one) => one.class === of);
  }

  heldByClass(of: string): number {
    return widths(this.slots.filter(({ demand }) => classOf(demand) === of));
  }

  linesOf(of: string): Bucket[] {
    return this.buckets.filter((one) => one.class === of);
  }

  isClassActive(of: string): boolean {
    return this.linesOf(of).some((one) => this.isActive(one));
  }

  isClassAhead({ used, weight }: ClassAccount): boolean {
    return used > this.meter * weight + 1e-3;
  }

  /** The host's meter: min(slots, demand) / weights of the active classes. That of a class: its slots / weights of its active lines. */
  override runMeters(active: readonly Bucket[], passed: number): void {
    if (!this.isClassed) return super.runMeters(active, passed);
    const classes = this.classes.filter((one) => active.some((line) => line.class === one.class));
    const linesOf = (one: ClassAccount) => active.filter((line) => line.class === one.class);
    const wanted = (one: ClassAccount) => sum(linesOf(one), (line) => this.demandOf(line));
    const demand = sum(classes, (one) => Math.min(this.ceiling(one.class), wanted(one)));
    if (classes.length > 0)
      this.meter += (Math.min(this.policy.slots, demand) / sum(classes, ({ weight }) => weight)) * passed;
    for (const one of classes) {
      const used = this.heldByClass(one.class) * passed;
      one.meter += used / sum(linesOf(one), ({ weight }) => weight);
      Object.assign(one, { used: one.used + used, activeAt: this.now + passed });
    }
  }

  override meterOf(of: string): number {
    return this.isClassed ? (this.account(of)?.meter ?? 0) : super.meterOf(of);
  }

  /** A class that becomes active starts at the host's meter, but never below its use. */
  activateClass(of: string, level = Number.POSITIVE_INFINITY): ClassAccount {
    const { weight } = this.policyOf(of);
    const start = Math.min(level, this.meter) * weight;
    let found = this.account(of);
    if (found === undefined) {
      found = { class: of, weight, used: start, charged: 0, activeAt: this.now, meter: 0, chargeLevel: 0 };
      this.classes.push(found);
    }
    const idleUse = this.isClassAhead(found) ? Math.max(found.used, start) : start;
    const used = this.isClassActive(of) ? found.used : idleUse;
    return Object.assign(found, { used, activeAt: this.now });
  }

  override activate(line: Line, weight: number, level: StartLevel = {}): Bucket {
    if (this.isClassed) this.activateClass(line.class, level.class);
    return super.activate(line, weight, level);
  }

  /** A session that returns starts level with the best class that waits, and in it with the best line. */
  returnLevel(of: string): StartLevel {
    const { collectMs } = this.context;
    const line = this.best(this.competing(collectMs, of).all, collectMs);
    const best = this.bestClass(this.waitingClasses());
    return { line: line && line.used / line.weight, class: best && best.used / best.weight };
  }

  override startAccounts(): void {
    super.startAccounts();
    for (const one of this.classes)
      Object.assign(one, { used: this.meter * one.weight, charged: 0, activeAt: this.now, chargeLevel: 0 });
  }

  /** Charges of classes are kept for an idle period, and accounts while they matter. */
  tidyClasses(idleMs: number): void {
    const idle = this.classes.filter((one) => !this.isClassActive(one.class));
    for (const one of idle) if (this.now - one.activeAt >= idleMs) one.charged = 0;
    const isNeeded = (one: ClassAccount) =>
      this.isClassAhead(one) || one.charged > 0 || this.linesOf(one.class).length > 0;
    this.classes = this.classes.filter((one) => !idle.includes(one) || isNeeded(one));
  }

  // Charges of the order by a budget.

  override enter(waiter: Waiter, context: DecideContext, level: StartLevel = {}): void {
    const of = classOf(waiter.demand);
    if (this.isClassed && this.chargedBudget !== undefined) {
      const isAlone = this.linesOf(of).every((line) => this.waiting(line).length === 0);
      const account = this.activateClass(of, level.class);
      if (isAlone) startCharge(account, this.waitingClasses(), this.chargeLevel);
    }
    super.enter(waiter, context, level);
  }

  override chargeLevelOf(of: string): number {
    return this.isClassed ? (this.account(of)?.chargeLevel ?? 0) : super.chargeLevelOf(of);
  }

  override chargeGrant(line: Bucket, asking: Asking): number {
    const account = this.isClassed ? this.account(line.class) : undefined;
    const level = line.charged / line.weight;
    const amount = super.chargeGrant(line, asking);
    if (account === undefined || this.chargedBudget === undefined) return amount;
    account.chargeLevel = level;
    this.chargeLevel = account.charged / account.weight;
    account.charged += amount;
    return amount;
  }

  override rechargeGrant(slot: Slot, amount: number): void {
    super.rechargeGrant(slot, amount);
    const account = this.account(classOf(slot.demand));
    if (account !== undefined && slot.counted > 0) recharge(account, amount - slot.counted);
  }

  // Shares.

  /** Slots are short: no budget keeps some of them free. */
  get areFloorsInForce(): boolean {
    const floors = sum(Object.values(this.policy.classes ?? {}), ({ floor }) => floor);
    const isShort = !this.isBudgeted || widths(this.slots) + this.widest >= this.policy.slots;
    return isShort && floors < this.policy.slots;
  }

  /** The share of a class: weight × level, at least its floor while slots are short, at most its ceiling. The shares of those that want more sum up to what there is. */
  share(of: string): number {
    const isContending = (one: ClassAccount) =>
      this.linesOf(one.class).some((line) => this.isContending(line)) &&
      this.heldByClass(one.class) < this.ceiling(one.class);
    const wanting = this.classes.filter(isContending).map((one) => one.class);
    const heldByOthers = widths(this.slots) - sum(wanting, (one) => this.heldByClass(one));
    const level = this.levelOfClasses(wanting, super.shared(of) - heldByOthers);
    return this.shareAt(of, level);
  }

  shareAt(of: string, level: number): number {
    const { weight, floor } = this.policyOf(of);
    return Math.min(this.ceiling(of), Math.max(weight * level, this.areFloorsInForce ? floor : 0));
  }

  /** The level at which the shares sum up to `shared`. Between two neighbouring bends, at which a floor or a ceiling begins to count, the sum is a straight line. */
  levelOfClasses(wanting: readonly string[], shared: number): number {
    const sumAt = (level: number) => sum(wanting, (one) => this.shareAt(one, level));
    const bends = wanting.flatMap((one) => {
      const { weight, floor } = this.policyOf(one);
      return [floor / weight, this.ceiling(one) / weight].filter(Number.isFinite);
    });
    const from = Math.max(0, ...bends.filter((bend) => sumAt(bend) <= shared + TINY));
    const rising = wanting.filter((one) => this.shareAt(one, from + 1e-6) > this.shareAt(one, from));
    const weights = sum(rising, (one) => this.policyOf(one).weight);
    return weights === 0 ? from : from + Math.max(0, shared - sumAt(from)) / weights;
  }

  override shared(of: string): number {
    if (!this.isClassed) return super.shared(of);
    const share = this.share(of);
    return this.isBudgeted ? Math.min(share, this.heldByClass(of) + this.widest) : share;
  }

  isClassInShare(of: string): boolean {
    return this.isWithin(this.heldByClass(of), this.share(of));
  }

  // The choice.

  /** The line to which a class would give its next slots, of those whose head needs at most `room`. None while its own first waits for its ceiling. */
  candidate(of: string, room: number): Bucket | undefined {
    const { collectMs } = this.context;
    const { open } = this.competing(collectMs, of);
    const most = this.ceiling(of) - this.heldByClass(of);
    const best = this.best(open, collectMs);
    if (best === undefined || (this.headWidth(best, collectMs) > most && this.mayHoldBack(best))) return undefined;
    const fitting = open.filter((line) => this.headWidth(line, collectMs) <= Math.min(most, room));
    return this.best(fitting, collectMs);
  }

  /** Whether the head of the line may be the first of its class. */
  mayHoldBack(line: Bucket): boolean {
    const head = this.head(line, this.context.collectMs) as Waiter;
    return this.chargedBudget !== undefined || !this.canPay(head) || this.isInShare(line);
  }

  /** Whether the head of the line may be the first of the host. */
  mayBeFirst(line: Bucket): boolean {
    const head = this.head(line, this.context.collectMs) as Waiter;
    const isInShare = this.isInShare(line) && this.isClassInShare(line.class);
    return this.chargedBudget !== undefined || !this.canPay(head) || isInShare;
  }

  candidates(room: number): Candidate[] {
    return this.classes.flatMap((one) => {
      const line = this.candidate(one.class, room);
      return line === undefined ? [] : [{ ...one, line }];
    });
  }

  /** The classes with a waiter that the order ranks, each with its best line. */
  waitingClasses(): Candidate[] {
    const { collectMs } = this.context;
    return this.classes.flatMap((one) => {
      const line = this.best(this.competing(collectMs, one.class).all, collectMs);
      return line === undefined ? [] : [{ ...one, line }];
    });
  }

  /** The best class: by slot-seconds, or by its charge; then the one with the older candidate. */
  bestClass(among: readonly Candidate[]): Candidate | undefined {
    const head = ({ line }: Candidate) => this.headKeys(line, this.context.collectMs);
    if (this.chargedBudget !== undefined) return leastCharged(among, head);
    return first(among, (one) => [...this.rank(one, this.heldByClass(one.class), this.share(one.class)), ...head(one)]);
  }

  /** The waiter that gets the next grant. One that is gone is found out before another takes its place. */
  nextOfClasses(): Waiter | undefined {
    const { collectMs } = this.context;
    const headOf = (line: Bucket | undefined) => line && this.head(line, collectMs);
    for (const { class: of } of this.classes) {
      const held = headOf(this.best(this.competing(collectMs, of).open, collectMs));
      const isOver = widthOf(held?.demand) > this.ceiling(of) - this.heldByClass(of);
      if (held !== undefined && isOver && this.isGone(held)) return held;
    }
    const best = this.bestClass(this.candidates(Number.POSITIVE_INFINITY));
    const waiter = headOf(best?.line);
    if (best === undefined || waiter === undefined || this.isGone(waiter)) return waiter;
    if (widthOf(waiter.demand) <= this.free || this.mayBeFirst(best.line)) return waiter;
    return headOf(this.bestClass(this.candidates(this.free))?.line);
  }

  /** Its client is away, as only this instance knows, or its deadline has passed. */
  isGone(waiter: Waiter): boolean {
    return this.isAwayHere(waiter) || waiter.deadlineAt <= this.now;
  }

  isAwayHere({ awayAt, instance, session }: Waiter): boolean {
    return awayAt === undefined && instance === this.context.instance && this.context.awayHere(session) !== undefined;
  }
}
