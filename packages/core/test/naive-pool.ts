/**
 * The specification of a pool with arrays: the limit per key first, then the global limit. Widths are 1. Like
 * `NaiveSemaphore`, but it is only exact at the end of a turn.
 */
import type { Fate } from "./naive-semaphore.ts";

interface Ask<K> {
  readonly id: number;
  /** The limit of its key; `undefined` if only the global limit applies. */
  readonly tier: Tier<K> | undefined;
  readonly signal: number | undefined;
  readonly timeoutAt: number;
  expiresAt: number;
}

/** A limit with its holders and its queue. */
class Tier<K> {
  limit: number;
  holders: Ask<K>[] = [];
  queue: Ask<K>[] = [];

  constructor(limit: number) {
    this.limit = limit;
  }

  get isFree(): boolean {
    return this.queue.length === 0 && this.holders.length < this.limit;
  }

  /** Moves as many waiters as fit from the queue to the holders, and returns them. */
  serve(): Ask<K>[] {
    const served = this.queue.splice(0, Math.max(0, this.limit - this.holders.length));
    this.holders.push(...served);
    return served;
  }

  free(ask: Ask<K>): Ask<K>[] {
    this.holders = this.holders.filter((one) => one !== ask);
    return this.serve();
  }
}

export interface NaivePoolOptions {
  readonly max: number;
  readonly maxPerKey: number;
  readonly ttlMs: number;
  readonly maxWaiters: number;
  /** Whether `undefined` is a key, as in a `KeyedSemaphore`. */
  readonly anyKey: boolean;
}

export class NaivePool<K> {
  #options: NaivePoolOptions;
  readonly #global: Tier<K>;
  readonly #tiers = new Map<K | undefined, Tier<K>>();
  /** Callers that have passed the first stage and are not in the second yet. */
  #between: Ask<K>[] = [];
  #closed = false;
  now: number;
  readonly fates = new Map<number, Fate>();
  readonly grants: number[] = [];
  counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };

  constructor(options: NaivePoolOptions, now: number) {
    this.#options = options;
    this.#global = new Tier(options.max);
    this.now = now;
  }

  get size(): number {
    return this.#tiers.size;
  }

  get inUse(): number {
    return this.#global.holders.length;
  }

  get waiting(): number {
    return [this.#global, ...this.#tiers.values()].reduce((sum, { queue }) => sum + queue.length, 0);
  }

  isAwaited(signal: number): boolean {
    return [this.#global, ...this.#tiers.values()].some(({ queue }) => queue.some((ask) => ask.signal === signal));
  }

  acquire(id: number, key: K | undefined, timeoutMs: number, signal?: number): void {
    const tier = this.#tierOf(key);
    const ask = { id, tier, signal, timeoutAt: this.now + timeoutMs, expiresAt: Infinity };
    if (tier === undefined) this.#enterGlobal(ask);
    else if (this.#enter(tier, ask)) this.#between.push(ask);
    this.#settle();
  }

  tryAcquire(id: number, key: K | undefined): void {
    const tier = this.#tierOf(key);
    if (this.#closed || !this.#global.isFree || tier?.isFree === false) {
      this.fates.set(id, "never");
      return;
    }
    const ask = { id, tier, signal: undefined, timeoutAt: Infinity, expiresAt: Infinity };
    tier?.holders.push(ask);
    this.#global.holders.push(ask);
    this.#grant(ask);
  }

  release(id: number): boolean {
    const ask = this.#global.holders.find((one) => one.id === id);
    if (ask !== undefined) this.#giveBack(ask, "released");
    this.#settle();
    return ask !== undefined;
  }

  abort(signal: number): void {
    const tiers = [...this.#tiers.values()];
    for (const tier of [...tiers, this.#global]) {
      const leaving = tier.queue.filter((ask) => ask.signal === signal);
      tier.queue = tier.queue.filter((ask) => ask.signal !== signal);
      for (const ask of leaving) this.#fail(ask, "aborted", "aborted", tier);
    }
    this.#settle();
  }

  /** Shrinking takes no slot from a holder. */
  resize(max = this.#options.max, maxPerKey = this.#options.maxPerKey): void {
    this.#options = { ...this.#options, max, maxPerKey };
    this.#global.limit = max;
    for (const served of this.#global.serve()) this.#grant(served);
    for (const tier of this.#tiers.values()) {
      tier.limit = maxPerKey;
      this.#between.push(...tier.serve());
    }
    this.#settle();
  }

  close(): void {
    this.#closed = true;
    for (const tier of [...this.#tiers.values(), this.#global]) {
      const leaving = tier.queue;
      tier.queue = [];
      for (const ask of leaving) this.#fail(ask, "closed", "rejected", tier);
    }
    this.#settle();
  }

  sweep(): number {
    const before = this.size;
    for (const [key, tier] of this.#tiers) if (tier.holders.length === 0) this.#tiers.delete(key);
    return before - this.size;
  }

  advance(ms: number): void {
    const until = this.now + ms;
    const tiers = () => [this.#global, ...this.#tiers.values()];
    for (;;) {
      const timeouts = tiers().flatMap(({ queue }) => queue.map(({ timeoutAt }) => timeoutAt));
      const due = Math.min(...timeouts, ...this.#global.holders.map(({ expiresAt }) => expiresAt));
      if (due > until) break;
      this.now = due;
      for (const tier of tiers()) this.#timeOut(tier);
      for (const ask of this.#global.holders.filter(({ expiresAt }) => expiresAt <= due))
        this.#giveBack(ask, "expired");
      this.#settle();
    }
    this.now = until;
  }

  #timeOut(tier: Tier<K>): void {
    const leaving = tier.queue.filter(({ timeoutAt }) => timeoutAt <= this.now);
    tier.queue = tier.queue.filter(({ timeoutAt }) => timeoutAt > this.now);
    for (const ask of leaving) this.#fail(ask, "timed out", "timedOut", tier);
  }

  #tierOf(key: K | undefined): Tier<K> | undefined {
    const { maxPerKey } = this.#options;
    if (maxPerKey === Infinity) return undefined;
    const tier = this.#tiers.get(key) ?? new Tier<K>(maxPerKey);
    if (!this.#closed) this.#tiers.set(key, tier);
    return tier;
  }

  /** Returns whether it got a slot of this tier at once. */
  #enter(tier: Tier<K>, ask: Ask<K>): boolean {
    if (this.#closed) this.#fail(ask, "closed", "rejected", tier);
    else if (tier.isFree) {
      tier.holders.push(ask);
      return true;
    } else if (ask.timeoutAt <= this.now) this.#fail(ask, "timed out", "timedOut", tier);
    else if (this.#crowdOf(tier) >= this.#options.maxWaiters) this.#fail(ask, "queue full", "rejected", tier);
    else {
      tier.queue.push(ask);
      this.fates.set(ask.id, "waiting");
    }
    return false;
  }

  /** The waiters that `maxWaiters` limits: in a `KeyedSemaphore` those of the key, in a pool all. */
  #crowdOf({ queue }: Tier<K>): number {
    return this.#options.anyKey ? queue.length : this.waiting;
  }

  #enterGlobal(ask: Ask<K>): void {
    if (this.#enter(this.#global, ask)) this.#grant(ask);
  }

  #grant(ask: Ask<K>): void {
    ask.expiresAt = this.now + this.#options.ttlMs;
    this.fates.set(ask.id, "held");
    this.grants.push(ask.id);
    this.counters.acquired++;
  }

  /** Frees the slot of the key first, then the global slot. */
  #giveBack(ask: Ask<K>, how: "released" | "expired"): void {
    this.fates.set(ask.id, how);
    this.counters[how]++;
    if (ask.tier !== undefined) this.#between.push(...ask.tier.free(ask));
    for (const served of this.#global.free(ask)) this.#grant(served);
  }

  /** Refuses a caller in that tier. If it is the global one, the slot of the key is freed. */
  #fail(ask: Ask<K>, fate: Fate, counter: "timedOut" | "aborted" | "rejected", tier: Tier<K>): void {
    this.fates.set(ask.id, fate);
    this.counters[counter]++;
    if (tier === this.#global && ask.tier !== undefined) this.#between.push(...ask.tier.free(ask));
  }

  #settle(): void {
    for (let ask = this.#between.shift(); ask !== undefined; ask = this.#between.shift()) this.#enterGlobal(ask);
    if (this.#closed) this.sweep();
  }
}
