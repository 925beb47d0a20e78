import type { BreakerState, DecideContext, Input, Note, Outcome } from "@slotkeeper/queue";
import { type Bucket, type End, first, type Slot, State, type Waiter } from "./next-waiter.ts";

/**
 * The decision about one host a second time: the specification of the service as a short program, with lists and
 * sorting instead of indexes. It shares no code with `@slotkeeper/queue`. `compare.ts` gives both the same histories.
 * It leaves out what no client can see: which instances a commit notifies, and the log of refused buckets. It does not
 * define the order of waiters of different buckets that arrived at exactly the same time.
 */

const HOUR_MS = 3_600_000;
/** How long an end is kept, how long after its deadline it may be needed, and how far ahead of the book an arrival may be. */
const [KEPT_MS, GRACE_MS, AHEAD_MS] = [600_000, 10_000, 1_000] as const;
/** How long an offer lasts for a poll that is open at another instance, and a refusal without a cooldown. */
const [OFFER_MS, REFUSED_MS] = [50, 3_000] as const;
const DONE: Outcome = { kind: "done" };
const MISSING: Outcome = { kind: "missing" };
const CLOSED: BreakerState = { code: 0, errors: 0, successes: 0, consecutive: 0 };

type InputOf<K extends Input["kind"]> = Input & { kind: K };
type Ending = Pick<InputOf<"end">, "session" | "bucket" | "arrivedAt" | "keepUntil">;
type Standing = { lease?: Slot; waiter?: Waiter; end?: { keepUntil: number; isExtended?: boolean } | undefined };

export class ReferenceBook extends State {
  context!: DecideContext;
  notes: Note[] = [];

  /** Inputs first, then the layers: breaker, offers, pool, and slots in the order of the buckets. */
  decide(
    inputs: readonly Input[],
    context: DecideContext,
  ): { outcomes: Outcome[]; notes: Note[]; isForgotten: boolean } {
    [this.context, this.notes] = [context, []];
    if (this.given === undefined && !inputs.some((input) => this.#createsHost(input)))
      return { outcomes: inputs.map(() => MISSING), notes: [], isForgotten: false };
    const before = this.#image();
    this.#passTime(Math.max(context.now, this.now));
    this.#useLimits();
    const outcomes = inputs.map((input) => this.#take(input));
    this.#throttleWaiters();
    this.#collectOffers();
    for (const bucket of this.buckets) if ((bucket.refusal?.until ?? 0) <= this.now) bucket.refusal = undefined;
    this.#admit();
    do this.#handOut();
    while (this.#admit() || this.#swap());
    // A decision that changes nothing is not committed.
    if (this.#image() !== before) this.#tidy();
    return {
      outcomes,
      notes: this.notes,
      isForgotten: inputs.some(({ kind }) => kind === "forget") && this.#isUnused(),
    };
  }

  #image(): string {
    const buckets = this.buckets.map((bucket) => ({ ...bucket, used: 0, activeAt: 0 }));
    return JSON.stringify({ ...this, buckets, now: 0, meter: 0, context: 0, notes: 0 });
  }

  // Time. What ends by time ends at exactly its time: leases first, by fence.

  #passTime(now: number): void {
    if (this.given === undefined)
      Object.assign(this, { now, fence: Math.floor(now * 1000), forgottenAt: now - KEPT_MS + AHEAD_MS });
    for (;;) {
      const slot = first(
        this.slots.toSorted((a, b) => (a.session < b.session ? -1 : 1)),
        (one) => [one.endsAt, one.token ? 0 : 1, one.fence],
      );
      if (slot === undefined || slot.endsAt > now) break;
      this.moveTo(slot.endsAt);
      if (slot.token === undefined) this.#lapse(slot);
      else {
        this.#endLease(slot);
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
  #lapse(offer: Slot): void {
    const { session, instance, since, endsAt } = offer;
    this.#passOn(offer);
    const waiter = this.waiters.find((one) => one.session === session);
    if (waiter === undefined || waiter.awayAt !== undefined || this.context.isPolledHere(session)) return;
    if (endsAt - since > OFFER_MS) waiter.awayAt = since;
    else if ((this.context.seenAt(instance) ?? 0) > endsAt) waiter.awayAt = endsAt - this.context.collectMs;
    else this.absences = [...this.absences.filter((one) => one.instance !== instance), { instance, missedAt: endsAt }];
  }

  // Limits: those of a host's name replace those of none; otherwise the configuration that was loaded last is in force.

  #useLimits(): void {
    const { limits } = this.context;
    this.#leaveCapacity();
    const isSame = this.given?.hostname === limits.hostname;
    const isNewer = limits.loadedAt > (this.given?.loadedAt ?? Number.NEGATIVE_INFINITY);
    const isOther = JSON.stringify(this.given?.policy) !== JSON.stringify(limits.policy);
    if (!isSame || (isNewer && isOther)) this.given = limits;
  }

  /** A semaphore without users may get another capacity. */
  #leaveCapacity(): void {
    if (this.slots.length + this.waiters.length === 0) this.capacity = undefined;
  }

  #createsHost(input: Input): boolean {
    const { protectHttpCodes } = this.context.limits.policy.breaker;
    return input.kind === "report"
      ? isCounted(input.status, protectHttpCodes)
      : ["arrive", "limits", "breaker"].includes(input.kind);
  }

  // Inputs.

  #take(input: Input): Outcome {
    if (input.kind === "arrive") return this.#arrive(input);
    if (input.kind === "return") return this.#return(input);
    if (input.kind === "end") return this.#end(input);
    if (input.kind === "release") return this.#release(input);
    if (input.kind === "renew") return this.#renew(input);
    if (input.kind === "revoke") {
      const lease = this.slots.find(({ token, fence, isReleased }) => token && fence === input.fence && !isReleased);
      if (lease !== undefined) this.#endLease(lease);
      return lease === undefined ? MISSING : DONE;
    }
    if (input.kind === "client") {
      const waiter = this.waiters.find(
        ({ session, instance }) => session === input.session && instance === this.context.instance,
      );
      if (waiter !== undefined) waiter.awayAt = input.awayAt;
    }
    if (input.kind === "report") this.#report(input.status, false);
    if (input.kind === "breaker") this.breaker = input.isOpen ? { ...CLOSED, openedAt: this.now } : CLOSED;
    if (input.kind === "limits") this.live = input.limits;
    if (input.kind === "unspace") this.lastEndAt = undefined;
    if (input.kind === "dead") {
      for (const waiter of this.waiters.filter(({ instance }) => instance === input.instance)) this.#leave(waiter);
      this.absences = this.absences.filter(({ instance }) => instance !== input.instance);
    }
    return DONE;
  }

  /** A session is in the book as one of: a slot, a waiter, an end. A slot that is on its way to its end counts as an end. */
  #standing(session: string): Standing {
    const lease = this.slots.findLast((one) => one.session === session && one.token !== undefined);
    if (lease?.isReleased === false) return { lease };
    const waiter = this.waiters.find((one) => one.session === session);
    const end = this.ends.find((one) => one.session === session && one.keepUntil > this.now);
    return waiter === undefined ? { end: end ?? lease } : { waiter };
  }

  #arrive(input: InputOf<"arrive">): Outcome {
    const { session, arrivedAt, deadlineAt, isReturning = false } = input;
    if (this.now >= deadlineAt) return this.#arriveLate(input);
    const { instance, isTokenSent } = this.context;
    const { lease, waiter, end } = this.#standing(session);
    const isUnknown = lease === undefined && waiter === undefined && end === undefined;
    if (isUnknown && (isReturning || isTokenSent(session)) && this.#isForgotten(input))
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
    if (end === undefined) return this.#begin(input);
    const isFirst = end.keepUntil === deadlineAt && !end.isExtended;
    if (end.keepUntil < deadlineAt)
      Object.assign(end, { keepUntil: deadlineAt, endedAt: this.now, isExtended: "end" in end });
    return { kind: "ended", isFirst };
  }

  /** After its deadline a session gets no slot, but may find the one it has, or its end. */
  #arriveLate({ session, deadlineAt }: InputOf<"arrive">): Outcome {
    const lease = this.slots.findLast((one) => one.session === session && one.token !== undefined);
    const isOwnGrant = lease?.instance === this.context.instance;
    if (lease && lease.keepUntil >= deadlineAt)
      return { kind: "held", isFirst: lease.keepUntil === deadlineAt, isOwnGrant };
    const end = this.ends.find((one) => one.session === session && one.keepUntil >= deadlineAt);
    return end ? { kind: "ended", isFirst: end.keepUntil === deadlineAt && !end.isExtended } : DONE;
  }

  #begin(input: InputOf<"arrive">): Outcome {
    const { isSemaphore, isTokenSent } = this.context;
    const throttle = this.#throttle(input.openMs);
    if (throttle !== undefined) {
      if (isTokenSent(input.session))
        this.#endSession({ ...input, keepUntil: input.deadlineAt }, "throttled", throttle);
      return { kind: "throttled", ...throttle };
    }
    if (isSemaphore) {
      this.capacity ??= input.limit ?? this.policy.slots;
      const isOther = input.limit !== undefined && input.limit !== this.capacity;
      if (isOther && input.isReturning !== true) return { kind: "mismatch", capacity: this.capacity };
    }
    this.#join({ ...input, awayAt: undefined }, input.isReturning === true);
    return DONE;
  }

  /** A newcomer displaces the youngest of a bucket with two places more; a session that returns, a younger one of a larger bucket. */
  #join(
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
    const best = this.best(this.context.collectMs);
    if (isAdmitted)
      this.enter(waiter, this.context, isReturning && best !== undefined ? best.used / best.weight : undefined);
    this.waiters.push(waiter);
  }

  /** A slot that its client never fetched: the session returns to its place. */
  #return(input: InputOf<"return">): Outcome {
    const { lease } = this.#standing(input.session);
    if (lease?.instance !== this.context.instance) return MISSING;
    this.#free(lease);
    this.notes.push({ kind: "uncollected", session: lease.session, bucket: lease.bucket });
    if (this.now >= input.deadlineAt) return DONE;
    const throttle = this.#throttle(input.openMs);
    if (throttle === undefined) this.#join(input, false);
    else this.#endSession({ ...input, keepUntil: input.deadlineAt }, "throttled", throttle);
    return throttle === undefined ? DONE : { kind: "throttled", ...throttle };
  }

  /** A timeout or a cancellation. Only a cancellation ends a session that another instance has. */
  #end(input: InputOf<"end">): Outcome {
    const { instance, cancelMs } = this.context;
    const { lease, waiter, end } = this.#standing(input.session);
    const owner = (lease ?? waiter)?.instance;
    const until = lease?.keepUntil ?? waiter?.deadlineAt ?? Number.NEGATIVE_INFINITY;
    if (end !== undefined) return MISSING;
    if (owner === undefined) {
      const isEnded = this.ends.some(
        ({ session, keepUntil }) => session === input.session && keepUntil >= input.keepUntil,
      );
      if (isEnded || input.keepUntil + GRACE_MS <= this.now || this.#isForgotten(input)) return MISSING;
    }
    // The id was used for two sessions, and this input belongs to the other one.
    if (input.keepUntil <= this.now && until > input.keepUntil) return MISSING;
    if (lease !== undefined && until < input.keepUntil) return MISSING;
    if (owner !== undefined && owner !== instance && input.end !== "canceled") return MISSING;
    if (lease !== undefined) {
      if (input.isUndelivered && owner === instance) this.#free(lease);
      else if (input.at - lease.since > cancelMs) return MISSING;
      else this.#giveBack(lease, lease.since);
    }
    if (waiter !== undefined) {
      if (input.end === "timeout") this.#addWait(waiter);
      this.#endWaiter(waiter, input.end);
    } else this.#endSession({ ...input, keepUntil: Math.max(input.keepUntil, until) }, input.end);
    return DONE;
  }

  // Slots.

  #release({ slotToken, hitAt, status }: InputOf<"release">): Outcome {
    const lease = this.slots.find(({ token, isReleased }) => token === slotToken && !isReleased);
    if (status !== undefined) this.#report(status, lease?.isProbe ?? false);
    if (lease === undefined) return MISSING;
    const endsAt = this.#giveBack(lease, hitAt);
    return { kind: "released", bucket: lease.bucket, endsAt, heldMs: this.now - lease.since };
  }

  #renew({ slotToken }: InputOf<"renew">): Outcome {
    const lease = this.slots.find(({ token, isReleased }) => token === slotToken && !isReleased);
    if (lease === undefined) return MISSING;
    lease.endsAt = Math.max(
      lease.endsAt,
      Math.min(this.now + this.policy.leaseMs, lease.since + this.policy.maxHoldMs),
    );
    return { kind: "renewed", endsAt: lease.endsAt };
  }

  /** The slot ends at max(hit + minimum hold, last end + spacing, now), at most one lease from now. Then the cooldown begins. */
  #giveBack(lease: Slot, hitAt: number | undefined): number {
    const { now, lastEndAt = Number.NEGATIVE_INFINITY } = this;
    const { minHoldMs, smoothMs, leaseMs, cooldownMs } = this.policy;
    const isPossible = hitAt !== undefined && hitAt <= now && hitAt >= now - leaseMs;
    const heldUntil = hitAt === undefined ? now : (isPossible ? hitAt : now) + minHoldMs;
    const spacedUntil = smoothMs > 0 ? lastEndAt + smoothMs : now;
    lease.endsAt = Math.min(Math.max(heldUntil, spacedUntil, now), now + leaseMs);
    lease.isReleased = true;
    if (smoothMs > 0) this.lastEndAt = Math.max(lastEndAt, lease.endsAt);
    if (cooldownMs > 0 && lease.bucket !== "")
      this.cooldowns.push({ bucket: lease.bucket, until: lease.endsAt + cooldownMs });
    if (lease.endsAt <= now) this.#endLease(lease);
    else this.#allow(lease.bucket, lease.endsAt);
    return lease.endsAt;
  }

  #endLease(lease: Slot): void {
    const { session, keepUntil, isReleased } = lease;
    this.#free(lease);
    const isEnded = isReleased && this.ends.some((one) => one.session === session && one.keepUntil >= keepUntil);
    if (!isEnded) this.#remember({ session, end: "released", keepUntil, throttle: undefined });
  }

  #free(slot: Slot): void {
    this.slots = this.slots.filter((one) => one !== slot);
    this.#allow(slot.bucket, this.now);
  }

  /** A slot of the bucket ends at this time, so a refusal for the limit does, too. */
  #allow(bucket: string, at: number): void {
    const refusal = this.buckets.find((one) => one.bucket === bucket)?.refusal;
    if (refusal?.reason === "limit") refusal.until = Math.min(refusal.until, at);
  }

  #offerOf(session: string): Slot | undefined {
    return this.slots.find((one) => one.session === session && one.token === undefined);
  }

  // Ends of sessions.

  #leave(waiter: Waiter): void {
    const offer = this.#offerOf(waiter.session);
    if (offer !== undefined) this.#free(offer);
    this.waiters = this.waiters.filter((one) => one !== waiter);
  }

  #endWaiter(waiter: Waiter, end: "timeout" | "canceled" | "throttled", throttle?: End["throttle"]): void {
    this.#leave(waiter);
    this.#endSession({ ...waiter, keepUntil: waiter.deadlineAt }, end, throttle);
  }

  #endSession(
    { session, bucket, arrivedAt, keepUntil }: Ending,
    end: "timeout" | "canceled" | "throttled",
    throttle?: End["throttle"],
  ): void {
    this.#remember({ session, end, keepUntil, throttle });
    const waitedMs = Math.max(0, Math.min(this.now, keepUntil) - arrivedAt);
    const reason = this.now >= keepUntil ? "deadline" : "idle";
    this.notes.push({ kind: "ended", session, bucket, end, reason, code: throttle?.code ?? 0, waitedMs });
  }

  #remember(end: Omit<End, "endedAt" | "isExtended">): void {
    if (end.keepUntil + GRACE_MS <= this.now) return;
    this.ends = [
      ...this.ends.filter(({ session }) => session !== end.session),
      { ...end, endedAt: this.now, isExtended: false },
    ];
  }

  /** A session that the book does not have has ended, if the last time at which it is known to have waited is that old. */
  #isForgotten({ arrivedAt, pendingAt = arrivedAt }: InputOf<"arrive" | "end">): boolean {
    return Math.max(arrivedAt, pendingAt) <= this.forgottenAt;
  }

  // Layer 1, the breaker. It stays open for the window of the session that asks, then it is half open, for an hour at most.

  #openForMs(): number {
    const openForMs = this.now - (this.breaker.openedAt ?? Number.NEGATIVE_INFINITY);
    return openForMs < HOUR_MS ? openForMs : Number.POSITIVE_INFINITY;
  }

  #throttle(openMs: number): End["throttle"] {
    const openForMs = this.#openForMs();
    return openForMs < openMs
      ? { code: this.breaker.code, retryAt: this.now + Math.min(openMs, HOUR_MS) - openForMs }
      : undefined;
  }

  #throttleWaiters(): void {
    for (const waiter of this.waiters) {
      const throttle = this.#throttle(waiter.openMs);
      if (throttle !== undefined) this.#endWaiter(waiter, "throttled", throttle);
    }
  }

  #report(status: number, isProbe: boolean): void {
    const { protectHttpCodes, windowMs, openMs, ...most } = this.policy.breaker;
    if (!isCounted(status, protectHttpCodes)) return;
    const isError = protectHttpCodes.includes(status);
    const opened = { ...CLOSED, code: status, openedAt: this.now };
    if (this.#openForMs() < HOUR_MS) {
      if (isProbe || this.#openForMs() >= openMs) this.breaker = isError ? opened : CLOSED;
      return;
    }
    const { windowStartAt = Number.NEGATIVE_INFINITY } = this.breaker;
    const counts =
      this.breaker.openedAt === undefined && this.now - windowStartAt <= windowMs
        ? this.breaker
        : { ...CLOSED, windowStartAt: this.now };
    const [errors, successes] = [counts.errors + Number(isError), counts.successes + Number(!isError)];
    const consecutive = isError ? counts.consecutive + 1 : 0;
    this.breaker = { ...counts, errors, successes, consecutive };
    const isOver = (samples: number, percent: number) =>
      samples > 0 && errors + successes >= samples && (100 * errors) / (errors + successes) >= percent;
    const isFailing = most.consecutiveErrors > 0 && consecutive >= most.consecutiveErrors;
    const isBad =
      isOver(most.minSamples, most.errorRatioPercent) || isOver(most.fastMinSamples, most.fastErrorRatioPercent);
    if (isError && (isFailing || isBad)) this.breaker = opened;
  }

  // Layer 2, the pool.

  /** Free places, and those of clients that have been away for long, go to waiters outside. */
  #admit(): boolean {
    let isAdmitted = false;
    for (let next = this.entrant(); next !== undefined; next = this.entrant()) {
      const away = this.inside().filter(({ session, awayAt }) => awayAt !== undefined && !this.#offerOf(session));
      const longest = first(
        away.toSorted((a, b) => (a.session < b.session ? -1 : 1)),
        ({ awayAt = 0 }) => [awayAt],
      );
      if (this.isPoolFull() && (longest?.awayAt ?? this.now) + this.context.collectMs <= this.now)
        (longest as Waiter).isInside = false;
      if (this.isPoolFull()) break;
      this.enter(next, this.context);
      isAdmitted = true;
    }
    return isAdmitted;
  }

  /** A slot is free, but no waiter inside may have it: one whose bucket was refused gives its place to one that may. */
  #swap(): boolean {
    if (this.free <= 0 || !this.isPoolFull()) return false;
    const stuck = this.inside().filter(({ bucket }) =>
      this.buckets.some((one) => one.bucket === bucket && this.isRefused(one)),
    );
    const leaves = this.loser(stuck);
    const enters = this.entrant(
      ({ bucket }) =>
        this.obstacle(bucket) === undefined &&
        !this.buckets.some((one) => one.bucket === bucket && this.isRefused(one)),
    );
    if (leaves === undefined || enters === undefined) return false;
    leaves.isInside = false;
    this.enter(enters, this.context);
    return true;
  }

  // Layers 3 to 7: slots.

  #collectOffers(): void {
    for (const offer of this.slots.filter(({ token }) => token === undefined)) {
      const waiter = this.waiters.find(({ session }) => session === offer.session);
      // A limit may have been lowered since.
      const isOver = this.free < 0 || this.held(offer.bucket) > this.limit(offer.bucket);
      if (waiter === undefined || waiter.deadlineAt <= this.now || isOver) this.#free(offer);
      else if (this.#noteAway(waiter)) this.#passOn(offer);
      else if (this.context.isPolledHere(offer.session)) this.#hand(waiter, offer.isProbe);
    }
  }

  #passOn(offer: Slot): void {
    this.#free(offer);
    this.notes.push({ kind: "uncollected", session: offer.session, bucket: offer.bucket });
  }

  /** The instance of a waiter knows that its client is away, and the book does not. */
  #noteAway(waiter: Waiter): boolean {
    if (waiter.awayAt !== undefined || waiter.instance !== this.context.instance) return false;
    waiter.awayAt = this.context.awayHere(waiter.session);
    return waiter.awayAt !== undefined;
  }

  #handOut(): void {
    const { collectMs, scheduler } = this.context;
    const isHot = scheduler.isEnabled && this.#measureHeat();
    const freeBefore = this.free;
    while (this.free > 0) {
      const bucket = isHot ? this.turns(collectMs)[0] : this.best(collectMs);
      const waiter = bucket && this.head(bucket.bucket, collectMs);
      if (bucket === undefined || waiter === undefined) return;
      if (this.#noteAway(waiter)) continue;
      if (waiter.deadlineAt <= this.now) {
        this.#addWait(waiter);
        this.#endWaiter(waiter, "timeout");
        continue;
      }
      const isProbe = this.#openForMs() < HOUR_MS && this.#openForMs() >= waiter.openMs;
      const probes = this.slots.filter((slot) => slot.isProbe).length;
      if (isProbe && probes >= this.policy.breaker.halfOpenProbes) return;
      if (isHot) this.#takeTurn(bucket);
      bucket.waits = Math.floor(bucket.waits / 2);
      const reason = this.obstacle(bucket.bucket);
      if (reason === undefined) this.#hand(waiter, isProbe);
      else this.#refuse(bucket, reason);
    }
    if (isHot && this.free === freeBefore) this.#considerInVain();
    else if (isHot) this.turn.triedAt = this.now;
  }

  /** A waiter with an open poll here gets a lease, any other an offer. */
  #hand(waiter: Waiter, isProbe: boolean): void {
    const { session, bucket, weight, deadlineAt: keepUntil } = waiter;
    const { instance, isPolledHere, newSecret, collectMs } = this.context;
    const slot = { session, bucket, since: this.now, isProbe, isReleased: false, keepUntil };
    this.activate(bucket, weight);
    this.slots = this.slots.filter((one) => one !== this.#offerOf(session));
    if (isPolledHere(session)) {
      this.#addWait(waiter);
      this.fence = Math.max(this.fence + 1, Math.floor(this.now * 1000));
      const endsAt = this.now + Math.min(this.policy.leaseMs, this.policy.maxHoldMs);
      this.slots.push({ ...slot, token: `slot_${newSecret()}`, fence: this.fence, instance, endsAt });
      this.waiters = this.waiters.filter((one) => one !== waiter);
    } else {
      const isElsewhere = waiter.instance !== instance && waiter.awayAt === undefined;
      const endsAt = this.now + (isElsewhere ? OFFER_MS : collectMs);
      this.slots.push({ ...slot, token: undefined, fence: 0, instance: waiter.instance, endsAt });
    }
  }

  /** Until the reason is over, and at most for its cooldown (or 3 s) and up to a third more, the bucket is not tried again. */
  #refuse(bucket: Bucket, reason: "limit" | "cooldown"): void {
    const { cooldownMs } = this.policy;
    const window = (cooldownMs > 0 ? cooldownMs : REFUSED_MS) * (1 + this.context.random() / 3);
    const ends = reason === "limit" ? this.slots.map((slot) => ({ ...slot, until: slot.endsAt })) : this.cooldowns;
    const over = ends.filter((one) => one.bucket === bucket.bucket).map(({ until }) => until);
    const until = reason === "limit" ? Math.min(...over) : Math.max(...over);
    bucket.refusal = { reason, until: Math.min(this.now + window, until) };
  }

  // The weighted scheduler.

  #addWait({ arrivedAt }: Waiter): void {
    this.heat.avgWaitMs = 0.8 * this.heat.avgWaitMs + 0.2 * Math.max(0, this.now - arrivedAt);
  }

  #measureHeat(): boolean {
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

  #takeTurn(bucket: Bucket): void {
    const { baseWeight, weightPerWait } = this.context.scheduler;
    this.turn.virtualTime = bucket.virtualTime;
    bucket.virtualTime += 1 / Math.max(1, baseWeight + weightPerWait * bucket.waits);
  }

  /** No slot is free: the next buckets gain weight, at most once per poll interval. They keep their turns. */
  #considerInVain(): void {
    const { scheduler, pollIntervalMs, collectMs } = this.context;
    if (this.now - this.turn.triedAt < pollIntervalMs) return;
    this.turn.triedAt = this.now;
    for (const bucket of this.turns(collectMs).slice(0, scheduler.maxProbesPerCycle ?? this.policy.slots)) {
      if (this.now - bucket.waitedAt >= pollIntervalMs)
        Object.assign(bucket, { waits: bucket.waits + 1, waitedAt: this.now });
    }
  }

  // What is forgotten.

  #tidy(): void {
    const { mostEnds, idleMs } = this.context;
    this.ends.sort((a, b) => a.endedAt - b.endedAt || (a.session < b.session ? -1 : 1));
    for (let [oldest] = this.ends; oldest !== undefined; [oldest] = this.ends) {
      if (this.#isKept(oldest) && this.ends.length <= mostEnds) break;
      if (oldest.keepUntil + GRACE_MS > this.now)
        this.forgottenAt = Math.max(this.forgottenAt, oldest.endedAt + AHEAD_MS);
      this.ends.shift();
    }
    this.buckets = this.buckets.filter((one) => {
      const hasNumbers = one.waits > 0 || one.virtualTime > 0;
      const isAhead = one.used > this.meter * one.weight + 1e-3;
      return (
        this.isActive(one.bucket) || this.isRefused(one) || isAhead || (hasNumbers && this.now - one.activeAt < idleMs)
      );
    });
    this.#leaveCapacity();
    if (this.waiters.length === 0 && this.heat.avgWaitMs > 0) this.heat.idleSince ??= this.now;
  }

  #isKept({ keepUntil, endedAt }: End): boolean {
    return Math.min(keepUntil + GRACE_MS, endedAt + KEPT_MS) > this.now;
  }

  /** The host may be forgotten: no answer would change. */
  #isUnused(): boolean {
    const { now, lastEndAt = Number.NEGATIVE_INFINITY, breaker } = this;
    const isWaiting = this.waiters.some(({ deadlineAt }) => deadlineAt > now);
    const isCooling = this.cooldowns.some(({ until }) => until > now);
    const isKept = this.ends.some((end) => this.#isKept(end)) || this.forgottenAt > now - KEPT_MS + AHEAD_MS;
    const isSpaced = lastEndAt + this.policy.smoothMs > now;
    const isCounting =
      this.#openForMs() < HOUR_MS ||
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

/** 200 to 399 is a success, and a protected code an error. Other codes are not counted. */
function isCounted(status: number, protectHttpCodes: readonly number[]): boolean {
  return protectHttpCodes.includes(status) || (status >= 200 && status <= 399);
}
