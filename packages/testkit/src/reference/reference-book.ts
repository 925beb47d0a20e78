import { classOf } from "@slotkeeper/protocol";
import type { DecideContext, Input, Note, Outcome } from "@slotkeeper/queue/internals";
import { firstOther } from "./first-other.ts";
import { AHEAD_MS, CLOSED, GRACE_MS, HOUR_MS, type InputOf, KEPT_MS } from "./slots-and-ends.ts";
import { type Bucket, lineOf, NO_NUMBERS, type Slot, type Waiter } from "./state.ts";
import { TimeAndLimits } from "./time-and-limits.ts";

/**
 * The decision about one host a second time: the specification of the service as a short program, with lists and
 * sorting instead of indexes. It shares no code with `@slotkeeper/queue`. `compare.ts` gives both the same histories.
 * Seven parts, each a class on top of the one before: state, keys and budgets (`state.ts`), who is next (`next-waiter.ts`), how slots and sessions end
 * (`slots-and-ends.ts`), classes (`classes.ts`), the layers that hand out slots (`hand-out.ts`), time and limits (`time-and-limits.ts`), and here
 * the inputs. Where the specification is silent, it follows the engine: when a semaphore may get
 * another capacity, and that a bucket at a hot host joins not before the last turn.
 * It leaves out what no client can see: which instances a commit notifies.
 */

const DONE: Outcome = { kind: "done" };
const MISSING: Outcome = { kind: "missing" };

type Standing = { lease?: Slot; waiter?: Waiter; end?: { keepUntil: number } | undefined };

export class ReferenceBook extends TimeAndLimits {
  /** Inputs first, then the layers: breaker, offers, pool, and slots in the order of the buckets. */
  decide(
    inputs: readonly Input[],
    context: DecideContext,
  ): { outcomes: Outcome[]; notes: Note[]; isForgotten: boolean } {
    [this.context, this.notes] = [context, []];
    if (this.given === undefined && !inputs.some((input) => this.createsHost(input)))
      return { outcomes: inputs.map(() => MISSING), notes: [], isForgotten: false };
    const before = this.image();
    this.passTime(Math.max(context.now, this.now));
    this.leaveCapacity();
    const limits = this.given && JSON.stringify(this.policy);
    const order = this.given && this.policy.order;
    this.useLimits();
    if (order !== undefined && order !== this.policy.order) this.startAccounts();
    this.useClasses();
    this.useBudgets();
    // An input that undoes another one is a change, too.
    let isChanged = false;
    const outcomes = inputs.map((input) => {
      const outcome = this.take(input);
      isChanged ||= this.image() !== before;
      return outcome;
    });
    if (limits !== undefined && JSON.stringify(this.policy) !== limits) this.endImpossible();
    this.throttleWaiters();
    this.collectOffers();
    if (this.cooldowns.some(({ bucket, until }) => until <= this.now && this.isWanted(bucket))) this.endCooldowns();
    this.endOverdue();
    this.admit();
    do this.handOut();
    while (this.admit() || this.swap());
    // A decision that changes nothing is not committed.
    if (isChanged || this.image() !== before) this.tidy();
    return {
      outcomes,
      notes: this.notes,
      isForgotten: inputs.some(({ kind }) => kind === "forget") && this.isUnused(),
    };
  }

  image(): string {
    const buckets = this.buckets.map((bucket) => ({ ...bucket, used: 0, activeAt: 0 }));
    const classes = this.classes.map((one) => ({ ...one, used: 0, activeAt: 0, meter: 0 }));
    return JSON.stringify(Object.assign({}, this, { buckets, classes, now: 0, meter: 0, context: 0, notes: 0 }));
  }

  // Inputs.

  take(input: Input): Outcome {
    if (input.kind === "arrive") return this.arrive(input);
    if (input.kind === "return") return this.takeBack(input);
    if (input.kind === "end") return this.end(input);
    if (input.kind === "release") return this.release(input);
    if (input.kind === "renew") return this.renew(input);
    if (input.kind === "revoke") {
      const lease = this.slots.find(({ token, fence, isReleased }) => token && fence === input.fence && !isReleased);
      if (lease !== undefined) this.endLease(lease);
      return lease === undefined ? MISSING : DONE;
    }
    if (input.kind === "client") {
      const waiter = this.waiters.find(
        ({ session, instance }) => session === input.session && instance === this.context.instance,
      );
      if (waiter !== undefined) waiter.awayAt = this.context.isPolledHere(input.session) ? undefined : input.awayAt;
    }
    if (input.kind === "report") this.report(input.status, false);
    if (input.kind === "breaker") this.breaker = input.isOpen ? { ...CLOSED, openedAt: this.now } : CLOSED;
    if (input.kind === "limits") this.live = input.limits;
    if (input.kind === "pause") {
      this.isPaused = input.isPaused;
      // An offer is not a grant yet.
      if (this.isPaused)
        for (const offer of this.slots.filter(({ token }) => token === undefined)) this.dropOffer(offer);
    }
    if (input.kind === "unspace") this.lastEndAt = undefined;
    if (input.kind === "dead") {
      for (const waiter of this.waiters.filter(({ instance }) => instance === input.instance)) {
        this.leave(waiter);
        this.remember({ session: waiter.session, end: "dropped", keepUntil: waiter.deadlineAt, throttle: undefined });
      }
      this.absences = this.absences.filter(({ instance }) => instance !== input.instance);
    }
    return DONE;
  }

  /** A session is in the book as one of: a slot, a waiter, an end. A slot that is on its way to its end counts as an end. */
  standing(session: string): Standing {
    const lease = this.slots.findLast((one) => one.session === session && one.token !== undefined);
    if (lease?.isReleased === false) return { lease };
    const waiter = this.waiters.find((one) => one.session === session);
    const end = this.ends.find((one) => one.session === session && one.keepUntil > this.now);
    if (waiter !== undefined) return { waiter };
    return end?.end === "dropped" ? {} : { end: end ?? lease };
  }

  /** The session waited before its instance died. */
  isDropped(session: string): boolean {
    return this.ends.some((one) => one.session === session && one.end === "dropped" && one.keepUntil > this.now);
  }

  /** A repeated first call has a later deadline, which the session or its end gets. */
  arrive(input: InputOf<"arrive">): Outcome {
    const { session, arrivedAt, deadlineAt, demand } = input;
    const { instance } = this.context;
    const { lease, waiter, end } = this.standing(session);
    const isLate = this.now >= deadlineAt;
    const living = lease ?? ((waiter?.deadlineAt ?? 0) > this.now ? waiter : undefined);
    const other = isLate || living === undefined ? undefined : firstOther(living.demand, demand);
    if (other !== undefined) return { kind: "other-demands", ...other };
    // After its deadline a session gets no slot, but may find the one it has.
    if (lease !== undefined && !(isLate && lease.keepUntil > deadlineAt))
      Object.assign(lease, { instance, keepUntil: Math.max(lease.keepUntil, deadlineAt) });
    if (isLate) return DONE;
    if (lease === undefined && waiter === undefined && end === undefined) return this.begin(input);
    if (arrivedAt > this.now + AHEAD_MS) this.forgottenAt = Math.max(this.forgottenAt, arrivedAt);
    if (end !== undefined && end.keepUntil < deadlineAt)
      Object.assign(end, { keepUntil: deadlineAt, ...("endedAt" in end ? { endedAt: this.now } : {}) });
    if (waiter !== undefined && waiter.deadlineAt <= this.now) {
      this.endWaiter(waiter, "timeout");
      return this.begin(input);
    }
    if (waiter !== undefined)
      Object.assign(waiter, { instance, awayAt: undefined, deadlineAt: Math.max(waiter.deadlineAt, deadlineAt) });
    return DONE;
  }

  begin(input: InputOf<"arrive">): Outcome {
    const { isSemaphore, isTokenSent } = this.context;
    const { session, bucket, arrivedAt, limit, isReturning = false } = input;
    const isDropped = this.isDropped(session);
    if (!isDropped && (isReturning || isTokenSent(session)) && this.mayHaveEnded(input)) return { kind: "forgotten" };
    if (arrivedAt > this.now + AHEAD_MS) this.forgottenAt = Math.max(this.forgottenAt, arrivedAt);
    const throttle = this.throttle(input.openMs);
    // The book does not know whether a first call of a session that returns was checked.
    const lacked = !isDropped && isReturning ? this.lackedKey(input) : undefined;
    const never = throttle === undefined ? (this.never(input) ?? lacked) : undefined;
    const isNew = !isDropped && !isReturning && throttle === undefined;
    const refused = isNew ? (never ?? this.unknownDemand(input)) : undefined;
    if (refused !== undefined) return { kind: "impossible", ...refused };
    if (isSemaphore && throttle === undefined && never === undefined) {
      this.capacity ??= limit ?? this.policy.slots;
      const isOther = limit !== undefined && limit !== this.capacity;
      if (isOther && !isReturning) return { kind: "mismatch", capacity: this.capacity };
    }
    if (isDropped) this.ends = this.ends.filter((one) => one.session !== session);
    else this.notes.push({ kind: "begun", session, bucket });
    const ending = { ...input, keepUntil: input.deadlineAt };
    if (throttle !== undefined) this.endSession(ending, "throttled", throttle);
    else if (never !== undefined) this.endSession(ending, "impossible");
    else this.join({ ...input, awayAt: undefined }, isReturning);
    return DONE;
  }

  /** A newcomer displaces the youngest of a bucket with two places more; a session that returns, a younger one of a larger bucket. */
  join(
    { session, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt, demand }: Omit<Waiter, "instance" | "isInside">,
    isReturning: boolean,
  ): void {
    const { heat } = this;
    if (this.waiters.length === 0 && heat.idleSince !== undefined) {
      heat.avgWaitMs *= 0.8 ** ((this.now - heat.idleSince) / this.context.pollIntervalMs);
      heat.idleSince = undefined;
    }
    const waiter = {
      session,
      bucket,
      weight,
      arrivedAt,
      deadlineAt,
      openMs,
      awayAt,
      demand,
      instance: this.context.instance,
      isInside: false,
    };
    this.useClasses(waiter);
    // It stands at its keys first, and may hold back a younger one of its keys. Then that one is no longer in the order.
    const { collectMs } = this.context;
    this.waiters.push(waiter);
    if (this.isClimbing(waiter, collectMs) && !this.isThrough(waiter, collectMs)) return;
    const [line, of] = [lineOf(waiter), classOf(demand)];
    const loser = this.isPoolFull(of) ? this.loser(this.pool(of)) : undefined;
    const fewer = isReturning && loser !== undefined && loser.arrivedAt > arrivedAt ? 1 : 2;
    const isDisplacing = loser !== undefined && this.inside(lineOf(loser)).length >= this.inside(line).length + fewer;
    const isAdmitted = this.hasRoom(line) && (!this.isPoolFull(of) || isDisplacing);
    if (isAdmitted && loser !== undefined) loser.isInside = false;
    if (isAdmitted) this.enter(waiter, this.context, isReturning ? this.returnLevel(of) : undefined);
  }

  /** A lease that no client got: the session returns to its place, or ends at its deadline. */
  takeBack(input: InputOf<"return">): Outcome {
    const { lease } = this.standing(input.session);
    const isTaken = lease === undefined || !this.isUndelivered(lease) || this.context.isPolledHere(input.session);
    if (isTaken || lease.fence !== input.fence) return MISSING;
    this.takeLease(lease);
    const throttle = this.throttle(input.openMs);
    const ending = { ...input, keepUntil: input.deadlineAt };
    if (this.now >= input.deadlineAt) this.endSession(ending, "timeout");
    else if (this.isImpossible(input)) this.endSession(ending, "impossible");
    else if (throttle === undefined) this.join(input, false);
    else this.endSession(ending, "throttled", throttle);
    return DONE;
  }

  isUndelivered({ instance, session, fence }: Slot): boolean {
    return instance === this.context.instance && this.context.isUndelivered(session, fence);
  }

  /** A timeout or a cancellation. Only a cancellation ends a session that another instance or its client has. */
  end(input: InputOf<"end">): Outcome {
    const { instance, cancelMs, isPolledHere } = this.context;
    const { lease, waiter, end } = this.standing(input.session);
    const until = lease?.keepUntil ?? waiter?.deadlineAt ?? Number.NEGATIVE_INFINITY;
    if (end !== undefined) return MISSING;
    // The id was used again, and this input belongs to the earlier session.
    if (input.keepUntil <= this.now && until > input.keepUntil) return MISSING;
    if (waiter !== undefined) {
      const isPolled = isPolledHere(input.session) && this.now < waiter.deadlineAt;
      if (input.end === "timeout" && (waiter.instance !== instance || isPolled)) return MISSING;
      this.endWaiter(waiter, input.end);
    } else if (lease === undefined) return this.endUnknown(input);
    else {
      if (input.end !== "canceled") return MISSING;
      if (this.isUndelivered(lease)) this.takeLease(lease);
      else if (input.at - lease.since > cancelMs) return MISSING;
      else {
        this.giveBack(lease, lease.since);
        this.giveBackCosts(lease);
      }
      this.endSession({ ...input, keepUntil: lease.keepUntil }, input.end);
    }
    return DONE;
  }

  endUnknown(input: InputOf<"end">): Outcome {
    const { session, bucket, keepUntil } = input;
    const record = this.ends.find((one) => one.session === session);
    const isDropped = record?.end === "dropped";
    const isEnded = record !== undefined && !isDropped && record.keepUntil >= keepUntil;
    if (isEnded || keepUntil + GRACE_MS <= this.now) return MISSING;
    if (!isDropped && this.mayHaveEnded(input)) return MISSING;
    if (!isDropped) this.notes.push({ kind: "begun", session, bucket });
    this.endSession(input, input.end);
    return DONE;
  }

  release({ slotToken, hitAt, status, used }: InputOf<"release">): Outcome {
    const lease = this.slots.find(({ token, isReleased }) => token === slotToken && !isReleased);
    if (lease === undefined) return MISSING;
    if (status !== undefined) this.report(status, lease.isProbe && lease.since >= (this.breaker.openedAt ?? 0));
    const { bucket } = lease;
    const { ignored, excess } = this.settle(lease, used ?? {});
    const [, ranked] =
      Object.entries(used ?? {}).find(([name]) => name === this.chargedBudget && !ignored.includes(name)) ?? [];
    if (ranked !== undefined) this.rechargeGrant(lease, Math.max(1, ranked));
    for (const [budget, units] of excess) if (units > 0) this.notes.push({ kind: "excess", bucket, budget, units });
    const endsAt = this.giveBack(lease, hitAt);
    const heldMs = this.now - lease.since;
    return { kind: "released", bucket, endsAt, heldMs, ignored: used && ignored };
  }

  renew({ slotToken }: InputOf<"renew">): Outcome {
    const lease = this.slots.find(({ token, isReleased }) => token === slotToken && !isReleased);
    if (lease === undefined) return MISSING;
    lease.endsAt = Math.max(
      lease.endsAt,
      Math.min(this.now + this.policy.leaseMs, lease.since + this.policy.maxHoldMs),
    );
    return { kind: "renewed", endsAt: lease.endsAt };
  }

  // What is forgotten.

  tidy(): void {
    const { mostEnds, idleMs } = this.context;
    this.ends.sort((a, b) => a.endedAt - b.endedAt || (a.session < b.session ? -1 : 1));
    for (let [oldest] = this.ends; oldest !== undefined; [oldest] = this.ends) {
      // The ends of one decision are kept until the next one.
      if (this.isKept(oldest) && (this.ends.length <= mostEnds || oldest.endedAt === this.now)) break;
      if (oldest.end !== "dropped" && oldest.keepUntil + GRACE_MS > this.now)
        this.forgottenAt = Math.max(this.forgottenAt, oldest.endedAt + AHEAD_MS);
      this.ends.shift();
    }
    const idle = this.buckets.filter((one) => !this.isActive(one));
    for (const one of idle) if (this.now - one.activeAt >= idleMs) Object.assign(one, NO_NUMBERS);
    const isNeeded = (one: Bucket) =>
      this.isAhead(one) || one.waits > 0 || one.virtualTime > 0 || one.charged > 0 || one.refusedAt !== undefined;
    this.buckets = this.buckets.filter((one) => !idle.includes(one) || isNeeded(one));
    this.tidyClasses(idleMs);
    this.endCooldowns();
    this.leaveCapacity();
    if (this.waiters.length === 0 && this.heat.avgWaitMs > 0) this.heat.idleSince ??= this.now;
  }

  /** The host may be forgotten: no answer would change. */
  isUnused(): boolean {
    const { now, lastEndAt = Number.NEGATIVE_INFINITY, breaker } = this;
    // The instance of a waiter may end it late, and then it must not begin again.
    const isWaiting = this.waiters.some(({ deadlineAt }) => deadlineAt + GRACE_MS > now);
    const isCooling = this.cooldowns.some(({ until }) => until > now);
    const isKept = this.ends.some((end) => this.isKept(end)) || this.forgottenAt > now - KEPT_MS + AHEAD_MS;
    const isSpaced = lastEndAt + this.policy.smoothMs > now;
    const isSpent = Object.values(this.budgets).some((budget) => budget.rates.length > 0 && budget.missing(now) > 0);
    const isCounting =
      this.openForMs() < HOUR_MS ||
      now - (breaker.windowStartAt ?? Number.NEGATIVE_INFINITY) <= this.policy.breaker.windowMs;
    return !(
      this.slots.length > 0 ||
      isWaiting ||
      isCooling ||
      isKept ||
      isSpaced ||
      isSpent ||
      isCounting ||
      this.live !== undefined ||
      this.isPaused
    );
  }
}
