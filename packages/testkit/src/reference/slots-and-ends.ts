import type { BreakerState } from "@slotkeeper/queue";
import type { DecideContext, Input, Note } from "@slotkeeper/queue/internals";
import { NextWaiter } from "./next-waiter.ts";
import type { End, Slot, Waiter } from "./state.ts";

/** How slots and sessions end, and the circuit breaker: the middle part of the reference book. */

export const HOUR_MS = 3_600_000;
/** How long an end is kept, how long after its deadline it may be needed, and how far ahead of the book an arrival may be. */
export const [KEPT_MS, GRACE_MS, AHEAD_MS] = [600_000, 10_000, 1_000] as const;
export const CLOSED: BreakerState = { code: 0, errors: 0, successes: 0, consecutive: 0 };

export type InputOf<K extends Input["kind"]> = Input & { kind: K };
type Ended = "timeout" | "canceled" | "throttled" | "impossible";
type Ending = Pick<InputOf<"end">, "session" | "bucket" | "arrivedAt" | "keepUntil">;

export class SlotsAndEnds extends NextWaiter {
  context!: DecideContext;
  notes: Note[] = [];

  // Slots.

  /** The slot ends at max(hit + minimum hold, last end + spacing, now), at most one lease from now. Then the cooldown begins. */
  giveBack(lease: Slot, hitAt: number | undefined): number {
    const { now, lastEndAt = Number.NEGATIVE_INFINITY } = this;
    const { minHoldMs, smoothMs, leaseMs, cooldownMs } = this.policy;
    const isPossible = hitAt !== undefined && hitAt <= now && hitAt >= now - leaseMs;
    const heldUntil = hitAt === undefined ? now : (isPossible ? hitAt : now) + minHoldMs;
    const spacedUntil = smoothMs > 0 ? lastEndAt + smoothMs : now;
    lease.endsAt = Math.min(Math.max(heldUntil, spacedUntil, now), now + leaseMs);
    lease.isReleased = true;
    if (smoothMs > 0) this.lastEndAt = Math.max(lastEndAt, lease.endsAt);
    if (cooldownMs > 0 && lease.bucket !== "") this.coolDown(lease.bucket, lease.endsAt + cooldownMs);
    if (lease.endsAt <= now) this.endLease(lease);
    return lease.endsAt;
  }

  /** A cooldown that runs longer is not shortened. */
  coolDown(bucket: string, until: number): void {
    if (this.cooldowns.some((one) => one.bucket === bucket && one.until >= until)) return;
    this.cooldowns = [...this.cooldowns.filter((one) => one.bucket !== bucket), { bucket, until }];
  }

  endCooldowns(): void {
    this.cooldowns = this.cooldowns.filter(({ until }) => until > this.now);
  }

  endLease(lease: Slot): void {
    const { session, keepUntil, isReleased } = lease;
    this.vacate(lease);
    const isEnded = isReleased && this.ends.some((one) => one.session === session && one.keepUntil >= keepUntil);
    if (!isEnded) this.remember({ session, end: "released", keepUntil, throttle: undefined });
  }

  /** Takes back a lease that no client got. */
  takeLease(lease: Slot): void {
    const { session, bucket, fence } = lease;
    this.vacate(lease);
    this.giveBackCosts(lease);
    this.notes.push({ kind: "returned", session, bucket, fence });
  }

  vacate(slot: Slot): void {
    this.slots = this.slots.filter((one) => one !== slot);
  }

  /** An offer that lapses gives everything back. */
  dropOffer(offer: Slot): void {
    this.vacate(offer);
    this.giveBackCosts(offer);
  }

  offerOf(session: string): Slot | undefined {
    return this.slots.find((one) => one.session === session && one.token === undefined);
  }

  passOn(offer: Slot): void {
    this.dropOffer(offer);
    this.notes.push({ kind: "uncollected", session: offer.session, bucket: offer.bucket });
  }

  // Ends of sessions.

  leave(waiter: Waiter): void {
    const offer = this.offerOf(waiter.session);
    if (offer !== undefined) this.dropOffer(offer);
    this.waiters = this.waiters.filter((one) => one !== waiter);
  }

  endWaiter(waiter: Waiter, end: Ended, throttle?: End["throttle"]): void {
    if (end === "timeout") this.addWait(waiter);
    this.leave(waiter);
    this.endSession({ ...waiter, keepUntil: waiter.deadlineAt }, end, throttle);
  }

  endSession({ session, bucket, arrivedAt, keepUntil }: Ending, end: Ended, throttle?: End["throttle"]): void {
    this.remember({ session, end, keepUntil, throttle });
    const waitedMs = Math.max(0, Math.min(this.now, keepUntil) - arrivedAt);
    const isImpossible = end === "impossible";
    const reason = isImpossible ? end : this.now >= keepUntil ? "deadline" : "idle";
    // A session that became impossible counts as a timeout.
    this.notes.push({
      kind: "ended",
      session,
      bucket,
      end: isImpossible ? "timeout" : end,
      reason,
      code: throttle?.code ?? 0,
      waitedMs,
    });
  }

  remember(end: Omit<End, "endedAt">): void {
    if (end.keepUntil + GRACE_MS <= this.now) return;
    this.ends = [...this.ends.filter(({ session }) => session !== end.session), { ...end, endedAt: this.now }];
  }

  /** A session that the book does not have has ended, if the last time at which it is known to have waited is that old. */
  mayHaveEnded({ arrivedAt, pendingAt = arrivedAt }: InputOf<"arrive" | "end">): boolean {
    return Math.max(arrivedAt, pendingAt) <= this.forgottenAt;
  }

  isKept({ keepUntil, endedAt }: End): boolean {
    return Math.min(keepUntil + GRACE_MS, endedAt + KEPT_MS) > this.now;
  }

  // The breaker. It stays open for the window of the session that asks, then it is half open, for an hour at most.

  openForMs(): number {
    const openForMs = this.now - (this.breaker.openedAt ?? Number.NEGATIVE_INFINITY);
    return openForMs < HOUR_MS ? openForMs : Number.POSITIVE_INFINITY;
  }

  throttle(openMs: number): End["throttle"] {
    const openForMs = this.openForMs();
    return openForMs < openMs
      ? { code: this.breaker.code, retryAt: this.now + Math.min(openMs, HOUR_MS) - openForMs }
      : undefined;
  }

  report(status: number, isProbe: boolean): void {
    const { protectHttpCodes, windowMs, openMs, ...most } = this.policy.breaker;
    if (!isCounted(status, protectHttpCodes)) return;
    const isError = protectHttpCodes.includes(status);
    const opened = { ...CLOSED, code: status, openedAt: this.now };
    if (this.openForMs() < HOUR_MS) {
      if (isProbe || this.openForMs() >= openMs) this.breaker = isError ? opened : CLOSED;
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

  addWait({ arrivedAt }: Waiter): void {
    this.heat.avgWaitMs = 0.8 * this.heat.avgWaitMs + 0.2 * Math.max(0, this.now - arrivedAt);
  }
}

/** 200 to 399 is a success, and a protected code an error. Other codes are not counted. */
export function isCounted(status: number, protectHttpCodes: readonly number[]): boolean {
  return protectHttpCodes.includes(status) || (status >= 200 && status <= 399);
}
