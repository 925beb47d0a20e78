import { type KeyPolicy, keyLimitsOf, widthOf } from "@slotkeeper/protocol";
import { HOUR_MS, SlotsAndEnds } from "./slots-and-ends.ts";
import { type Asking, type Bucket, first, type Waiter } from "./state.ts";

/** The layers in which a decision hands out slots, after its inputs: breaker, offers, waiter pool, slots. */

/** How long an offer lasts for a poll that is open at another instance, and how often a bucket is refused without a cooldown. */
export const OFFER_MS = 50;
const REFUSED_MS = 3_000;

export class HandOut extends SlotsAndEnds {
  // Layer 1 and offers.

  throttleWaiters(): void {
    for (const waiter of this.waiters) {
      const throttle = this.throttle(waiter.openMs);
      if (throttle !== undefined) this.endWaiter(waiter, "throttled", throttle);
    }
  }

  collectOffers(): void {
    for (const offer of this.slots.filter(({ token }) => token === undefined)) {
      const waiter = this.waiters.find(({ session }) => session === offer.session);
      // A limit may have been lowered since.
      const isOverKey = this.policy.keys?.some((key) => {
        const value = this.valueOf(key, offer);
        return value !== undefined && this.heldBy(key, value) > this.keySlots(key, offer);
      });
      const isOver = this.free < 0 || this.held(offer.bucket) > this.limit(offer.bucket) || isOverKey === true;
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

  isAwayHere({ awayAt, instance, session }: Waiter): boolean {
    return awayAt === undefined && instance === this.context.instance && this.context.awayHere(session) !== undefined;
  }

  // Layer 2, the waiter pool.

  /** Free places, and those of clients that have been away for long, go to waiters outside. */
  admit(): boolean {
    let isAdmitted = false;
    const { collectMs } = this.context;
    for (let next = this.entrant(collectMs); next !== undefined; next = this.entrant(collectMs)) {
      const away = this.inside().filter(({ session, awayAt }) => awayAt !== undefined && !this.offerOf(session));
      const longest = first(away, ({ awayAt = 0, session }) => [awayAt, session]);
      // A waiter inside whose keys have no room gives its place away, as a client that is away does.
      const isGone = longest !== undefined && (longest.awayAt ?? this.now) + collectMs <= this.now;
      const leaves = isGone ? longest : this.heldBack();
      if (this.isPoolFull() && leaves !== undefined) leaves.isInside = false;
      if (this.isPoolFull()) break;
      this.enter(next, this.context);
      isAdmitted = true;
    }
    return isAdmitted;
  }

  /** The youngest waiter inside whose keys have no room. */
  heldBack(): Waiter | undefined {
    const { collectMs } = this.context;
    const held = this.inside().filter((one) => this.isClimbing(one, collectMs) && !this.isThrough(one, collectMs));
    return held.toSorted((a, b) => b.arrivedAt - a.arrivedAt || (a.session < b.session ? 1 : -1))[0];
  }

  /** The first of a key that is late holds back those behind it. */
  endOverdue(): void {
    const overdue = () => this.climb(this.context.collectMs).fronts.find(({ deadlineAt }) => deadlineAt <= this.now);
    for (let waiter = overdue(); waiter !== undefined; waiter = overdue()) this.endWaiter(waiter, "timeout");
  }

  /** A slot is free, but no waiter inside may have it: one whose bucket may not gives its place to one that may. */
  swap(): boolean {
    if (this.free <= 0 || this.first !== undefined || !this.isPoolFull()) return false;
    const { collectMs } = this.context;
    const stuck = this.inside().filter(
      ({ bucket }) =>
        this.waiting(bucket).length > 0 && this.obstacle(bucket, this.headWidth(bucket, collectMs)) !== undefined,
    );
    const leaves = this.loser(stuck);
    // A waiter outside stands behind the one of its bucket inside.
    const enters = this.entrant(collectMs, ({ bucket }) => {
      const next = this.head(bucket, collectMs) ?? this.entrant(collectMs, (one) => one.bucket === bucket);
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
    const { collectMs } = this.context;
    const isHot = this.isWeighted(this.context) ? this.measureHeat() : (this.heat.isHot = false);
    while (this.free > 0) {
      const { open, blocked } = this.competing(collectMs);
      const best = this.best(open, collectMs);
      const waiter = this.next(open);
      if (waiter !== undefined && !this.isPresent(waiter)) continue;
      const isProbe = waiter !== undefined && this.openForMs() < HOUR_MS && this.openForMs() >= waiter.openMs;
      const probes = this.slots.filter((slot) => slot.isProbe).length;
      if (isProbe && probes >= this.policy.breaker.halfOpenProbes) {
        this.first = undefined;
        return;
      }
      const isAhead = (one: Bucket) => best === undefined || this.best([best, one], collectMs) === one;
      this.refuse(blocked.filter((one) => one.refusedAt === undefined && isAhead(one)));
      const isFirst = waiter !== undefined && (widthOf(waiter.demand) > this.free || !this.canPay(waiter));
      this.first = isFirst ? waiter.session : undefined;
      if (waiter === undefined || this.first !== undefined) return;
      const bucket = this.buckets.find((one) => one.bucket === waiter.bucket) as Bucket;
      if (isHot) this.takeTurn(bucket);
      bucket.waits = Math.floor(bucket.waits / 2);
      this.hand(waiter, isProbe);
      // The next of its keys competes for the next slot.
      if (this.policy.keys !== undefined) this.admit();
    }
    this.first = undefined;
    if (isHot) this.considerInVain();
  }

  /** Who gets the next grant: the best-ranked. If it is too wide and its bucket has its share, the best of those that fit. */
  next(open: Bucket[]): Waiter | undefined {
    const { collectMs } = this.context;
    const head = (bucket: Bucket | undefined) => bucket && this.head(bucket.bucket, collectMs);
    const best = head(this.best(open, collectMs));
    const isOrdinary = this.chargedBudget === undefined;
    const isPassed =
      widthOf(best?.demand) > this.free &&
      isOrdinary &&
      this.canPay(best as Waiter) &&
      !this.isInShare(best?.bucket ?? "");
    const narrow = open.filter(({ bucket }) => this.headWidth(bucket, collectMs) <= this.free);
    // Whether its client is present is found out before the next one takes its place.
    const isGone = best !== undefined && (this.isAwayHere(best) || best.deadlineAt <= this.now);
    return isPassed && !isGone ? head(this.best(narrow, collectMs)) : best;
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
    return width > this.policy.slots || width > this.limit(bucket) || isTooWide || isDear;
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
    const active = this.activate(bucket, weight);
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
    const open = this.turns(this.competing(collectMs).open, collectMs);
    for (const bucket of open.slice(0, scheduler.maxProbesPerCycle ?? this.policy.slots)) {
      if (this.now - bucket.waitedAt >= pollIntervalMs)
        Object.assign(bucket, { waits: bucket.waits + 1, waitedAt: this.now });
    }
  }
}
