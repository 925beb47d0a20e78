import type { DecideContext, Input, Note, Outcome } from "@slotkeeper/queue";
import { HandOut, OFFER_MS } from "./hand-out.ts";
import { type Bucket, first, NO_NUMBERS, type Slot, type Waiter } from "./next-waiter.ts";
import { AHEAD_MS, CLOSED, GRACE_MS, HOUR_MS, type InputOf, isCounted, KEPT_MS } from "./slots-and-ends.ts";

/**
 * The decision about one host a second time: the specification of the service as a short program, with lists and
 * sorting instead of indexes. It shares no code with `@slotkeeper/queue`. `compare.ts` gives both the same histories.
 * Four parts, each a class on top of the one before: who is next (`next-waiter.ts`), how slots and sessions end
 * (`slots-and-ends.ts`), the layers that hand out slots (`hand-out.ts`), and here time, limits and inputs. Where the
 * specification is silent, it follows the engine: which of several offers is collected first, when a semaphore may get
 * another capacity, and that a bucket at a hot host joins not before the last turn.
 * It leaves out what no client can see: which instances a commit notifies. It does not define the order of waiters of
 * different buckets that arrived at exactly the same time.
 */

const DONE: Outcome = { kind: "done" };
const MISSING: Outcome = { kind: "missing" };

type Standing = { lease?: Slot; waiter?: Waiter; end?: { keepUntil: number; isExtended?: boolean } | undefined };

export class ReferenceBook extends HandOut {
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
    this.useLimits();
    const outcomes = inputs.map((input) => this.take(input));
    this.throttleWaiters();
    this.collectOffers();
    if (this.cooldowns.some(({ bucket, until }) => until <= this.now && this.isWanted(bucket))) this.endCooldowns();
    this.admit();
    do this.handOut();
    while (this.admit() || this.swap());
    // A decision that changes nothing is not committed.
    if (this.image() !== before) this.tidy();
    return {
      outcomes,
      notes: this.notes,
      isForgotten: inputs.some(({ kind }) => kind === "forget") && this.isUnused(),
    };
  }

  image(): string {
    const buckets = this.buckets.map((bucket) => ({ ...bucket, used: 0, activeAt: 0 }));
    return JSON.stringify(Object.assign({}, this, { buckets, now: 0, meter: 0, context: 0, notes: 0 }));
  }

  // Time. What ends by time ends at exactly its time: leases first, by fence.

  passTime(now: number): void {
    if (this.given === undefined)
      Object.assign(this, { now, fence: Math.floor(now * 1000), forgottenAt: now - KEPT_MS + AHEAD_MS });
    for (;;) {
      const slot = first(
        this.slots.toSorted((a, b) => (a.session < b.session ? -1 : 1)),
        (one) => [one.endsAt, one.token ? 0 : 1, one.fence],
      );
      if (slot === undefined || slot.endsAt > now) break;
      this.moveTo(slot.endsAt);
      if (slot.token === undefined) this.lapse(slot);
      else {
        this.endLease(slot);
        if (!slot.isReleased) this.notes.push({ kind: "reclaimed", bucket: slot.bucket, fence: slot.fence });
      }
    }
    this.moveTo(now);
    const { instance: own, seenAt } = this.context;
    this.absences = this.absences.filter(
      ({ instance, missedAt }) => instance !== own && (seenAt(instance) ?? 0) <= missedAt,
    );
  }

  /** An offer was not collected: the client is away or, if its poll was open, its instance. */
  lapse(offer: Slot): void {
    const { session, instance, since, endsAt } = offer;
    this.passOn(offer);
    const waiter = this.waiters.find((one) => one.session === session);
    if (waiter === undefined || waiter.awayAt !== undefined || this.context.isPolledHere(session)) return;
    if (endsAt - since > OFFER_MS) waiter.awayAt = since;
    else if ((this.context.seenAt(instance) ?? 0) > endsAt) waiter.awayAt = endsAt - this.context.collectMs;
    else this.absences = [...this.absences.filter((one) => one.instance !== instance), { instance, missedAt: endsAt }];
  }

  // Limits: those of a host's name replace those of none; otherwise the configuration that was loaded last is in force.

  useLimits(): void {
    const { limits } = this.context;
    this.leaveCapacity();
    const isSame = this.given?.hostname === limits.hostname;
    const isNewer = limits.loadedAt > (this.given?.loadedAt ?? Number.NEGATIVE_INFINITY);
    const isOther = JSON.stringify(this.given?.policy) !== JSON.stringify(limits.policy);
    if (!isSame || (isNewer && isOther)) this.given = limits;
  }

  /** A semaphore without users may get another capacity. */
  leaveCapacity(): void {
    if (this.slots.length + this.waiters.length === 0) this.capacity = undefined;
  }

  createsHost(input: Input): boolean {
    const { protectHttpCodes } = this.context.limits.policy.breaker;
    return input.kind === "report"
      ? isCounted(input.status, protectHttpCodes)
      : ["arrive", "limits", "breaker"].includes(input.kind);
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
      if (waiter !== undefined) waiter.awayAt = input.awayAt;
    }
    if (input.kind === "report") this.report(input.status, false);
    if (input.kind === "breaker") this.breaker = input.isOpen ? { ...CLOSED, openedAt: this.now } : CLOSED;
    if (input.kind === "limits") this.live = input.limits;
    if (input.kind === "unspace") this.lastEndAt = undefined;
    if (input.kind === "dead") {
      for (const waiter of this.waiters.filter(({ instance }) => instance === input.instance)) this.leave(waiter);
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
    return waiter === undefined ? { end: end ?? lease } : { waiter };
  }

  arrive(input: InputOf<"arrive">): Outcome {
    const { session, arrivedAt, deadlineAt, isReturning = false } = input;
    if (this.now >= deadlineAt) return this.arriveLate(input);
    const { instance, isTokenSent } = this.context;
    const { lease, waiter, end } = this.standing(session);
    const isUnknown = lease === undefined && waiter === undefined && end === undefined;
    if (isUnknown && (isReturning || isTokenSent(session)) && this.mayHaveEnded(input))
      return { kind: "ended", isFirst: false };
    if (arrivedAt > this.now + AHEAD_MS) this.forgottenAt = Math.max(this.forgottenAt, arrivedAt);
    if (lease !== undefined) {
      const known = { isFirst: lease.keepUntil === deadlineAt, isOwnGrant: lease.instance === instance };
      Object.assign(lease, { instance, keepUntil: Math.max(lease.keepUntil, deadlineAt) });
      return { kind: "held", ...known };
    }
    if (waiter !== undefined) {
      Object.assign(waiter, { instance, awayAt: undefined, deadlineAt: Math.max(waiter.deadlineAt, deadlineAt) });
      return { kind: "waiting", isFirst: waiter.arrivedAt === arrivedAt };
    }
    if (end === undefined) return this.begin(input);
    const isFirst = end.keepUntil === deadlineAt && !end.isExtended;
    if (end.keepUntil < deadlineAt)
      Object.assign(end, { keepUntil: deadlineAt, endedAt: this.now, isExtended: "end" in end });
    return { kind: "ended", isFirst };
  }

  /** After its deadline a session gets no slot, but may find the one it has, or its end. */
  arriveLate({ session, deadlineAt }: InputOf<"arrive">): Outcome {
    const lease = this.slots.findLast((one) => one.session === session && one.token !== undefined);
    const isOwnGrant = lease?.instance === this.context.instance;
    if (lease && lease.keepUntil >= deadlineAt)
      return { kind: "held", isFirst: lease.keepUntil === deadlineAt, isOwnGrant };
    const end = this.ends.find((one) => one.session === session && one.keepUntil >= deadlineAt);
    return end ? { kind: "ended", isFirst: end.keepUntil === deadlineAt && !end.isExtended } : DONE;
  }

  begin(input: InputOf<"arrive">): Outcome {
    const { isSemaphore, isTokenSent } = this.context;
    const throttle = this.throttle(input.openMs);
    if (throttle !== undefined) {
      if (isTokenSent(input.session)) this.endSession({ ...input, keepUntil: input.deadlineAt }, "throttled", throttle);
      return { kind: "throttled", ...throttle };
    }
    if (isSemaphore) {
      this.capacity ??= input.limit ?? this.policy.slots;
      const isOther = input.limit !== undefined && input.limit !== this.capacity;
      if (isOther && input.isReturning !== true) return { kind: "mismatch", capacity: this.capacity };
    }
    this.join({ ...input, awayAt: undefined }, input.isReturning === true);
    return DONE;
  }

  /** A newcomer displaces the youngest of a bucket with two places more; a session that returns, a younger one of a larger bucket. */
  join(
    { session, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt }: Omit<Waiter, "instance" | "isInside">,
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
      instance: this.context.instance,
      isInside: false,
    };
    const loser = this.isPoolFull() ? this.loser(this.inside()) : undefined;
    const fewer = isReturning && loser !== undefined && loser.arrivedAt > arrivedAt ? 1 : 2;
    const isDisplacing = loser !== undefined && this.inside(loser.bucket).length >= this.inside(bucket).length + fewer;
    const isAdmitted = this.hasRoom(bucket) && (!this.isPoolFull() || isDisplacing);
    if (isAdmitted && loser !== undefined) loser.isInside = false;
    const { collectMs } = this.context;
    const best = this.best(this.competing(collectMs).all, collectMs);
    if (isAdmitted)
      this.enter(waiter, this.context, isReturning && best !== undefined ? best.used / best.weight : undefined);
    this.waiters.push(waiter);
  }

  /** A slot that its client never fetched: the session returns to its place. */
  takeBack(input: InputOf<"return">): Outcome {
    const { lease } = this.standing(input.session);
    if (lease?.instance !== this.context.instance) return MISSING;
    this.vacate(lease);
    this.notes.push({ kind: "uncollected", session: lease.session, bucket: lease.bucket });
    if (this.now >= input.deadlineAt) return DONE;
    const throttle = this.throttle(input.openMs);
    if (throttle === undefined) this.join(input, false);
    else this.endSession({ ...input, keepUntil: input.deadlineAt }, "throttled", throttle);
    return throttle === undefined ? DONE : { kind: "throttled", ...throttle };
  }

  /** A timeout or a cancellation. Only a cancellation ends a session that another instance has. */
  end(input: InputOf<"end">): Outcome {
    const { instance, cancelMs } = this.context;
    const { lease, waiter, end } = this.standing(input.session);
    const owner = (lease ?? waiter)?.instance;
    const until = lease?.keepUntil ?? waiter?.deadlineAt ?? Number.NEGATIVE_INFINITY;
    if (end !== undefined) return MISSING;
    if (owner === undefined) {
      const isEnded = this.ends.some(
        ({ session, keepUntil }) => session === input.session && keepUntil >= input.keepUntil,
      );
      if (isEnded || input.keepUntil + GRACE_MS <= this.now || this.mayHaveEnded(input)) return MISSING;
    }
    // The id was used for two sessions, and this input belongs to the other one.
    if (input.keepUntil <= this.now && until > input.keepUntil) return MISSING;
    if (lease !== undefined && until < input.keepUntil) return MISSING;
    if (owner !== undefined && owner !== instance && input.end !== "canceled") return MISSING;
    if (lease !== undefined) {
      if (input.isUndelivered && owner === instance) this.vacate(lease);
      else if (input.at - lease.since > cancelMs) return MISSING;
      else this.giveBack(lease, lease.since);
    }
    if (waiter !== undefined) {
      if (input.end === "timeout") this.addWait(waiter);
      this.endWaiter(waiter, input.end);
    } else this.endSession({ ...input, keepUntil: Math.max(input.keepUntil, until) }, input.end);
    return DONE;
  }

  release({ slotToken, hitAt, status }: InputOf<"release">): Outcome {
    const lease = this.slots.find(({ token, isReleased }) => token === slotToken && !isReleased);
    if (status !== undefined) this.report(status, lease?.isProbe ?? false);
    if (lease === undefined) return MISSING;
    const endsAt = this.giveBack(lease, hitAt);
    return { kind: "released", bucket: lease.bucket, endsAt, heldMs: this.now - lease.since };
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
      if (this.isKept(oldest) && this.ends.length <= mostEnds) break;
      if (oldest.keepUntil + GRACE_MS > this.now)
        this.forgottenAt = Math.max(this.forgottenAt, oldest.endedAt + AHEAD_MS);
      this.ends.shift();
    }
    const idle = this.buckets.filter(({ bucket }) => !this.isActive(bucket));
    for (const one of idle) if (this.now - one.activeAt >= idleMs) Object.assign(one, NO_NUMBERS);
    const isNeeded = (one: Bucket) =>
      this.isAhead(one) || one.waits > 0 || one.virtualTime > 0 || one.refusedAt !== undefined;
    this.buckets = this.buckets.filter((one) => !idle.includes(one) || isNeeded(one));
    this.endCooldowns();
    this.leaveCapacity();
    if (this.waiters.length === 0 && this.heat.avgWaitMs > 0) this.heat.idleSince ??= this.now;
  }

  /** The host may be forgotten: no answer would change. */
  isUnused(): boolean {
    const { now, lastEndAt = Number.NEGATIVE_INFINITY, breaker } = this;
    const isWaiting = this.waiters.some(({ deadlineAt }) => deadlineAt > now);
    const isCooling = this.cooldowns.some(({ until }) => until > now);
    const isKept = this.ends.some((end) => this.isKept(end)) || this.forgottenAt > now - KEPT_MS + AHEAD_MS;
    const isSpaced = lastEndAt + this.policy.smoothMs > now;
    const isCounting =
      this.openForMs() < HOUR_MS ||
      now - (breaker.windowStartAt ?? Number.NEGATIVE_INFINITY) <= this.policy.breaker.windowMs;
    return !(
      this.slots.length > 0 ||
      isWaiting ||
      isCooling ||
      isKept ||
      isSpaced ||
      isCounting ||
      this.live !== undefined
    );
  }
}
