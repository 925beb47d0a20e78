import type { Book } from "./book/book.ts";
import {
  closeBreaker,
  isPristine,
  openBreaker,
  phaseFor,
  reportTo,
  viewBreaker,
  widenBreaker,
} from "./book/breaker.ts";
import type { Bucket } from "./book/bucket.ts";
import { allowBuckets, denyBucket } from "./book/deny.ts";
import { addWait, becomeBusy, becomeIdle, isHot } from "./book/heat.ts";
import {
  dropLease,
  dropOffer,
  endLease,
  grantLease,
  offerSlot,
  ownLease,
  releaseLease,
  rememberEnd,
  renewLease,
} from "./book/leases.ts";
import { forgetCapacity, type GivenLimits, joinCapacity, useLimits, useLive } from "./book/limits.ts";
import type { LeaseRecord, OfferRecord, WaiterRecord } from "./book/records.ts";
import { standingOf } from "./book/standing.ts";
import { countWait, halveWait, joinTurns, takeTurn } from "./book/turns.ts";
import { retireIdle } from "./book/use.ts";
import { addWaiter, admitWaiters, dropWaiter, endWaiter, placeClient } from "./book/waiters.ts";
import { bucketLimit } from "./host-policy.ts";
import type { Input, Note, Outcome } from "./inputs.ts";
import type { SchedulerOptions } from "./options.ts";

/** What a decision needs beside the book and its inputs. All of it is given: nothing here reads a clock or a store. */
export interface DecideContext {
  /** Store time. */
  readonly now: number;
  /** The instance that decides. */
  readonly instance: string;
  readonly limits: GivenLimits;
  readonly isSemaphore: boolean;
  readonly collectMs: number;
  readonly pollIntervalMs: number;
  readonly idleMs: number;
  readonly scheduler: SchedulerOptions;
  readonly random: () => number;
  readonly newToken: () => string;
  /** Whether this instance has a poll of the session open. */
  readonly isPolledHere: (session: string) => boolean;
  /** When the store last heard from an instance; undefined: not known. */
  readonly seenAt: (instance: string) => number | undefined;
}

export interface Decision {
  /** One for each input. */
  readonly outcomes: readonly Outcome[];
  readonly notes: readonly Note[];
  /** Other instances whose waiters were offered a slot, or ended. */
  readonly wake: readonly string[];
  /** The host has no users and nothing worth keeping. */
  readonly isForgotten: boolean;
}

/** An offer to a waiter whose poll is recorded as open elsewhere. */
export const OFFER_MS = 50;
/** Sessions forgotten in one decision, at most: a decision costs the same however many ended. */
const FORGOTTEN_AT_ONCE = 64;

/**
 * The one decision about a host: takes inputs, changes the book, and hands out what is free. The funnel's layers in order:
 * 1 breaker, 2 waiter pool, 3 deny windows, 4 heat, 5 quota, 6 turns, 7 slot, bucket limit and cooldown.
 *
 *   D1 at no moment are more than `slots` leases and offers of a host alive, nor more than its limit of a bucket
 *   D2 a session is granted at most one slot in its life, and nothing after it ended or past its deadline
 *   D3 a lease has one owner, its token; what was released, revoked or expired belongs to no one
 *   D4 fences of a host only grow
 *   D5 what time ended is ended at the moment it ended, in order, so that use and meter are exact
 *   D6 a free slot is never left beside a waiter that may have it
 *   D7 the best-ranked waiter goes first (`order.ts`), whichever instance it lives on, each grant counted before the next
 *   D8 the same book, inputs and context give the same changes
 * Not promised: that the book is current. The commit that follows is refused where it is not, and the decision is made again.
 */
export function decide(book: Book, inputs: readonly Input[], context: DecideContext): Decision {
  return new Deciding(book, context).run(inputs);
}

class Deciding {
  readonly #book: Book;
  readonly #context: DecideContext;
  readonly #notes: Note[] = [];
  readonly #wake = new Set<string>();
  #mayForget = false;

  constructor(book: Book, context: DecideContext) {
    this.#book = book;
    this.#context = context;
  }

  run(inputs: readonly Input[]): Decision {
    const book = this.#book;
    const now = Math.max(this.#context.now, book.head.now);
    book.index.useTurns(this.#context.scheduler.isEnabled);
    if (book.limits === undefined && !inputs.some(({ kind }) => CREATES.has(kind))) return this.#unknownHost(inputs);
    this.#catchUp(now);
    forgetCapacity(book);
    useLimits(book, this.#context.limits);
    const outcomes = inputs.map((input) => this.#take(input));
    this.#collect();
    this.#throttle();
    allowBuckets(book);
    admitWaiters(book);
    // A grant frees a place in the pool, and the waiter that gets it may be granted too.
    do this.#grant();
    while (admitWaiters(book));
    if (book.isChanged) this.#tidy();
    return {
      outcomes,
      notes: this.#notes,
      wake: [...this.#wake],
      isForgotten: this.#mayForget && this.#isForgettable(),
    };
  }

  /** A release, a renewal or a cancellation never creates a host. */
  #unknownHost(inputs: readonly Input[]): Decision {
    const outcomes = inputs.map(() => MISSING);
    return { outcomes, notes: [], wake: [], isForgotten: false };
  }

  /** D5. */
  #catchUp(now: number): void {
    const book = this.#book;
    for (;;) {
      const { nextLease: lease, nextOffer: offer } = book.index;
      const leaseAt = lease?.endsAt ?? Number.POSITIVE_INFINITY;
      const offerAt = offer?.lapsesAt ?? Number.POSITIVE_INFINITY;
      if (Math.min(leaseAt, offerAt) > now) break;
      book.now = Math.max(book.head.meterAt, Math.min(leaseAt, offerAt));
      if (lease !== undefined && leaseAt <= offerAt) this.#expire(lease);
      else if (offer !== undefined) this.#lapse(offer);
    }
    book.now = now;
    if (book.get("absence", this.#context.instance) !== undefined) book.del("absence", this.#context.instance);
    for (const { key, missedAt } of Array.from(book.all("absence"))) {
      if ((this.#context.seenAt(key) ?? 0) > missedAt) book.del("absence", key);
    }
  }

  #expire(lease: LeaseRecord): void {
    endLease(this.#book, lease);
    if (!lease.isReleased) this.#notes.push({ kind: "reclaimed" });
  }

  /** The slot is offered to the next. The client is taken to be away, or its whole instance to be. */
  #lapse(offer: OfferRecord): void {
    const { key, bucket, instance, offeredAt, lapsesAt } = offer;
    const waiter = this.#book.get("waiter", key);
    dropOffer(this.#book, offer);
    this.#notes.push({ kind: "uncollected", session: key, bucket });
    // A client that polls here is there: its offer lapsed while the commit before was slow.
    if (waiter === undefined || waiter.awayAt !== undefined || this.#context.isPolledHere(key)) return;
    if (lapsesAt - offeredAt > OFFER_MS) placeClient(this.#book, waiter, waiter.instance, offeredAt);
    else if ((this.#context.seenAt(instance) ?? 0) <= lapsesAt) {
      this.#book.put({ kind: "absence", key: instance, missedAt: lapsesAt });
    } else placeClient(this.#book, waiter, waiter.instance, lapsesAt - this.#context.collectMs);
  }

  #take(input: Input): Outcome {
    switch (input.kind) {
      case "arrive":
        return this.#arrive(input);
      case "client":
        return this.#placeClient(input);
      case "end":
        return this.#end(input);
      case "return":
        return this.#return(input);
      case "release":
        return this.#release(input);
      case "renew":
        return this.#renew(input);
      case "revoke":
        return this.#revoke(input);
      case "report":
        this.#report(input.status, false);
        return DONE;
      case "breaker":
        this.#book.write({ breaker: input.isOpen ? openBreaker(0, this.#book.now) : closeBreaker() });
        return DONE;
      case "limits":
        useLive(this.#book, input.limits);
        return DONE;
      case "unspace":
        this.#book.clear("lastEndAt");
        return DONE;
      case "dead":
        return this.#bury(input.instance);
      case "forget":
        this.#mayForget = true;
        return DONE;
    }
  }

  #arrive(input: Input & { kind: "arrive" }): Outcome {
    const book = this.#book;
    const { instance } = this.#context;
    if (book.now >= input.deadlineAt) return DONE;
    const standing = standingOf(book, input.session, book.now);
    if (standing.kind === "held") {
      ownLease(book, standing.lease, instance, input.deadlineAt);
      return { kind: "held" };
    }
    if (standing.kind === "ended") rememberUntil(book, input.session, input.deadlineAt);
    if (standing.kind === "waiting")
      placeClient(book, extended(standing.waiter, input.deadlineAt), instance, undefined);
    return standing.kind === "unknown" ? this.#admit(input) : DONE;
  }

  #admit(input: Input & { kind: "arrive" }): Outcome {
    const book = this.#book;
    const { isSemaphore } = this.#context;
    const throttled = this.#throttledFor(input.openMs);
    if (throttled !== undefined) return throttled;
    if (isSemaphore && !joinCapacity(book, input.limit) && input.isReturning !== true) {
      return { kind: "mismatch", capacity: book.head.slots };
    }
    this.#join(input);
    return DONE;
  }

  #join(input: Input & { kind: "arrive" | "return" }): void {
    const book = this.#book;
    const { instance, pollIntervalMs, scheduler } = this.#context;
    const { session, bucket, weight, arrivedAt, deadlineAt, openMs } = input;
    const awayAt = input.kind === "return" ? input.awayAt : undefined;
    if (book.size("waiter") === 0) becomeBusy(book, pollIntervalMs);
    addWaiter(book, { key: session, instance, bucket, weight, arrivedAt, deadlineAt, openMs, awayAt });
    if (scheduler.isEnabled) joinTurns(book, bucket);
  }

  /** Layer 1, for a session that is not in the book. */
  #throttledFor(openMs: number): Outcome | undefined {
    const book = this.#book;
    const { breaker } = book.head;
    const view = viewBreaker(breaker, book.now, book.policy.breaker);
    if (view.phase === "closed") return undefined;
    const widened = widenBreaker(breaker, openMs, book.policy.breaker);
    if (widened !== breaker) book.write({ breaker: widened });
    if (phaseFor(view, openMs) !== "open") return undefined;
    return { kind: "throttled", code: view.code, retryAt: book.now + openMs - view.openForMs };
  }

  /** Only for a session this instance still has: another may have taken it over. */
  #placeClient({ session, awayAt }: Input & { kind: "client" }): Outcome {
    const waiter = this.#book.get("waiter", session);
    if (waiter?.instance === this.#context.instance) placeClient(this.#book, waiter, this.#context.instance, awayAt);
    return DONE;
  }

  /** Only the client's own word ends a session that another instance has meanwhile. */
  #end({ session, end, keepUntil }: Input & { kind: "end" }): Outcome {
    const book = this.#book;
    const standing = standingOf(book, session, book.now);
    if (standing.kind === "ended") return DONE;
    if (standing.kind === "unknown") {
      if (end === "canceled" && keepUntil > book.now) book.put({ kind: "session", key: session, end, keepUntil });
      return DONE;
    }
    const { instance } = standing.kind === "held" ? standing.lease : standing.waiter;
    const until = standing.kind === "held" ? standing.lease.keepUntil : standing.waiter.deadlineAt;
    // A name that came back after its deadline: this is the end of its earlier life.
    if (keepUntil <= book.now && until > keepUntil) return DONE;
    if (instance !== this.#context.instance) {
      if (end !== "canceled") return DONE;
      this.#wake.add(instance);
    }
    if (standing.kind === "waiting") {
      if (end === "timeout") addWait(book, book.now - standing.waiter.arrivedAt);
      endWaiter(book, standing.waiter, end);
    } else {
      dropLease(book, standing.lease);
      rememberEnd(book, { kind: "session", key: session, end, keepUntil: Math.max(keepUntil, until) });
    }
    return DONE;
  }

  #return(input: Input & { kind: "return" }): Outcome {
    const book = this.#book;
    const { session } = input;
    const standing = standingOf(book, session, book.now);
    if (standing.kind !== "held" || standing.lease.instance !== this.#context.instance) return MISSING;
    dropLease(book, standing.lease);
    this.#notes.push({ kind: "uncollected", session, bucket: standing.lease.bucket });
    if (book.now < input.deadlineAt) this.#join(input);
    return DONE;
  }

  #release({ slotToken, hitAt, status }: Input & { kind: "release" }): Outcome {
    const book = this.#book;
    const lease = this.#held(slotToken);
    if (status !== undefined) this.#report(status, lease?.isProbe ?? false);
    if (lease === undefined) return MISSING;
    const endsAt = releaseLease(book, lease, hitAt);
    return { kind: "released", bucket: lease.bucket, endsAt, heldMs: book.now - lease.grantedAt };
  }

  #renew({ slotToken }: Input & { kind: "renew" }): Outcome {
    const lease = this.#held(slotToken);
    return lease === undefined ? MISSING : { kind: "renewed", endsAt: renewLease(this.#book, lease) };
  }

  #revoke({ fence }: Input & { kind: "revoke" }): Outcome {
    for (const lease of this.#book.all("lease")) {
      if (lease.fence !== fence || lease.isReleased) continue;
      endLease(this.#book, lease);
      return DONE;
    }
    return MISSING;
  }

  /** D3: the lease a token still owns. */
  #held(slotToken: string): LeaseRecord | undefined {
    const lease = this.#book.get("lease", slotToken);
    return lease?.isReleased === true ? undefined : lease;
  }

  #report(status: number, isProbe: boolean): void {
    const book = this.#book;
    const { breaker } = book.head;
    const next = reportTo(breaker, { status, isProbe }, book.now, book.policy.breaker);
    if (next !== breaker) book.write({ breaker: next });
  }

  #bury(instance: string): Outcome {
    const book = this.#book;
    const waiters = [...book.all("waiter")].filter((waiter) => waiter.instance === instance);
    for (const waiter of waiters) dropWaiter(book, waiter);
    book.del("absence", instance);
    return DONE;
  }

  /** Offers whose session is polled here become leases. */
  #collect(): void {
    const book = this.#book;
    if (book.size("offer") === 0) return;
    for (const offer of Array.from(book.all("offer"))) {
      const waiter = book.get("waiter", offer.key);
      if (waiter === undefined || waiter.deadlineAt <= book.now) dropOffer(book, offer);
      else if (this.#context.isPolledHere(offer.key)) this.#hand(waiter, offer.isProbe);
    }
  }

  /** Layer 1, for those who wait already. Looked at once for each time the breaker opens. */
  #throttle(): void {
    const book = this.#book;
    const { breaker } = book.head;
    if (breaker.openedAt === book.index.throttledAt) return;
    book.index.throttledAt = breaker.openedAt;
    const view = viewBreaker(breaker, book.now, book.policy.breaker);
    if (view.phase === "closed") return;
    for (const waiter of Array.from(book.all("waiter"))) {
      if (phaseFor(view, waiter.openMs) !== "open") continue;
      if (waiter.instance !== this.#context.instance) this.#wake.add(waiter.instance);
      endWaiter(book, waiter, "throttled", {
        code: view.code,
        retryAt: book.now + waiter.openMs - view.openForMs,
      });
    }
  }

  /** Layers 4 to 7: D6, D7. */
  #grant(): void {
    const book = this.#book;
    const { scheduler } = this.#context;
    const isWeighted = scheduler.isEnabled && this.#isHot();
    while (book.free > 0) {
      const bucket = isWeighted ? book.index.nextTurn : this.#best();
      if (bucket === undefined) return;
      const waiter = this.#headOf(bucket);
      if (waiter === undefined) continue;
      const isProbe = this.#isHalfOpen(waiter);
      if (isProbe && book.index.probes >= book.policy.breaker.halfOpenProbes) return;
      if (isWeighted) takeTurn(book, bucket, scheduler);
      const reason = this.#refusal(bucket);
      halveWait(book, bucket.name);
      if (reason === undefined) this.#hand(waiter, isProbe);
      else this.#deny(bucket, reason);
    }
    if (isWeighted) this.#probeInVain();
  }

  #isHot(): boolean {
    const book = this.#book;
    const hot = isHot(book, this.#context);
    if (hot !== book.head.isHot) book.write({ isHot: hot });
    return hot;
  }

  #best(): Bucket | undefined {
    const { index, head, inFlight, now } = this.#book;
    return index.order.best(index.ledger.level(head.slots, inFlight), now);
  }

  /** The bucket's oldest waiter, if its client is there and its deadline is not over. */
  #headOf(bucket: Bucket): WaiterRecord | undefined {
    const book = this.#book;
    const entry = bucket.head;
    if (entry === undefined) return undefined;
    const { record } = entry;
    if (record.deadlineAt <= book.now) {
      addWait(book, book.now - record.arrivedAt);
      endWaiter(book, record, "timeout");
    } else if (record.awayAt !== undefined && record.awayAt + this.#context.collectMs <= book.now) {
      book.index.shelve(entry);
    } else return record;
    return undefined;
  }

  #isHalfOpen({ openMs }: WaiterRecord): boolean {
    const book = this.#book;
    return phaseFor(viewBreaker(book.head.breaker, book.now, book.policy.breaker), openMs) === "half-open";
  }

  /** Layer 7: what is against the bucket itself. */
  #refusal({ name, inFlight }: Bucket): "ip-limit" | "cooldown" | undefined {
    const book = this.#book;
    if (inFlight >= bucketLimit(book.policy, name)) return "ip-limit";
    return (book.get("cooldown", name)?.until ?? 0) > book.now ? "cooldown" : undefined;
  }

  #deny(bucket: Bucket, reason: "ip-limit" | "cooldown"): void {
    denyBucket(this.#book, bucket.name, reason, this.#context.random());
    this.#notes.push({ kind: "denied", bucket: bucket.name });
  }

  /** A lease where the client can be answered, else an offer. */
  #hand(waiter: WaiterRecord, isProbe: boolean): void {
    const book = this.#book;
    const { instance, isPolledHere, newToken, collectMs } = this.#context;
    if (isPolledHere(waiter.key)) {
      addWait(book, book.now - waiter.arrivedAt);
      grantLease(book, waiter, { token: newToken(), instance, isProbe });
      return;
    }
    const isHere = waiter.instance === instance;
    offerSlot(book, waiter, book.now + (isHere || waiter.awayAt !== undefined ? collectMs : OFFER_MS), isProbe);
    if (!isHere) this.#wake.add(waiter.instance);
  }

  /** Layer 5: no slot is free. Considering buckets in vain makes them heavier; the quota bounds how many, per interval. */
  #probeInVain(): void {
    const book = this.#book;
    const { scheduler, pollIntervalMs } = this.#context;
    if (book.now - (book.head.probedAt ?? Number.NEGATIVE_INFINITY) < pollIntervalMs) return;
    book.write({ probedAt: book.now });
    const quota = scheduler.maxProbesPerCycle ?? book.policy.slots;
    for (let probed = 0; probed < quota; probed++) {
      const bucket = book.index.nextTurn;
      if (bucket === undefined) return;
      takeTurn(book, bucket, scheduler);
      countWait(book, bucket, pollIntervalMs);
    }
  }

  #tidy(): void {
    const book = this.#book;
    for (const { key } of book.expiredSessions(book.now, FORGOTTEN_AT_ONCE)) book.del("session", key);
    for (let first = book.index.nextCooldown; first !== undefined; first = book.index.nextCooldown) {
      if (first.until > book.now) break;
      book.del("cooldown", first.key);
    }
    retireIdle(book, this.#context.idleMs);
    forgetCapacity(book);
    if (book.size("waiter") === 0) becomeIdle(book);
    book.write({ now: book.now });
  }

  /** Forgetting it changes no answer, but for fairness towards a bucket that was ahead before everybody left. */
  #isForgettable(): boolean {
    const book = this.#book;
    const { lastEndAt, breaker } = book.head;
    if (book.inFlight > 0 || book.size("waiter") > 0 || book.live !== undefined) return false;
    if (lastEndAt !== undefined && lastEndAt + book.policy.smoothMs > book.now) return false;
    for (const { until } of book.all("cooldown")) if (until > book.now) return false;
    for (const { keepUntil } of book.all("session")) if (keepUntil > book.now) return false;
    return isPristine(breaker, book.now, book.policy.breaker);
  }
}

/** Inputs that make a host known. */
const CREATES: ReadonlySet<Input["kind"]> = new Set(["arrive", "report", "limits", "breaker"]);

/** A first call repeated by its `requestId` is the same session with a later deadline: its end is remembered until then. */
function rememberUntil(book: Book, session: string, until: number): void {
  const record = book.get("session", session);
  if (record !== undefined && record.keepUntil < until) book.put({ ...record, keepUntil: until });
}

function extended(waiter: WaiterRecord, deadlineAt: number): WaiterRecord {
  return waiter.deadlineAt < deadlineAt ? { ...waiter, deadlineAt } : waiter;
}

const DONE: Outcome = { kind: "done" };
const MISSING: Outcome = { kind: "missing" };
