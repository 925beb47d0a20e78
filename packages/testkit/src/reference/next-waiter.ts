import type { BreakerState, DecideContext, HostPolicy, Input, LiveLimits, SessionEnd } from "@slotkeeper/queue";

/**
 * The state of the reference book and its rules for who is next: the meter, the order, the turns of the weighted
 * scheduler and the waiter pool. `reference-book.ts` has the rest. Plain lists, which are searched for each question.
 */

type Joining = Pick<
  Input & { kind: "return" },
  "session" | "bucket" | "weight" | "arrivedAt" | "deadlineAt" | "openMs" | "awayAt"
>;
/** A session that waits, with a place in the pool or outside of it. */
export type Waiter = { -readonly [K in keyof Joining]: Joining[K] | (K extends "awayAt" ? undefined : never) } & {
  instance: string;
  isInside: boolean;
};
/** A slot that is held, or offered: then it has no token yet, and the session still waits. */
export type Slot = Pick<Joining, "session" | "bucket"> & {
  readonly token: string | undefined;
  readonly fence: number;
  readonly since: number;
  readonly isProbe: boolean;
  instance: string;
  endsAt: number;
  isReleased: boolean;
  keepUntil: number;
};
/** How a session ended. `isExtended`: a repeated first call moved its deadline. */
export type End = Pick<Joining, "session"> & {
  readonly end: SessionEnd;
  readonly throttle: { readonly code: number; readonly retryAt: number } | undefined;
  keepUntil: number;
  endedAt: number;
  isExtended: boolean;
};
/** A client group: what it used in slot-milliseconds, and its numbers for the weighted scheduler. */
export type Bucket = Pick<Joining, "bucket"> & {
  weight: number;
  used: number;
  activeAt: number;
  refusedAt: number | undefined;
  waits: number;
  waitedAt: number;
  virtualTime: number;
};

/** The numbers of a bucket besides its use. They are kept for an idle period. */
export const NO_NUMBERS = {
  refusedAt: undefined,
  waits: 0,
  waitedAt: Number.NEGATIVE_INFINITY,
  virtualTime: 0,
};

export class State {
  now = Number.NEGATIVE_INFINITY;
  given: DecideContext["limits"] | undefined;
  live: LiveLimits | undefined;
  capacity: number | undefined;
  slots: Slot[] = [];
  waiters: Waiter[] = [];
  ends: End[] = [];
  buckets: Bucket[] = [];
  cooldowns: { readonly bucket: string; readonly until: number }[] = [];
  absences: { readonly instance: string; readonly missedAt: number }[] = [];
  breaker: BreakerState = { code: 0, errors: 0, successes: 0, consecutive: 0 };
  fence = 0;
  lastEndAt: number | undefined;
  /** Ends up to this time may be forgotten. */
  forgottenAt = Number.NEGATIVE_INFINITY;
  meter = 0;
  heat = { isHot: false, avgWaitMs: 0, idleSince: undefined as number | undefined };
  turn = { triedAt: Number.NEGATIVE_INFINITY, virtualTime: 0 };

  /** What the users of a semaphore chose, otherwise what an operator set, otherwise the configuration. */
  get policy(): HostPolicy {
    const policy = { ...(this.given?.policy as HostPolicy), ...this.live };
    return { ...policy, slots: this.capacity ?? policy.slots };
  }

  get free(): number {
    return this.policy.slots - this.slots.length;
  }

  held(bucket: string): number {
    return this.slots.filter((slot) => slot.bucket === bucket).length;
  }

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

  /** Why the bucket itself may not get a slot now. */
  obstacle(bucket: string): "limit" | "cooldown" | undefined {
    if (this.held(bucket) >= this.limit(bucket)) return "limit";
    return this.cooldowns.some((one) => one.bucket === bucket && one.until > this.now) ? "cooldown" : undefined;
  }

  /** Each slot adds to the use of its bucket. The meter grows by min(slots, demand) / weights of the active buckets. */
  moveTo(at: number): void {
    const passed = Math.max(0, at - this.now);
    const active = this.buckets.filter(({ bucket }) => this.isActive(bucket));
    const demand = sum(active, ({ bucket }) =>
      Math.min(this.limit(bucket), this.held(bucket) + this.waiting(bucket).length),
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
    return Object.assign(found, { weight, used, activeAt: this.now });
  }

  /** The oldest waiter of a bucket whose client and instance are present, as far as the book knows. */
  head(bucket: string, collectMs: number): Waiter | undefined {
    const present = this.waiting(bucket).filter(
      ({ instance, awayAt }) =>
        (awayAt === undefined || awayAt + collectMs > this.now) &&
        !this.absences.some((one) => one.instance === instance),
    );
    return first(present, ({ arrivedAt }) => [arrivedAt]);
  }

  /** The buckets that compete for a slot, and of them those that may have one. */
  competing(collectMs: number): { all: Bucket[]; open: Bucket[]; blocked: Bucket[] } {
    const all = this.buckets.filter(({ bucket }) => this.head(bucket, collectMs) !== undefined);
    const open = all.filter(({ bucket }) => this.obstacle(bucket) === undefined);
    return { all, open, blocked: all.filter((one) => !open.includes(one)) };
  }

  /** The order: zone, slots per weight, use per weight, oldest head (docs/explanation/fairness.md), or only the last. */
  best(among: Bucket[], collectMs: number): Bucket | undefined {
    if (this.heat.isHot) return this.turns(among, collectMs)[0];
    const { slots, order } = this.policy;
    const wanting = this.buckets.filter(
      ({ bucket }) => this.waiting(bucket).length > 0 && this.held(bucket) < this.limit(bucket),
    );
    const heldByOthers = this.slots.length - sum(wanting, ({ bucket }) => this.held(bucket));
    const level = Math.max(0, slots - heldByOthers) / sum(wanting, ({ weight }) => weight);
    return first(among, ({ bucket, weight, used }) => {
      const headAt = this.head(bucket, collectMs)?.arrivedAt ?? 0;
      const [held, share] = [this.held(bucket), level * weight];
      const zone = held + 1 <= share + TINY ? 0 : held < share - TINY ? 1 : 2;
      return order === "fifo" ? [headAt] : [zone, zone === 1 ? 0 : (held + 1) / weight, used / weight, headAt];
    });
  }

  /** The order at a hot host: the smallest virtual time, then the oldest head. */
  turns(among: Bucket[], collectMs: number): Bucket[] {
    const headAt = ({ bucket }: Bucket) => this.head(bucket, collectMs)?.arrivedAt ?? 0;
    return among.toSorted((a, b) => a.virtualTime - b.virtualTime || headAt(a) - headAt(b));
  }

  inside(bucket?: string): Waiter[] {
    return this.waiters.filter((one) => one.isInside && (bucket === undefined || one.bucket === bucket));
  }

  isPoolFull(): boolean {
    return this.inside().length >= this.policy.waiters;
  }

  /** Who loses its place first: the youngest waiter of the bucket with the most places. */
  loser(among: readonly Waiter[]): Waiter | undefined {
    return first(among, ({ bucket, arrivedAt }) => [-this.inside(bucket).length, -arrivedAt]);
  }

  /** Who gets the next place: the oldest of the bucket with the fewest places. A client that is away waits for none. */
  entrant(isWanted: (waiter: Waiter) => boolean = () => true): Waiter | undefined {
    const outside = this.waiters.filter((one) => !one.isInside && one.awayAt === undefined && this.hasRoom(one.bucket));
    return first(outside.filter(isWanted), ({ bucket, arrivedAt }) => [this.inside(bucket).length, arrivedAt]);
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
    if (context.scheduler.isEnabled && isAlone) bucket.virtualTime = Math.max(bucket.virtualTime, start);
    waiter.isInside = true;
  }
}

/** Quotients of sums of weights have rounding errors, and so has the use in milliseconds. */
const TINY = 1e-9;
const ROUNDING = [0, TINY, 1e-3, 0];

function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}

/** The item with the smallest keys, compared one after the other. */
export function first<T>(items: readonly T[], keysOf: (item: T) => number[]): T | undefined {
  const ranked = items.map((item) => ({ item, keys: keysOf(item) }));
  return ranked.reduce(
    (best, one) => (isBefore(one.keys, best.keys) ? one : best),
    ranked[0] ?? { item: undefined, keys: [] },
  )?.item;
}

function isBefore(a: number[], b: number[]): boolean {
  const at = a.findIndex((key, index) => Math.abs(key - (b[index] as number)) > (ROUNDING[index] as number));
  return at >= 0 && (a[at] as number) < (b[at] as number);
}
