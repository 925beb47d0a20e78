import { classOf, DEFAULT_CLASS, type KeyPolicy, keyLimitsOf, widthOf } from "@slotkeeper/protocol";
import { Classes } from "./classes.ts";
import { HOUR_MS } from "./slots-and-ends.ts";
import { type Asking, type Bucket, first, lineOf, type Waiter } from "./state.ts";

/** The layers in which a decision hands out slots, after its inputs: breaker, offers, waiter pool, slots. */

/** How long an offer lasts for a poll that is open at another instance, and how often a bucket is refused without a cooldown. */
export const OFFER_MS = 50;
const REFUSED_MS = 3_000;

export class HandOut extends Classes {
  // Layer 1 and offers.

  throttleWaiters(): void {
    for (const waiter of this.waiters) {
      const throttle = this.throttle(waiter.openMs);
      if (throttle !== undefined) this.endWaiter(waiter, "throttled", throttle);
    }
  }

  collectOffers(): void {
    const offers = this.slots.filter(({ token }) => token === undefined);
    for (const offer of offers.toSorted((a, b) => a.since - b.since || (a.session < b.session ? -1 : 1))) {
      const waiter = this.waiters.find(({ session }) => session === offer.session);
      // A limit may have been lowered since.
      const isOverKey = this.policy.keys?.some((key) => {
        const value = this.valueOf(key, offer);
        return value !== undefined && this.heldBy(key, value) > this.keySlots(key, offer);
      });
      const of = classOf(offer.demand);
      const isOverOwn = this.held(offer.bucket) > this.limit(offer.bucket) || this.heldByClass(of) > this.ceiling(of);
      const isOver = this.free < 0 || isOverOwn || isOverKey === true;
      if (waiter === undefined || waiter.deadlineAt <= this.now || isOver) this.dropOffer(offer);
      else if (this.noteAway(waiter)) this.passOn(offer);
      else if (this.context.isPolledHere(offer.session)) this.hand(waiter, offer.isProbe);
    }
  }

  /** The instance of a waiter knows that its client is away, and the book does not. */
  noteAway(waiter: Waiter): boolean {
    if (!this.isAwayHere(waiter)) return false;
    waiter.awayAt = this.context.awayHere(waiter.session);
    return true;
  }

  // Layer 2, the waiter pool.

  /** Free places, and those of clients that have been away for long, go to waiters outside. */
  admit(): boolean {
    return this.classNames.map((of) => this.admitTo(of)).includes(true);
  }

  admitTo(of: string): boolean {
    let isAdmitted = false;
    const { collectMs } = this.context;
    for (let next = this.entrant(of, collectMs); next !== undefined; next = this.entrant(of, collectMs)) {
      const away = this.pool(of).filter(({ session, awayAt }) => awayAt !== undefined && !this.offerOf(session));
      const longest = first(away, ({ awayAt = 0, session }) => [awayAt, session]);
      // A waiter inside whose keys have no room gives its place away, as a client that is away does.
      const isGone = longest !== undefined && (longest.awayAt ?? this.now) + collectMs <= this.now;
      const leaves = isGone ? longest : this.heldBack(of);
      if (this.isPoolFull(of) && leaves !== undefined) leaves.isInside = false;
      if (this.isPoolFull(of)) break;
      this.enter(next, this.context);
      isAdmitted = true;
    }
    return isAdmitted;
  }

  /** The youngest waiter inside whose keys have no room. */
  heldBack(of: string): Waiter | undefined {
    const { collectMs } = this.context;
    const held = this.pool(of).filter((one) => this.isClimbing(one, collectMs) && !this.isThrough(one, collectMs));
    return held.toSorted((a, b) => b.arrivedAt - a.arrivedAt || (a.session < b.session ? 1 : -1))[0];
  }

  /** The first of a key that is late holds back those behind it. */
  endOverdue(): void {
    const overdue = () => this.climb(this.context.collectMs).fronts.find(({ deadlineAt }) => deadlineAt <= this.now);
    for (let waiter = overdue(); waiter !== undefined; waiter = overdue()) this.endWaiter(waiter, "timeout");
  }

  /** A slot is free, but no waiter inside may have it: one whose bucket may not gives its place to one that may. */
  swap(): boolean {
    if (this.free <= 0 || this.first !== undefined) return false;
    return this.classNames.some((of) => this.isPoolFull(of) && this.swapIn(of));
  }

  swapIn(of: string): boolean {
    const { collectMs } = this.context;
    const isStuck = (waiter: Waiter) => {
      const line = lineOf(waiter);
      const isBlocked = this.obstacle(line.bucket, this.headWidth(line, collectMs)) !== undefined;
      return this.waiting(line).length > 0 && isBlocked;
    };
    const leaves = this.loser(this.pool(of).filter(isStuck));
    // A waiter outside stands behind the one of its line inside.
    const enters = this.entrant(of, collectMs, ({ bucket }) => {
      const ofLine = this.entrant(of, collectMs, (one) => one.bucket === bucket);
      const next = this.head({ class: of, bucket }, collectMs) ?? ofLine;
      return this.obstacle(bucket, widthOf(next?.demand)) === undefined;
    });
    if (leaves === undefined || enters === undefined) return false;
    leaves.isInside = false;
    this.enter(enters, this.context);
    return true;
  }

  // Layers 3 to 7: slots.

  handOut(): void {
    if (this.isPaused) {
      this.first = undefined;
      return;
    }
    const isHot = this.isWeighted(this.context) ? this.measureHeat() : (this.heat.isHot = false);
    while (this.free > 0) {
      const waiter = this.isClassed ? this.nextOfClasses() : this.next();
      if (waiter !== undefined && !this.isPresent(waiter)) continue;
      const isProbe = waiter !== undefined && this.openForMs() < HOUR_MS && this.openForMs() >= waiter.openMs;
      const probes = this.slots.filter((slot) => slot.isProbe).length;
      if (isProbe && probes >= this.policy.breaker.halfOpenProbes) {
        this.first = undefined;
        return;
      }
      this.refuse(this.classNames.flatMap((of) => this.passedOver(of)));
      const isFirst = waiter !== undefined && (widthOf(waiter.demand) > this.free || !this.canPay(waiter));
      this.first = isFirst ? waiter.session : undefined;
      if (waiter === undefined || this.first !== undefined) return;
      const line = this.activate(lineOf(waiter), waiter.weight);
      if (isHot) this.takeTurn(line);
      line.waits = Math.floor(line.waits / 2);
      this.hand(waiter, isProbe);
      // The next of its keys competes for the next slot.
      if (this.policy.keys !== undefined) this.admit();
    }
    this.first = undefined;
    if (isHot) this.considerInVain();
  }

  /** Who gets the next grant: the best-ranked. If it is too wide and its bucket has its share, the best of those that fit. */
  next(): Waiter | undefined {
    const { collectMs } = this.context;
    const { open } = this.competing(collectMs);
    const head = (line: Bucket | undefined) => line && this.head(line, collectMs);
    const line = this.best(open, collectMs);
    const best = head(line);
    // Whether its client is present is found out before the next one takes its place.
    if (line === undefined || best === undefined || this.isGone(best)) return best;
    if (widthOf(best.demand) <= this.free || this.mayHoldBack(line)) return best;
    const narrow = open.filter((one) => this.headWidth(one, collectMs) <= this.free);
    return head(this.best(narrow, collectMs));
  }

  /** The lines of a class that rank before its best, and only their limit or cooldown keeps them from a slot. */
  passedOver(of: string): Bucket[] {
    const { collectMs } = this.context;
    const { open, blocked } = this.competing(collectMs, of);
    const best = this.best(open, collectMs);
    const isAhead = (one: Bucket) => best === undefined || this.best([best, one], collectMs) === one;
    return blocked.filter((one) => one.refusedAt === undefined && isAhead(one));
  }

  /** Notes that the client is away, or ends the session at its deadline. */
  isPresent(waiter: Waiter): boolean {
    if (this.noteAway(waiter)) return false;
    if (waiter.deadlineAt > this.now) return true;
    this.endWaiter(waiter, "timeout");
    return false;
  }

  /** The limits can never allow it. */
  isImpossible({ bucket, demand }: Pick<Waiter, "bucket" | "demand">): boolean {
    const width = widthOf(demand);
    const asking = { bucket, demand };
    const isTooWide = this.policy.keys?.some((key) => width > this.keySlots(key, asking)) === true;
    const isDear = this.tooDear(asking) !== undefined;
    const most = Math.min(this.policy.slots, this.limit(bucket), this.ceiling(classOf(demand)));
    return width > most || isTooWide || isDear;
  }

  keySlots(key: KeyPolicy, asking: Asking): number {
    const value = this.valueOf(key, asking);
    const isLimit = value !== undefined && key.isShadow !== true;
    return (isLimit ? keyLimitsOf(key, value).slots : undefined) ?? Number.POSITIVE_INFINITY;
  }

  endImpossible(): void {
    for (const waiter of this.waiters) if (this.isImpossible(waiter)) this.endWaiter(waiter, "impossible");
  }

  /** A waiter with an open poll here gets a lease, any other an offer. */
  hand(waiter: Waiter, isProbe: boolean): void {
    const { session, bucket, weight, demand, deadlineAt: keepUntil } = waiter;
    const { instance, isPolledHere, newSecret, collectMs } = this.context;
    const offer = this.offerOf(session);
    const paid = offer === undefined ? this.pay(waiter) : offer.paid;
    const slot = {
      session,
      bucket,
      demand,
      width: widthOf(demand),
      paid,
      since: this.now,
      isProbe,
      isReleased: false,
      keepUntil,
    };
    const { cooldownMs } = this.policy;
    const active = this.activate(lineOf(waiter), weight);
    const counted = offer === undefined ? this.chargeGrant(active, waiter) : offer.counted;
    if (this.now - (active.refusedAt ?? this.now) >= (cooldownMs > 0 ? cooldownMs : REFUSED_MS))
      active.refusedAt = undefined;
    this.slots = this.slots.filter((one) => one !== this.offerOf(session));
    if (isPolledHere(session)) {
      this.addWait(waiter);
      this.fence = Math.max(this.fence + 1, Math.floor(this.now * 1000));
      const endsAt = this.now + Math.min(this.policy.leaseMs, this.policy.maxHoldMs);
      this.slots.push({ ...slot, counted, token: `slot_${newSecret()}`, fence: this.fence, instance, endsAt });
      this.waiters = this.waiters.filter((one) => one !== waiter);
      const waitedMs = Math.max(0, this.now - waiter.arrivedAt);
      this.notes.push({ kind: "granted", session, bucket, fence: this.fence, waitedMs });
      for (const limit of paid?.short ?? []) this.notes.push({ kind: "short", bucket, limit });
    } else {
      const isElsewhere = waiter.instance !== instance && waiter.awayAt === undefined;
      const endsAt = this.now + (isElsewhere ? OFFER_MS : collectMs);
      this.slots.push({ ...slot, counted, token: undefined, fence: 0, instance: waiter.instance, endsAt });
    }
  }

  /** Buckets that are passed over for their limit or cooldown: once between two grants, and per cooldown (or 3 s). */
  refuse(passedOver: readonly Bucket[]): void {
    for (const one of passedOver) {
      Object.assign(one, { refusedAt: this.now, waits: Math.floor(one.waits / 2) });
      this.notes.push({ kind: "refused", bucket: one.bucket });
    }
  }

  // The weighted scheduler.

  measureHeat(): boolean {
    const { scheduler, pollIntervalMs } = this.context;
    const { avgWaitMs, isHot } = this.heat;
    const coldMs = scheduler.coldAvgWaitMs ?? pollIntervalMs;
    const hotMs = scheduler.hotAvgWaitMs ?? 3 * pollIntervalMs + this.policy.minHoldMs;
    const isCrowded =
      this.waiters.length >= Math.max(scheduler.hotPendingFactor * this.policy.slots, scheduler.hotPendingMin);
    const isCold = this.waiters.length === 0 || avgWaitMs <= coldMs;
    this.heat.isHot = !isCold && (isHot || (isCrowded && avgWaitMs >= hotMs));
    return this.heat.isHot;
  }

  takeTurn(bucket: Bucket): void {
    const { baseWeight, weightPerWait } = this.context.scheduler;
    this.turn = { triedAt: this.now, virtualTime: bucket.virtualTime };
    bucket.virtualTime += 1 / Math.max(1, baseWeight + weightPerWait * bucket.waits);
  }

  /** No slot is free: the next buckets gain weight, at most once per poll interval. They keep their turns. */
  considerInVain(): void {
    const { scheduler, pollIntervalMs, collectMs } = this.context;
    if (this.now - this.turn.triedAt < pollIntervalMs) return;
    this.turn.triedAt = this.now;
    const open = this.turns(this.competing(collectMs, DEFAULT_CLASS).open, collectMs);
    for (const bucket of open.slice(0, scheduler.maxProbesPerCycle ?? this.policy.slots)) {
      if (this.now - bucket.waitedAt >= pollIntervalMs)
        Object.assign(bucket, { waits: bucket.waits + 1, waitedAt: this.now });
    }
  }
}
